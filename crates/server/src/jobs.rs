//! Background work: takes due tasks until the server stops.

use std::time::Duration;

use anabranch_catalog::Catalog;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio_util::sync::CancellationToken;

/// How long to wait when there was nothing to do, at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Works until `stopping`. A task that is cut off is taken again when its lease has run out.
pub async fn run(catalog: Catalog, server: String, stopping: CancellationToken) {
    let work = async {
        while !make_known(&catalog).await {
            pause(&catalog).await;
        }
        loop {
            match catalog.run_due_task(&server).await {
                Ok(Some(report)) => {
                    tracing::info!(kind = report.kind, summary = report.summary, "task");
                }
                Ok(None) => pause(&catalog).await,
                Err(error) => {
                    tracing::warn!(%error, "no task could be taken");
                    pause(&catalog).await;
                }
            }
        }
    };
    stopping.run_until_cancelled(work).await;
}

async fn make_known(catalog: &Catalog) -> bool {
    match catalog.ensure_jobs().await {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(%error, "the recurring jobs could not be made known");
            false
        }
    }
}

async fn pause(catalog: &Catalog) {
    tokio::time::sleep(catalog.limits().job_interval.min(LONGEST_PAUSE)).await;
}

/// Keeps the metrics small until `stopping`: histograms are drained now and then.
pub async fn keep_metrics(metrics: PrometheusHandle, stopping: CancellationToken) {
    let work = async {
        loop {
            tokio::time::sleep(LONGEST_PAUSE).await;
            metrics.run_upkeep();
        }
    };
    stopping.run_until_cancelled(work).await;
}
