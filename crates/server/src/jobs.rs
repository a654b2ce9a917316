//! Background work: takes due tasks until the server stops.

use std::time::Duration;

use anabranch_catalog::{Catalog, JobReport};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How long to wait when there was nothing to do, at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Works until `stopping`. A task that is cut off is taken again when its lease has run out.
pub async fn run(catalog: Catalog, server: String, stopping: CancellationToken) {
    let work = async {
        while !make_known(&catalog).await {
            pause(&catalog).await;
        }
        // At most one. It may take long, and nothing else waits for it; it ends with this loop.
        let mut gc = JoinSet::new();
        loop {
            match catalog.run_due_task(&server).await {
                Ok(Some(report)) => told(&report),
                Ok(None) => {
                    while gc.try_join_next().is_some() {}
                    if gc.is_empty() {
                        begin_gc(&catalog, &server, &mut gc).await;
                    }
                    pause(&catalog).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "no task could be taken");
                    pause(&catalog).await;
                }
            }
        }
    };
    stopping.run_until_cancelled(work).await;
}

fn told(report: &JobReport) {
    tracing::info!(kind = report.kind, summary = report.summary, "task");
}

async fn begin_gc(catalog: &Catalog, server: &str, running: &mut JoinSet<()>) {
    match catalog.due_gc(server).await {
        Ok(Some(gc)) => {
            running.spawn(async move {
                match gc.run().await {
                    Ok(report) => told(&report),
                    Err(error) => tracing::warn!(%error, "a gc was cut off"),
                }
            });
        }
        Ok(None) => {}
        Err(error) => tracing::warn!(%error, "no gc could be taken"),
    }
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
