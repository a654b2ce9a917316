//! One attempt at a batch: one SQL transaction from lock to COMMIT.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use anabranch_store::{
    At, CommitId, Entry, Key, OperationRecord, OperationState, PartitionId, PartitionRow, Read,
    Revision, Store, StoreError, StoreTime, Transaction,
};

use crate::answer::{Accepted, Recorded, Reply, replay};
use crate::cache::{Cache, CachedRows};
use crate::command::{Context, Stop};
use crate::error::RunError;
use crate::executor::Submission;
use crate::view::{Effects, Rows, View};
use crate::writes::Writes;

/// A command that asks for more rows this often is a defect.
const MAX_ROUNDS: usize = 100_000;

/// How an attempt ended.
pub(crate) enum End {
    /// Committed, or there was nothing to commit: the replies stand.
    Done(Vec<Reply>),
    /// COMMIT was sent and its answer is missing. The replies stand if the change log of the
    /// partition has the commit at the revision; without a witness it may simply be done again.
    Unknown {
        replies: Vec<Reply>,
        witness: Option<(PartitionId, Revision, CommitId)>,
        held: Vec<PartitionId>,
    },
    /// Known not applied.
    NotApplied(StoreError),
    /// Known not applied: a command needs partitions that come earlier in the lock order.
    Widen(Vec<PartitionId>),
}

impl From<StoreError> for End {
    fn from(error: StoreError) -> End {
        End::NotApplied(error)
    }
}

/// Runs the submissions in one SQL transaction.
pub(crate) async fn attempt(
    store: &dyn Store,
    cache: &Cache,
    retention: Duration,
    partitions: &BTreeSet<PartitionId>,
    submissions: &[Submission],
) -> End {
    let wanted: Vec<PartitionId> = partitions.iter().copied().collect();
    let mut reads = declared_reads(submissions);
    reads.retain(|read| !matches!(read, Read::Point(key) if cache.knows(key)));
    let waiting = Instant::now();
    let begun = store.begin_reading(&wanted, &reads).await;
    metrics::histogram!("anabranch_lock_wait_seconds").record(waiting.elapsed().as_secs_f64());
    let (mut transaction, answers) = match begun {
        Ok(begun) => begun,
        Err(error) => return error.into(),
    };
    let mut run = Run {
        now: transaction.now(),
        retention,
        rows: Rows::default(),
        held: BTreeMap::new(),
        caches: HashMap::new(),
        writes: Writes::new(transaction.now()),
    };
    for (read, answer) in reads.into_iter().zip(answers) {
        run.rows.add(read, answer);
    }
    match run
        .decide(transaction.as_mut(), cache, &wanted, submissions)
        .await
    {
        Ok(replies) => run.conclude(transaction, cache, replies).await,
        Err(end) => {
            transaction.rollback().await;
            end
        }
    }
}

/// What the commands say that they read, and the records of their keys; each once.
fn declared_reads(submissions: &[Submission]) -> Vec<Read> {
    let mut reads: Vec<Read> = Vec::new();
    for submission in submissions {
        let operation = submission
            .operation
            .as_ref()
            .map(|operation| Read::Operation(operation.key.clone()));
        reads.extend(submission.command.reads().into_iter().chain(operation));
    }
    let mut seen = HashSet::new();
    reads.retain(|read| seen.insert(read.clone()));
    reads
}

struct Run {
    now: StoreTime,
    retention: Duration,
    rows: Rows,
    held: BTreeMap<PartitionId, Option<PartitionRow>>,
    caches: HashMap<PartitionId, CachedRows>,
    writes: Writes,
}

impl Run {
    async fn decide(
        &mut self,
        transaction: &mut dyn Transaction,
        cache: &Cache,
        wanted: &[PartitionId],
        submissions: &[Submission],
    ) -> Result<Vec<Reply>, End> {
        self.hold(transaction, cache, wanted).await?;
        // What the cache seemed to hold and had to forget.
        self.read(transaction, declared_reads(submissions)).await?;
        let mut replies = Vec::with_capacity(submissions.len());
        for submission in submissions {
            replies.push(self.answer(transaction, cache, submission).await?);
        }
        Ok(replies)
    }

