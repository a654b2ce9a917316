//! Background work that any server takes: recurring jobs and purges.

use anabranch_partition::RunError;
use anabranch_store::{StoreError, StoreTime, Task, TaskId};
use uuid::Uuid;

use crate::command::{PURGE_TASK, Purge};
use crate::error::CatalogError;
use crate::service::Catalog;
use crate::service::creation::{FORGET_TASK, LeftOver};
use crate::service::gc::{Collected, GC_TASK};
use crate::service::purge::Purged;

const PRUNE_TASK: &str = "prune";
const SWEEP_TASK: &str = "sweep";
const KINDS: [&str; 4] = [PURGE_TASK, FORGET_TASK, PRUNE_TASK, SWEEP_TASK];
/// How long what became of a gc can be asked for.
const KEPT_MICROS: i64 = 7 * 24 * 3600 * 1_000_000;
/// How long a task that fails waits at most.
const LONGEST_DELAY_MICROS: i64 = 3600 * 1_000_000;
/// How long a server may work on a task before another one takes it.
pub(crate) const LEASE_MICROS: i64 = 15 * 60 * 1_000_000;

/// What a task did, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobReport {
    /// Which job.
    pub kind: String,
    /// What became of it, in one sentence.
    pub summary: String,
}

/// What happens to a task after its run.
enum After {
    Finished(String),
    Again(String),
    /// Finished, and still to be asked for.
    Kept(String),
}

/// A gc that this server has taken.
pub struct DueGc {
    catalog: Catalog,
    task: Task,
    server: String,
}

impl DueGc {
    /// Works on it to its end.
    pub async fn run(self) -> Result<JobReport, CatalogError> {
        self.catalog.work(&self.task, &self.server).await
    }
}

impl Catalog {
    /// Makes the recurring jobs known to the store, unless another server did.
    pub async fn ensure_jobs(&self) -> Result<(), CatalogError> {
        for (kind, id) in [(PRUNE_TASK, 1), (SWEEP_TASK, 2)] {
            let task = Task {
                id: TaskId(Uuid::from_u128(id)),
                kind: kind.to_owned(),
                body: "{}".to_owned(),
                due: StoreTime(0),
                attempts: 0,
            };
            let store = self.core.partitions.store();
            store.ensure_task(&task).await.map_err(run_error)?;
        }
        Ok(())
    }

    /// Takes one due task and works on it; `None` if there is none. `server` names this process.
    pub async fn run_due_task(&self, server: &str) -> Result<Option<JobReport>, CatalogError> {
        match self.lease(&KINDS, server).await? {
            Some(task) => self.work(&task, server).await.map(Some),
            None => Ok(None),
        }
    }

    /// Takes a gc that is due; `None` if there is none. It may take long: nothing else should wait
    /// for it.
    pub async fn due_gc(&self, server: &str) -> Result<Option<DueGc>, CatalogError> {
        let task = self.lease(&[GC_TASK], server).await?;
        Ok(task.map(|task| DueGc {
            catalog: self.clone(),
            task,
            server: server.to_owned(),
        }))
    }

    async fn lease(&self, kinds: &[&str], server: &str) -> Result<Option<Task>, CatalogError> {
        let store = self.core.partitions.store();
        let leased = store.lease_task(kinds, server, LEASE_MICROS).await;
        leased.map_err(run_error)
    }

    async fn work(&self, task: &Task, server: &str) -> Result<JobReport, CatalogError> {
        let store = self.core.partitions.store();
        let summary = match self.work_on(task, server).await {
            Ok(After::Finished(summary)) => {
                store
                    .finish_task(task.id, server)
                    .await
                    .map_err(run_error)?;
                summary
            }
            Ok(After::Again(summary)) => {
                let delay = micros(self.core.limits.job_interval.as_micros());
                let postponed = store.postpone_task(task.id, server, delay).await;
                postponed.map_err(run_error)?;
                summary
            }
            Ok(After::Kept(summary)) => {
                let postponed = store.postpone_task(task.id, server, KEPT_MICROS).await;
                postponed.map_err(run_error)?;
                summary
            }
            Err(error) => {
                let delay = self.delay_after_failure(task);
                let postponed = store.postpone_task(task.id, server, delay).await;
                postponed.map_err(run_error)?;
                format!("failed, and is tried again: {error}")
            }
        };
        metrics::counter!("anabranch_tasks_total", "kind" => task.kind.clone()).increment(1);
        Ok(JobReport {
            kind: task.kind.clone(),
            summary,
        })
    }

    /// Longer and longer, up to an hour; a recurring job only waits for its next turn, since every
    /// run that went well counts among its attempts.
    fn delay_after_failure(&self, task: &Task) -> i64 {
        match task.kind.as_str() {
            PRUNE_TASK | SWEEP_TASK => micros(self.core.limits.job_interval.as_micros()),
            _ => LONGEST_DELAY_MICROS.min(1_000_000 << task.attempts.clamp(1, 16)),
        }
    }

    async fn work_on(&self, task: &Task, server: &str) -> Result<After, CatalogError> {
        match task.kind.as_str() {
            PURGE_TASK => {
                let Ok(purge) = serde_json::from_str::<Purge>(&task.body) else {
                    return Ok(After::Finished(
                        "it can't be read, and is given up".to_owned(),
                    ));
                };
                Ok(match self.core.purge(&purge).await? {
                    Purged::Done(files) => After::Finished(format!("{files} files removed")),
                    Purged::Retained => After::Again("a retained version reads them".to_owned()),
                    Purged::Left => After::Finished(
                        "files stay: a table lies there, or the catalog is gone".to_owned(),
                    ),
                })
            }
            FORGET_TASK => {
                let Ok(left) = serde_json::from_str::<LeftOver>(&task.body) else {
                    return Ok(After::Finished(
                        "it can't be read, and is given up".to_owned(),
                    ));
                };
                let Some((_, settings)) = self.core.reach_of(&left.catalog).await? else {
                    return Ok(After::Finished("its catalog is gone".to_owned()));
                };
                let files = self.core.forget(&left, &settings).await?;
                let what = "of a creation that never was are removed";
                Ok(After::Finished(format!("{files} files {what}")))
            }
            GC_TASK => Ok(match self.core.collect(task, server).await? {
                Collected::Done(summary) => After::Kept(summary),
                Collected::Known => After::Finished("it ended before".to_owned()),
            }),
            PRUNE_TASK => {
                let retention = self.core.limits.history_retention;
                self.core.release().await?;
                let pruned = self.core.partitions.prune_all(retention).await?;
                let retired = self.core.retire().await?;
                Ok(After::Again(format!(
                    "{} rows of history, {retired} of deleted branches and {} operation records \
                     removed",
                    pruned.rows, pruned.operations
                )))
            }
            _ => {
                let swept = self.sweep().await?;
                Ok(After::Again(format!("{swept} left-over files removed")))
            }
        }
    }
}

fn run_error(error: StoreError) -> CatalogError {
    RunError::from_store(&error).into()
}

fn micros(value: u128) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
