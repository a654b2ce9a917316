//! Anabranch's own protocol: catalogs, references, the change feed and operations under `/v1`, and what a
//! server needs besides its protocols: health, metrics, version, OpenAPI, a start page.
//!
//! It decodes, calls the catalog service and encodes; it holds no rule.
//!
//! The types that matter:
//! - [`Native`]: what the routes need; [`router`] makes them from it.
//! - [`ObjectName`]: `catalog.database.table` as people write it, here and on the command line.
//! - [`error_shape`]: the error body of `/v1`, for what goes wrong outside the domain.

mod catalogs;
mod changes;
mod error;
mod gc;
mod names;
mod openapi;
mod operations;
mod page;
mod probes;
mod whereabouts;

use std::sync::Arc;

use anabranch_catalog::{Caller, Catalog};
use anabranch_http::RequestContext;
use axum::Router;
use axum::routing::{get, post};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio_util::sync::CancellationToken;
use utoipa::openapi::OpenApi;

pub use error::error_shape;
pub use names::ObjectName;

/// The routes that are answered however busy the server is.
pub const ALWAYS_ADMITTED: &[&str] = &["/health/live", "/health/ready", "/metrics"];
/// The routes whose requests mostly wait for news; they change nothing.
pub const LONG_POLLS: &[&str] = &["/v1/changes"];

/// The path of a database.
const DATABASE: &str = "/v1/catalogs/{catalog}/databases/{database}";

/// What the routes need.
pub struct Native {
    /// The catalog service.
    pub catalog: Catalog,
    /// Where the metrics are kept.
    pub metrics: PrometheusHandle,
    /// Under which location a catalog goes that names none; `None` if each has to name its own.
    pub catalogs_location: Option<String>,
    /// The Iceberg REST endpoints, as `VERB /v1/…`, for the OpenAPI document.
    pub iceberg_endpoints: &'static [&'static str],
    /// What other protocols say of their routes, for the OpenAPI document.
    pub described: Vec<OpenApi>,
    /// Cancelled when the server stops: it is no longer ready, and nobody waits for news.
    pub stopping: CancellationToken,
}

type Shared = Arc<Native>;

/// All routes of this crate.
pub fn router(native: Native) -> Router {
    let trees = anabranch_rest_trees::router::<error::Errors>(DATABASE, native.catalog.clone());
    Router::new()
        .route("/", get(page::start_page))
        .route("/v1/catalogs", get(catalogs::list).post(catalogs::create))
        .route(
            "/v1/catalogs/{catalog}",
            get(catalogs::show)
                .patch(catalogs::change)
                .delete(catalogs::drop_catalog),
        )
        .route("/v1/catalogs/{catalog}/gc", post(gc::start))
        .route("/v1/catalogs/{catalog}/gc/{id}", get(gc::show))
        .route(
            "/v1/changes",
            get(changes::changes).post(changes::changes_by_body),
        )
        .route("/v1/operations/{key}", get(operations::show))
        .route("/health/live", get(probes::live))
        .route("/health/ready", get(probes::ready))
        .route("/metrics", get(probes::metrics))
        .route("/version", get(probes::version))
        .route("/openapi.json", get(openapi::document))
        .with_state(Arc::new(native))
        .merge(trees)
}

/// The catalog service's view of who asks.
fn caller(context: &RequestContext, body: &[u8]) -> Caller {
    Caller {
        principal: context.principal.clone(),
        idempotency_key: context.idempotency_key.clone(),
        fingerprint: context.fingerprint(body),
        patience: context.patience(),
    }
}