    /// Notes newly held partitions and makes their cached rows exact.
    async fn hold(
        &mut self,
        transaction: &mut dyn Transaction,
        cache: &Cache,
        wanted: &[PartitionId],
    ) -> Result<(), End> {
        let rows: Vec<PartitionRow> = transaction.partitions().to_vec();
        for id in wanted {
            let row = rows.iter().find(|row| row.id == *id).cloned();
            if let Some(row) = &row {
                let cached = self.refresh(transaction, cache.take(*id), row).await?;
                for (key, entry) in &cached.rows {
                    self.rows.points.insert(key.clone(), entry.clone());
                }
                self.caches.insert(*id, cached);
            }
            self.held.insert(*id, row);
        }
        Ok(())
    }

    async fn refresh(
        &mut self,
        transaction: &mut dyn Transaction,
        cached: Option<CachedRows>,
        row: &PartitionRow,
    ) -> Result<CachedRows, End> {
        let Some(mut cached) = cached else {
            metrics::counter!("anabranch_row_cache_total", "result" => "absent").increment(1);
            return Ok(CachedRows::empty(row));
        };
        if cached.commit == row.last_commit {
            metrics::counter!("anabranch_row_cache_total", "result" => "current").increment(1);
            return Ok(cached);
        }
        let changed = transaction
            .changed_since(row.id, cached.revision, cached.commit)
            .await?;
        let Some(changed) = changed else {
            metrics::counter!("anabranch_row_cache_total", "result" => "forgotten").increment(1);
            return Ok(CachedRows::empty(row));
        };
        metrics::counter!("anabranch_row_cache_total", "result" => "refreshed").increment(1);
        for key in changed {
            cached.rows.remove(&key);
        }
        cached.commit = row.last_commit;
        cached.revision = row.last_revision;
        Ok(cached)
    }

    async fn read(
        &mut self,
        transaction: &mut dyn Transaction,
        mut reads: Vec<Read>,
    ) -> Result<(), End> {
        reads.retain(|read| !self.rows.knows(read));
        if reads.is_empty() {
            return Ok(());
        }
        let answers = transaction.read(At::Latest, &reads).await?;
        for (read, answer) in reads.into_iter().zip(answers) {
            self.rows.add(read, answer);
        }
        Ok(())
    }

    async fn answer(
        &mut self,
        transaction: &mut dyn Transaction,
        cache: &Cache,
        submission: &Submission,
    ) -> Result<Reply, End> {
        if let Some(replayed) = self.recorded(submission) {
            return Ok(replayed);
        }
        for _ in 0..MAX_ROUNDS {
            let clock = self.held.values().flatten().map(|row| row.clock).max();
            let clock = clock.unwrap_or_default().max(self.writes.last_revision());
            let revision = Revision::after(clock, self.now);
            let context = Context {
                now: self.now,
                revision,
                principal: &submission.principal,
            };
            let mut view = View::new(&self.rows, &self.held, self.writes.overlay(), revision);
            let applied = catch_unwind(AssertUnwindSafe(|| {
                submission.command.apply(&mut view, &context)
            }));
            let effects = view.into_effects();
            match applied {
                Ok(Ok(outcome)) => return Ok(self.accept(submission, outcome, effects, revision)),
                Ok(Err(Stop::Refuse(refusal))) => {
                    let reply = Err(RunError::Refused(refusal));
                    self.record_answer(submission, &reply);
                    return Ok(reply);
                }
                Ok(Err(Stop::Stale)) => return Ok(Err(RunError::Stale)),
                Ok(Err(Stop::Read(reads))) => self.read(transaction, reads).await?,
                Ok(Err(Stop::Hold(more))) => self.hold_more(transaction, cache, more).await?,
                Err(_) => {
                    tracing::error!(command = submission.command.name(), "command panicked");
                    return Ok(Err(RunError::Failed));
                }
            }
        }
        tracing::error!(command = submission.command.name(), "command never decides");
        Ok(Err(RunError::Failed))
    }

