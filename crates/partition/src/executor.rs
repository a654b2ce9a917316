//! The group commit: lanes of commands that wait for the same partitions.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anabranch_store::{BranchId, ConflictReason, PartitionId, Read, Store, StoreError};
use futures::FutureExt;
use rand::Rng;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::answer::{Accepted, Reply};
use crate::attempt::{End, attempt};
use crate::cache::Cache;
use crate::command::{Command, Context, Stop};
use crate::config::Config;
use crate::error::RunError;
use crate::gate::Gates;
use crate::outcome::{Found, find_out};
use crate::view::View;

/// A key under which the answer to a request is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationKey {
    /// The key as the caller sent it, with the scope that it is unique in.
    pub key: String,
    /// A digest of everything that the request asks for.
    pub fingerprint: String,
}

/// A command with everything around it.
pub struct Request<C> {
    /// What to decide.
    pub command: C,
    /// The partitions that it changes or decides by, as far as they are known beforehand.
    pub partitions: Vec<PartitionId>,
    /// Who asks.
    pub principal: String,
    /// Under which key the answer is kept.
    pub operation: Option<OperationKey>,
    /// How long it may wait in this server before it is refused as "overloaded".
    pub patience: Duration,
}

/// A command without its types.
pub(crate) trait AnyCommand: Send + Sync {
    fn name(&self) -> &'static str;
    fn branch(&self) -> BranchId;
    fn reads(&self) -> Vec<Read>;
    fn apply(&self, view: &mut View<'_>, context: &Context<'_>) -> Result<Value, Stop>;
}

struct Typed<C>(C);

impl<C: Command> AnyCommand for Typed<C> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn branch(&self) -> BranchId {
        self.0.branch()
    }

    fn reads(&self) -> Vec<Read> {
        self.0.reads()
    }

    fn apply(&self, view: &mut View<'_>, context: &Context<'_>) -> Result<Value, Stop> {
        let outcome = self.0.apply(view, context)?;
        serde_json::to_value(outcome).map_err(|error| {
            Stop::Refuse(crate::refusal::Refusal::invalid(format!(
                "the outcome can't be written down: {error}"
            )))
        })
    }
}

/// A command that waits for its batch.
pub(crate) struct Submission {
    pub(crate) command: Box<dyn AnyCommand>,
    pub(crate) partitions: Vec<PartitionId>,
    pub(crate) principal: String,
    pub(crate) operation: Option<OperationKey>,
    deadline: Instant,
    submitted: Instant,
    reply: oneshot::Sender<Reply>,
    seat: Seat,
}

/// A place among the waiting; given back when the submission ends, in whatever way.
struct Seat(Arc<Core>);

impl Seat {
    fn take(core: &Arc<Core>) -> Result<Seat, RunError> {
        let waiting = core.waiting.fetch_add(1, Ordering::Relaxed);
        metrics::gauge!("anabranch_queue_depth").increment(1);
        let seat = Seat(core.clone());
        if waiting >= core.config.queue {
            metrics::counter!("anabranch_overloaded_total").increment(1);
            return Err(RunError::Overloaded);
        }
        Ok(seat)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        metrics::gauge!("anabranch_queue_depth").decrement(1);
    }
}

type LaneKey = Vec<PartitionId>;

/// Runs commands, reads states and follows changes on one store. Cheap to clone.
#[derive(Clone)]
pub struct Partitions {
    pub(crate) core: Arc<Core>,
}

pub(crate) struct Core {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) config: Config,
    cache: Cache,
    gates: Gates,
    lanes: Mutex<HashMap<LaneKey, VecDeque<Submission>>>,
    waiting: AtomicUsize,
}

impl Partitions {
    /// An executor over a store. Several may run over one store, in this process or others.
    pub fn new(store: Arc<dyn Store>, config: Config) -> Partitions {
        Partitions {
            core: Arc::new(Core {
                cache: Cache::new(config.cached_rows),
                store,
                config,
                gates: Gates::default(),
                lanes: Mutex::default(),
                waiting: AtomicUsize::new(0),
            }),
        }
    }

    /// The store underneath.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.core.store
    }

    /// Runs one command. The command goes on even if the caller stops waiting.
    pub async fn run<C: Command>(
        &self,
        request: Request<C>,
    ) -> Result<Accepted<C::Outcome>, RunError> {
        let (reply, answer) = oneshot::channel();
        let mut partitions = request.partitions;
        partitions.sort_unstable();
        partitions.dedup();
        let submitted = Instant::now();
        let seat = Seat::take(&self.core)?;
        self.submit(Submission {
            command: Box::new(Typed(request.command)),
            partitions,
            principal: request.principal,
            operation: request.operation,
            deadline: submitted + request.patience,
            submitted,
            reply,
            seat,
        });
        let accepted = answer.await.unwrap_or(Err(RunError::Unknown))?;
        typed(accepted)
    }

    fn submit(&self, submission: Submission) {
        let core = &self.core;
        let lane_key = if core.store.is_serial() {
            LaneKey::new()
        } else {
            submission.partitions.clone()
        };
        let mut lanes = core.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        match lanes.get_mut(&lane_key) {
            Some(lane) => lane.push_back(submission),
            None => {
                lanes.insert(lane_key.clone(), VecDeque::from([submission]));
                tokio::spawn(run_lane(core.clone(), lane_key));
            }
        }
    }
}

fn typed<T: DeserializeOwned>(accepted: Accepted<Value>) -> Result<Accepted<T>, RunError> {
    let outcome = serde_json::from_value(accepted.outcome).map_err(|error| {
        tracing::error!(%error, "outcome has another shape than its command's");
        RunError::Failed
    })?;
    Ok(Accepted {
        outcome,
        revision: accepted.revision,
        branch: accepted.branch,
        replayed: accepted.replayed,
    })
}

