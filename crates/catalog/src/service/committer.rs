//! Commits of tables and views: prepared outside the lock, published by compare and swap.
//!
//! Commits that wait for the same databases are prepared together, as a chain: each on what the
//! one before it makes of the table. Their files are stored side by side, then all are submitted
//! in order. Whoever finds another version under the lock is prepared again.

mod chain;
mod plan;
mod publish;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anabranch_partition::{Reason, Refusal, RunError};
use futures::FutureExt;
use rand::Rng;
use tokio::sync::oneshot;

use crate::error::CatalogError;
use crate::name::{Identifier, Warehouse};
use crate::service::Core;
use crate::service::caller::Caller;
use crate::service::pointers::PointerKind;
use crate::service::prepare::{Committed, Edit};

/// Commits prepared together, at most.
const BATCH: usize = 128;
/// Files read or stored side by side, at most.
const FILES_AT_ONCE: usize = 32;
/// Files of one commit that are stored side by side, at most.
const FILES_OF_ONE_AT_ONCE: usize = 8;
/// How often a commit is prepared again before its caller is asked to.
const TRIES: u32 = 30;

/// One name of a commit.
#[derive(Clone, Debug)]
pub(crate) struct NamedEdit {
    pub(crate) identifier: Identifier,
    pub(crate) kind: PointerKind,
    pub(crate) edit: Edit,
}

/// A commit that waits for its batch.
struct Job {
    warehouse: Warehouse,
    edits: Vec<NamedEdit>,
    caller: Caller,
    deadline: Instant,
    tries: u32,
    reply: oneshot::Sender<Result<Vec<Committed>, CatalogError>>,
}

/// Commits for the same databases of one warehouse wait in one lane.
type LaneKey = (Warehouse, BTreeSet<String>);

pub(crate) struct Committer {
    core: Arc<Core>,
    lanes: Mutex<HashMap<LaneKey, VecDeque<Job>>>,
}
impl Committer {
    pub(crate) fn new(core: Arc<Core>) -> Committer {
        Committer {
            core,
            lanes: Mutex::default(),
        }
    }

    /// Commits the edits, all or none. The commit goes on even if the caller stops waiting.
    pub(crate) async fn commit(
        self: &Arc<Self>,
        warehouse: &Warehouse,
        edits: Vec<NamedEdit>,
        caller: &Caller,
    ) -> Result<Vec<Committed>, CatalogError> {
        let databases = edits
            .iter()
            .map(|edit| edit.identifier.namespace.database().to_owned())
            .collect();
        let lane = (warehouse.clone(), databases);
        let (reply, answer) = oneshot::channel();
        let job = Job {
            warehouse: warehouse.clone(),
            edits,
            caller: caller.clone(),
            deadline: Instant::now() + caller.patience,
            tries: 0,
            reply,
        };
        self.enqueue(lane, job);
        answer
            .await
            .unwrap_or(Err(CatalogError::Run(RunError::Unknown)))
    }

    fn enqueue(self: &Arc<Self>, lane: LaneKey, job: Job) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        match lanes.get_mut(&lane) {
            Some(waiting) => waiting.push_back(job),
            None => {
                lanes.insert(lane.clone(), VecDeque::from([job]));
                let committer = self.clone();
                tokio::spawn(async move { committer.run_lane(lane).await });
            }
        }
    }

    async fn run_lane(self: Arc<Self>, lane: LaneKey) {
        let mut again: Vec<Job> = Vec::new();
        loop {
            let mut batch = std::mem::take(&mut again);
            {
                let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(waiting) = lanes.get_mut(&lane) else {
                    return;
                };
                let room = BATCH.saturating_sub(batch.len()).min(waiting.len());
                batch.extend(waiting.drain(..room));
                if batch.is_empty() {
                    lanes.remove(&lane);
                    return;
                }
            }
            let run = AssertUnwindSafe(self.run_batch(batch)).catch_unwind();
            again = run.await.unwrap_or_else(|_| {
                tracing::error!(
                    "a batch panicked; its callers are told that the outcome is unknown"
                );
                Vec::new()
            });
            let lost = again.iter().map(|job| job.tries).max();
            if let Some(most) = lost.filter(|most| *most > 0) {
                let longest = Duration::from_millis(1 << most.min(6));
                let jittered = longest.mul_f64(rand::rng().random_range(0.2..1.0));
                tokio::time::sleep(jittered).await;
            }
        }
    }

    /// Runs a batch once; answers the jobs that have to be prepared again.
    async fn run_batch(&self, batch: Vec<Job>) -> Vec<Job> {
        let mut waiting = Vec::with_capacity(batch.len());
        for job in batch {
            if job.tries >= TRIES {
                metrics::counter!("anabranch_conflicts_total", "reason" => "contention")
                    .increment(1);
                let refusal = Refusal::new(
                    Reason::Conflict,
                    "too many commits for the same tables came in between; try again",
                );
                reply(job, Err(refusal.into()));
            } else if job.deadline <= Instant::now() {
                reply(job, Err(CatalogError::Run(RunError::Overloaded)));
            } else {
                waiting.push(job);
            }
        }
        let ready = self.resolve(waiting).await;
        let (planned, mut again) = self.plan(ready).await;
        again.extend(self.publish(planned).await);
        again
    }
}

fn reply(job: Job, result: Result<Vec<Committed>, CatalogError>) {
    // The caller may have stopped waiting; the commit was settled all the same.
    let _ = job.reply.send(result);
}
