//! What the machinery around a server asks: health, metrics, version.

use std::time::Duration;

use anabranch_files::CacheStats;
use anabranch_store::StoreError;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde_json::json;

use crate::Shared;

const READY_WITHIN: Duration = Duration::from_secs(3);

/// The process runs.
#[utoipa::path(get, path = "/health/live", tag = "operations", responses((status = 200)))]
pub(crate) async fn live() -> Response {
    axum::Json(json!({"status": "live"})).into_response()
}

/// The store answers, is migrated and takes writes, and the server isn't stopping.
#[utoipa::path(get, path = "/health/ready", tag = "operations",
    responses((status = 200), (status = 503, description = "Not ready, with the reason")))]
pub(crate) async fn ready(State(native): State<Shared>) -> Response {
    let not_ready = |reason: &str| {
        let body = axum::Json(json!({"status": "not ready", "reason": reason}));
        (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
    };
    if native.stopping.is_cancelled() {
        return not_ready("the server is stopping");
    }
    // A store is opened only if its schema is this program's.
    let store = native.catalog.partitions().store();
    match tokio::time::timeout(READY_WITHIN, store.check()).await {
        Ok(Ok(())) => axum::Json(json!({"status": "ready"})).into_response(),
        Ok(Err(error @ StoreError::Unwritable { .. })) => {
            tracing::warn!(%error, "not ready");
            not_ready("the store's disk is full or takes no more writes; make room on it")
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "not ready");
            not_ready("the store does not answer")
        }
        Err(_) => not_ready("the store does not answer in time"),
    }
}

/// Metrics for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "operations",
    responses((status = 200, content_type = "text/plain", body = String)))]
pub(crate) async fn metrics(State(native): State<Shared>) -> Response {
    measure_process();
    measure_documents(native.catalog.document_cache());
    let store = native.catalog.partitions().store();
    metrics::counter!("anabranch_store_statements_total").absolute(store.statements());
    let text = native.metrics.render();
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

/// Which program this is.
#[utoipa::path(get, path = "/version", tag = "operations", responses((status = 200)))]
pub(crate) async fn version() -> Response {
    axum::Json(json!({
        "name": "anabranch",
        "version": env!("CARGO_PKG_VERSION"),
    }))
    .into_response()
}

/// The cache of metadata documents.
fn measure_documents(cache: CacheStats) {
    let uses = |result: &'static str| metrics::counter!("anabranch_document_cache_total", "result" => result);
    uses("hit").absolute(cache.hits);
    uses("miss").absolute(cache.misses);
    // Far below what a float holds exactly.
    metrics::gauge!("anabranch_document_cache_documents").set(cache.entries as f64);
    metrics::gauge!("anabranch_document_cache_bytes").set(cache.weight as f64);
}

/// Resident memory, where the system tells it.
fn measure_process() {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return;
    };
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|value| value.split_whitespace().next())
        .and_then(|kilobytes| kilobytes.parse::<u32>().ok());
    if let Some(kilobytes) = resident {
        metrics::gauge!("process_resident_memory_bytes").set(f64::from(kilobytes) * 1024.0);
    }
}