    fn recorded(&self, submission: &Submission) -> Option<Reply> {
        let operation = submission.operation.as_ref()?;
        let in_batch = self.writes.overlay().operations.get(&operation.key);
        let record = match in_batch {
            Some(record) => record,
            None => self.rows.operations.get(&operation.key)?.as_ref()?,
        };
        Some(replay(record, operation, &submission.principal))
    }

    async fn hold_more(
        &mut self,
        transaction: &mut dyn Transaction,
        cache: &Cache,
        mut more: Vec<PartitionId>,
    ) -> Result<(), End> {
        more.sort_unstable();
        more.dedup();
        more.retain(|id| !self.held.contains_key(id));
        let highest_held = self.held.keys().next_back();
        let in_order = more
            .first()
            .is_none_or(|lowest| highest_held.is_none_or(|highest| lowest > highest));
        if !in_order {
            return Err(End::Widen(more));
        }
        transaction.lock(&more).await?;
        self.hold(transaction, cache, &more).await
    }

    fn accept(
        &mut self,
        submission: &Submission,
        outcome: serde_json::Value,
        effects: Effects,
        revision: Revision,
    ) -> Reply {
        let derived = effects.derived_operations.clone();
        self.writes.accept(effects, revision, &submission.principal);
        let reply = Ok(Accepted {
            outcome,
            revision,
            branch: submission.command.branch(),
            replayed: false,
        });
        self.record_answer(submission, &reply);
        for (key, fingerprint) in derived {
            self.record(&submission.principal, key, fingerprint, &reply);
        }
        reply
    }

    fn record_answer(&mut self, submission: &Submission, reply: &Reply) {
        if let Some(operation) = &submission.operation {
            self.record(
                &submission.principal,
                operation.key.clone(),
                operation.fingerprint.clone(),
                reply,
            );
        }
    }

    fn record(&mut self, principal: &str, key: String, fingerprint: String, reply: &Reply) {
        let answer = Recorded::of(reply)
            .and_then(|recorded| serde_json::to_string(&recorded).ok())
            .unwrap_or_default();
        let kept = i64::try_from(self.retention.as_micros()).unwrap_or(i64::MAX);
        self.writes.record(OperationRecord {
            key,
            principal: principal.to_owned(),
            fingerprint,
            state: OperationState::Done,
            answer,
            at: self.now,
            expires: self.now.plus_micros(kept),
        });
    }

    /// Writes and commits, and puts the cached rows back once that is known.
    async fn conclude(
        mut self,
        transaction: Box<dyn Transaction>,
        cache: &Cache,
        replies: Vec<Reply>,
    ) -> End {
        if self.writes.is_empty() {
            transaction.rollback().await;
            self.keep_rows(cache);
            return End::Done(replies);
        }
        let Some(set) = self.writes.finish(&self.held) else {
            transaction.rollback().await;
            return End::NotApplied(StoreError::Failed {
                detail: "a command changed a partition that it did not hold".to_owned(),
            });
        };
        match transaction.commit(&set).await {
            Ok(()) => {
                for row in set.partitions {
                    if let Some(cached) = self.caches.get_mut(&row.id) {
                        cached.commit = row.last_commit;
                        cached.revision = row.last_revision;
                    }
                }
                self.keep_rows(cache);
                End::Done(replies)
            }
            Err(StoreError::Unknown { detail }) => {
                tracing::warn!(detail, "the answer to a commit is missing");
                metrics::counter!("anabranch_lost_commit_answers_total").increment(1);
                End::Unknown {
                    replies,
                    witness: self.writes.witness(),
                    held: self.held.keys().copied().collect(),
                }
            }
            Err(error) => error.into(),
        }
    }

    fn keep_rows(&mut self, cache: &Cache) {
        let mut newest: HashMap<Key, Option<Entry>> = std::mem::take(&mut self.rows.points);
        newest.extend(self.writes.overlay().entries.clone());
        for (key, entry) in newest {
            if let Some(cached) = self.caches.get_mut(&key.partition) {
                cached.rows.insert(key, entry);
            }
        }
        for (id, cached) in self.caches.drain() {
            cache.put(id, cached);
        }
    }
}