/// Runs batches until nobody waits in the lane any more.
async fn run_lane(core: Arc<Core>, lane: LaneKey) {
    loop {
        let passed = core.gates.pass(&lane).await;
        let Some(batch) = core.next_batch(&lane) else {
            return;
        };
        if AssertUnwindSafe(core.run_batch(batch))
            .catch_unwind()
            .await
            .is_err()
        {
            tracing::error!("a batch panicked; its callers are told that the outcome is unknown");
        }
        drop(passed);
    }
}

impl Core {
    /// The next commands of a lane, or `None` (and the lane is gone) if there are none.
    fn next_batch(&self, lane: &LaneKey) -> Option<Vec<Submission>> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = lanes.get_mut(lane)?;
        if queue.is_empty() {
            lanes.remove(lane);
            return None;
        }
        let count = queue.len().min(self.config.batch);
        Some(queue.drain(..count).collect())
    }

    async fn run_batch(&self, batch: Vec<Submission>) {
        let now = Instant::now();
        let (in_time, late): (Vec<_>, Vec<_>) = batch
            .into_iter()
            .partition(|submission| submission.deadline > now);
        for submission in late {
            self.reply(submission, Err(RunError::Overloaded));
        }
        if in_time.is_empty() {
            return;
        }
        metrics::histogram!("anabranch_batch_size").record(in_time.len() as f64);
        for submission in &in_time {
            let waited = submission.submitted.elapsed().as_secs_f64();
            metrics::histogram!("anabranch_queue_wait_seconds").record(waited);
        }
        let started = Instant::now();
        self.run_until_known(in_time).await;
        metrics::histogram!("anabranch_batch_seconds").record(started.elapsed().as_secs_f64());
    }

    /// Tries a batch until every command in it has an answer.
    async fn run_until_known(&self, mut batch: Vec<Submission>) {
        let mut lost = 0;
        let mut same_key = 0;
        loop {
            let partitions: BTreeSet<PartitionId> = batch
                .iter()
                .flat_map(|submission| submission.partitions.iter().copied())
                .collect();
            let end = attempt(
                self.store.as_ref(),
                &self.cache,
                self.config.operation_retention,
                &partitions,
                &batch,
            )
            .await;
            match end {
                End::Done(replies) => return self.reply_all(batch, replies),
                End::Widen(more) => {
                    for submission in &mut batch {
                        submission.partitions.extend(more.iter().copied());
                    }
                }
                End::Unknown {
                    replies,
                    witness: Some(witness),
                    held,
                } => {
                    let patience = self.config.resolve_for;
                    match find_out(self.store.as_ref(), &held, witness, patience).await {
                        Found::Applied => return self.reply_all(batch, replies),
                        Found::NotApplied => lost += 1,
                        Found::Unresolved => {
                            metrics::counter!("anabranch_unknown_outcomes_total").increment(1);
                            return self.reply_same(batch, RunError::Unknown);
                        }
                    }
                }
                End::Unknown { witness: None, .. } => lost += 1,
                End::NotApplied(error @ StoreError::Conflict { reason, .. }) => {
                    lost += 1;
                    same_key += u32::from(reason == ConflictReason::UniqueKey);
                    let label = format!("{reason:?}");
                    metrics::counter!("anabranch_retries_total", "reason" => label).increment(1);
                    tracing::debug!(%error, lost, "batch lost a race");
                }
                End::NotApplied(error) => {
                    let one_of_many = matches!(
                        error,
                        StoreError::Failed { .. } | StoreError::Unwritable { .. }
                    );
                    if !one_of_many || batch.len() == 1 {
                        return self.reply_same(batch, RunError::from_store(&error));
                    }
                    tracing::warn!(%error, "a command of a batch fails");
                    return self.run_one_by_one(batch).await;
                }
            }
            // A key of an operation is found by the next attempt; one that stays in the way is
            // the matter of a single command.
            if same_key > 2 && batch.len() > 1 {
                return self.run_one_by_one(batch).await;
            }
            if lost >= self.config.attempts {
                return self.reply_same(batch, RunError::Overloaded);
            }
            if lost > 0 {
                pause(self.config.backoff, lost).await;
            }
        }
    }

    /// So that a command that can't be written doesn't take the others along.
    async fn run_one_by_one(&self, batch: Vec<Submission>) {
        for submission in batch {
            Box::pin(self.run_until_known(vec![submission])).await;
        }
    }

    fn reply_all(&self, batch: Vec<Submission>, replies: Vec<Reply>) {
        for (submission, reply) in batch.into_iter().zip(replies) {
            self.reply(submission, reply);
        }
    }

    fn reply_same(&self, batch: Vec<Submission>, error: RunError) {
        for submission in batch {
            self.reply(submission, Err(error.clone()));
        }
    }

    fn reply(&self, submission: Submission, reply: Reply) {
        let result = match &reply {
            Ok(accepted) if accepted.replayed => "replayed",
            Ok(_) => "accepted",
            Err(RunError::Refused(_)) => "refused",
            Err(RunError::Stale) => "stale",
            Err(_) => "failed",
        };
        metrics::counter!(
            "anabranch_commands_total",
            "command" => submission.command.name(),
            "result" => result
        )
        .increment(1);
        // The caller may have stopped waiting; the command was run all the same.
        drop(submission.seat);
        let _ = submission.reply.send(reply);
    }
}

/// Waits after the `lost`-th lost race: doubled each time, up to 32 times the base, with jitter.
pub(crate) async fn pause(base: Duration, lost: u32) {
    let longest = base * (1 << lost.min(5));
    let jittered = longest.mul_f64(rand::rng().random_range(0.5..1.0));
    tokio::time::sleep(jittered).await;
}
