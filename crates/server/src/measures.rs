//! The metrics: where they are kept, and what each one says.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::failure::Failure;

const SECONDS: &[f64] = &[
    0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];
const SIZES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

/// Installs the recorder for the whole process.
pub fn start() -> Result<PrometheusHandle, Failure> {
    let failed = |error| Failure::setup(format!("metrics can't be kept: {error}"));
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)
        .and_then(|builder| {
            builder.set_buckets_for_metric(Matcher::Suffix("_size".to_owned()), SIZES)
        })
        .and_then(PrometheusBuilder::install_recorder)
        .map_err(failed)?;
    describe();
    Ok(handle)
}

fn describe() {
    describe_counter!(
        "http_requests_total",
        "Requests by route, method and status"
    );
    describe_histogram!(
        "http_request_duration_seconds",
        "Time to answer by route and method"
    );
    describe_counter!(
        "http_requests_refused_total",
        "Requests refused because too many ran"
    );
    describe_counter!("anabranch_commands_total", "Changes by command and result");
    describe_histogram!("anabranch_batch_size", "Changes in one commit of the store");
    describe_histogram!("anabranch_batch_seconds", "Time of one commit of the store");
    describe_histogram!(
        "anabranch_queue_wait_seconds",
        "Time that changes waited for their turn"
    );
    describe_gauge!("anabranch_queue_depth", "Changes that wait or run");
    describe_counter!(
        "anabranch_overloaded_total",
        "Changes refused because the queue was full"
    );
    describe_counter!(
        "anabranch_conflicts_total",
        "Changes that met another one, by reason"
    );
    describe_counter!(
        "anabranch_retries_total",
        "Commits run again after a lost race"
    );
    describe_counter!(
        "anabranch_lost_commit_answers_total",
        "COMMITs whose answer was missing and had to be looked up"
    );
    describe_histogram!(
        "anabranch_lock_wait_seconds",
        Unit::Seconds,
        "Time until the store gave a batch its partitions"
    );
    describe_counter!(
        "anabranch_unknown_outcomes_total",
        "Commits whose outcome stayed unknown"
    );
    describe_counter!(
        "anabranch_recognised_total",
        "Repeated requests that were recognised"
    );
    describe_counter!(
        "anabranch_row_cache_total",
        "Uses of the row cache by result"
    );
    describe_counter!(
        "anabranch_document_cache_total",
        "Uses of the metadata document cache by result"
    );
    describe_gauge!(
        "anabranch_document_cache_documents",
        "Metadata documents in memory"
    );
    describe_gauge!(
        "anabranch_document_cache_bytes",
        "What the metadata documents in memory weigh"
    );
    describe_counter!("anabranch_tasks_total", "Background tasks by kind");
    describe_counter!("anabranch_store_statements_total", "SQL statements sent");
    describe_gauge!("process_resident_memory_bytes", "Memory of the process");
}
