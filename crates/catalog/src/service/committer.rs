//! Commits of tables and views: prepared outside the lock, published by compare and swap.
//!
//! Commits that wait for the same databases are prepared together, as a chain: each on what the
//! one before it makes of the table. Their files are stored side by side, then all are submitted
//! in order. Whoever finds another version under the lock is prepared again.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anabranch_partition::{Accepted, Reason, Refusal, RunError};
use anabranch_store::{Answer, ObjectId, PartitionId, Read, Resolved, StoreTime};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use futures::stream::{self, StreamExt};
use rand::Rng;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::body::{self, PointerBody};
use crate::command::CommitPointers;
use crate::error::CatalogError;
use crate::name::{Identifier, Warehouse};
use crate::place::no_namespace;
use crate::service::Core;
use crate::service::caller::Caller;
use crate::service::lookup::{
    FoundCatalog, found_catalog, found_database, reference_revision, table_path,
};
use crate::service::pointers::{Pointer, PointerKind};
use crate::service::prepare::{
    Chain, Committed, Edit, Ground, Prepared, Standing, derived_keys, prepare,
};

/// Commits prepared together, at most.
const BATCH: usize = 128;
/// Files stored side by side, at most.
const WRITES: usize = 32;
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

/// What a job's names resolved to.
struct Ready {
    job: Job,
    catalog: FoundCatalog,
    resolved: Vec<Resolved>,
}

/// A job whose files are ready to be stored.
struct Planned {
    ready: Ready,
    prepared: Vec<Prepared>,
    derived: Vec<String>,
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
            again = self.run_batch(batch).await;
            if let Some(most) = again.iter().map(|job| job.tries).max() {
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
                self.settle_refusal(job, refusal, Vec::new()).await;
            } else if job.deadline <= Instant::now() {
                reply(job, Err(CatalogError::Run(RunError::Overloaded)));
            } else {
                waiting.push(job);
            }
        }
        let ready = self.resolve(waiting).await;
        let Some(now) = self.store_time(&ready).await else {
            for ready in ready {
                reply(ready.job, Err(CatalogError::Run(RunError::Unavailable)));
            }
            return Vec::new();
        };
        let planned = self.plan(ready, now).await;
        self.publish(planned, now).await
    }

    /// Finds what the names of all jobs stand for, in one statement.
    async fn resolve(&self, jobs: Vec<Job>) -> Vec<Ready> {
        let paths: Vec<_> = jobs
            .iter()
            .flat_map(|job| {
                job.edits
                    .iter()
                    .map(|edit| table_path(&job.warehouse, &edit.identifier))
            })
            .collect();
        if paths.is_empty() {
            return Vec::new();
        }
        let mut resolved = match self.core.partitions.resolve(&paths).await {
            Ok(resolved) => resolved.into_iter(),
            Err(error) => {
                for job in jobs {
                    reply(job, Err(error.clone().into()));
                }
                return Vec::new();
            }
        };
        let mut ready = Vec::with_capacity(jobs.len());
        for job in jobs {
            let own: Vec<Resolved> = resolved.by_ref().take(job.edits.len()).collect();
            let first = own.first().cloned().unwrap_or_default();
            match found_catalog(&job.warehouse, &first) {
                Ok(catalog) => ready.push(Ready {
                    job,
                    catalog,
                    resolved: own,
                }),
                Err(error) => reply(job, Err(error)),
            }
        }
        ready
    }

    async fn store_time(&self, ready: &[Ready]) -> Option<StoreTime> {
        if ready.is_empty() {
            return Some(StoreTime(0));
        }
        match self.core.partitions.store().now().await {
            Ok(now) => Some(now),
            Err(error) => {
                tracing::warn!(%error, "the store's time can't be read");
                None
            }
        }
    }

    /// Computes what each job makes of what stands and of the jobs before it.
    async fn plan(&self, ready: Vec<Ready>, now: StoreTime) -> Vec<Planned> {
        let mut chain = Chain::default();
        self.load_standing(&ready, &mut chain).await;
        let mut planned = Vec::with_capacity(ready.len());
        for ready in ready {
            match plan_job(&ready, &mut chain, now) {
                Ok((prepared, derived)) => planned.push(Planned {
                    ready,
                    prepared,
                    derived,
                }),
                Err(Failure::Refused(refusal, derived)) => {
                    self.settle_refusal(ready.job, refusal, derived).await;
                }
                Err(Failure::Failed(error)) => reply(ready.job, Err(error)),
            }
        }
        planned
    }

    /// Loads the metadata of everything that stands under the names of a batch.
    async fn load_standing(&self, ready: &[Ready], chain: &mut Chain) {
        let mut wanted: HashMap<Identifier, (&FoundCatalog, &Resolved)> = HashMap::new();
        for one in ready {
            for (edit, resolved) in one.job.edits.iter().zip(&one.resolved) {
                wanted.insert(edit.identifier.clone(), (&one.catalog, resolved));
            }
        }
        let loads: Vec<BoxFuture<'_, _>> = wanted
            .into_iter()
            .map(|(identifier, (catalog, resolved))| {
                let load = self.load_one(catalog, resolved);
                load.map(|standing| (identifier, standing)).boxed()
            })
            .collect();
        let loaded: Vec<_> = stream::iter(loads).buffer_unordered(WRITES).collect().await;
        chain.standing.extend(loaded);
    }

    async fn load_one(
        &self,
        catalog: &FoundCatalog,
        resolved: &Resolved,
    ) -> Result<Option<Standing>, CatalogError> {
        let Some(entry) = &resolved.leaf else {
            return Ok(None);
        };
        let kind = match entry.kind {
            anabranch_store::Kind::IcebergView => PointerKind::View,
            _ => PointerKind::Table,
        };
        let pointer: PointerBody = body::read(entry)?;
        let document = self
            .core
            .document(&pointer.metadata_location, &catalog.settings)
            .await?;
        Ok(Some(Standing {
            kind,
            object: entry.object,
            version: entry.version,
            pointer,
            document,
        }))
    }

    /// Stores the files, then submits the commits in order.
    async fn publish(&self, planned: Vec<Planned>, now: StoreTime) -> Vec<Job> {
        let writes: Vec<BoxFuture<'_, _>> = planned
            .iter()
            .map(|planned| self.store_files(planned).boxed())
            .collect();
        let stored: Vec<_> = stream::iter(writes).buffered(WRITES).collect().await;
        let mut submitted = Vec::new();
        for (planned, stored) in planned.into_iter().zip(stored) {
            match stored {
                Ok(()) => submitted.push(planned),
                Err(error) => {
                    self.discard(&planned).await;
                    reply(planned.ready.job, Err(error));
                }
            }
        }
        let half_grace = self.core.limits.sweep_grace.as_micros() / 2;
        let valid_until = now.plus_micros(i64::try_from(half_grace).unwrap_or(i64::MAX));
        let runs: Vec<BoxFuture<'_, _>> = submitted
            .iter()
            .map(|planned| {
                let command = CommitPointers {
                    changes: planned
                        .prepared
                        .iter()
                        .map(|one| one.change.clone())
                        .collect(),
                    derived: planned.derived.clone(),
                    fingerprint: planned.ready.job.caller.fingerprint.clone(),
                    valid_until,
                };
                let partitions = command.partitions();
                self.core
                    .run(&planned.ready.job.caller, partitions, command)
                    .boxed()
            })
            .collect();
        let outcomes = join_all(runs).await;
        let mut again = Vec::new();
        for (planned, outcome) in submitted.into_iter().zip(outcomes) {
            again.extend(self.settle(planned, outcome).await);
        }
        again
    }

    async fn store_files(&self, planned: &Planned) -> Result<(), CatalogError> {
        let files = self
            .core
            .files
            .with_settings(&planned.ready.catalog.settings);
        for file in planned.prepared.iter().filter_map(|one| one.file.as_ref()) {
            let bytes = file.document.bytes().clone();
            files
                .put_new(&file.location, bytes)
                .await
                .map_err(|error| {
                    tracing::warn!(
                        detail = error.detail(),
                        "a metadata document can't be stored"
                    );
                    CatalogError::Storage {
                        message: error.to_string(),
                    }
                })?;
        }
        Ok(())
    }

    /// Answers a job by what became of its command, or gives it back to be prepared again.
    async fn settle(
        &self,
        planned: Planned,
        outcome: Result<Accepted<()>, RunError>,
    ) -> Option<Job> {
        match outcome {
            Ok(accepted) if accepted.replayed => {
                self.discard(&planned).await;
                self.answer_with_current(planned.ready.job).await;
                None
            }
            Ok(accepted) => {
                self.answer_with_committed(planned, &accepted).await;
                None
            }
            Err(RunError::Stale) => {
                metrics::counter!("anabranch_conflicts_total", "reason" => "stale").increment(1);
                self.discard(&planned).await;
                let mut job = planned.ready.job;
                job.tries += 1;
                Some(job)
            }
            Err(error) => {
                let error = CatalogError::Run(error);
                if error.is_known_not_applied() {
                    self.discard(&planned).await;
                }
                reply(planned.ready.job, Err(error));
                None
            }
        }
    }

    /// Deletes files that were stored for a change that is known not to have been applied.
    async fn discard(&self, planned: &Planned) {
        let files = self
            .core
            .files
            .with_settings(&planned.ready.catalog.settings);
        for file in planned.prepared.iter().filter_map(|one| one.file.as_ref()) {
            if let Err(error) = files.delete(&file.location).await {
                // The sweep finds it later.
                tracing::debug!(detail = error.detail(), "a left-over file stays for now");
            }
        }
    }

    async fn answer_with_committed(&self, planned: Planned, accepted: &Accepted<()>) {
        let settings = Arc::new(planned.ready.catalog.settings);
        let mut committed = Vec::with_capacity(planned.prepared.len());
        for (edit, prepared) in planned.ready.job.edits.iter().zip(planned.prepared) {
            if let Some(file) = &prepared.file {
                let weight = file.document.bytes().len() as u64;
                self.core
                    .documents
                    .insert(&file.location, &settings, file.document.clone(), weight)
                    .await;
            }
            let after = prepared.after;
            committed.push(Committed {
                pointer: Pointer {
                    identifier: edit.identifier.clone(),
                    kind: edit.kind,
                    object: after.object,
                    version: after.version,
                    metadata_location: after.pointer.metadata_location,
                    location: after.pointer.location,
                    settings: settings.clone(),
                    revision: reference_revision(accepted.revision),
                },
                document: after.document,
            });
        }
        reply(planned.ready.job, Ok(committed));
    }

    /// Answers with success and what stands now: the request was applied before.
    async fn answer_with_current(&self, job: Job) {
        let mut current = Vec::with_capacity(job.edits.len());
        for edit in &job.edits {
            let loaded = self
                .core
                .pointer(&job.warehouse, &edit.identifier, edit.kind)
                .await;
            let pointer = match loaded {
                Ok(pointer) => pointer,
                Err(error) => return reply(job, Err(error)),
            };
            let document = self
                .core
                .document(&pointer.metadata_location, &pointer.settings)
                .await;
            match document {
                Ok(document) => current.push(Committed { pointer, document }),
                Err(error) => return reply(job, Err(error)),
            }
        }
        reply(job, Ok(current));
    }

    /// A request that would be refused may be one that was applied before and whose answer was
    /// lost: then it is answered with success. Else the refusal is given, and kept under the
    /// request's key.
    async fn settle_refusal(&self, job: Job, refusal: Refusal, derived: Vec<String>) {
        if self.was_applied(&job, &derived).await {
            metrics::counter!("anabranch_recognised_total").increment(1);
            return self.answer_with_current(job).await;
        }
        if matches!(refusal.reason, Reason::Conflict) {
            metrics::counter!("anabranch_conflicts_total", "reason" => "requirement").increment(1);
        }
        let partitions: Vec<PartitionId> = Vec::new();
        match self
            .core
            .refuse(&job.caller, partitions, refusal.into())
            .await
        {
            Ok(_) => self.answer_with_current(job).await,
            Err(error) => reply(job, Err(error)),
        }
    }

    async fn was_applied(&self, job: &Job, derived: &[String]) -> bool {
        let reads: Vec<Read> = derived.iter().cloned().map(Read::Operation).collect();
        if reads.is_empty() {
            return false;
        }
        let Ok(answers) = self.core.partitions.read(&reads).await else {
            return false;
        };
        answers.iter().any(|answer| {
            matches!(answer, Answer::Operation(Some(record))
                if record.fingerprint == job.caller.fingerprint
                    && record.principal == job.caller.principal)
        })
    }
}

enum Failure {
    Refused(Refusal, Vec<String>),
    Failed(CatalogError),
}

/// Prepares all names of a job on the chain; the chain moves on only if all of them pass.
fn plan_job(
    ready: &Ready,
    chain: &mut Chain,
    now: StoreTime,
) -> Result<(Vec<Prepared>, Vec<String>), Failure> {
    let mut prepared = Vec::with_capacity(ready.job.edits.len());
    let mut derived = Vec::new();
    let mut refused = None;
    for (edit, resolved) in ready.job.edits.iter().zip(&ready.resolved) {
        let identifier = &edit.identifier;
        let standing = match chain.standing.get(identifier) {
            Some(Ok(standing)) => standing.as_ref(),
            Some(Err(error)) => return Err(Failure::Failed(error.clone())),
            None => None,
        };
        derived.extend(derived_keys(&edit.edit, standing));
        let database = match found_database(&identifier.namespace, resolved) {
            Ok(database) => database,
            Err(error) => {
                let missing = || no_namespace(&identifier.namespace);
                let refusal = error.refusal().cloned().unwrap_or_else(missing);
                refused.get_or_insert(refusal);
                continue;
            }
        };
        let ground = Ground {
            catalog: &ready.catalog.body,
            database: &database.container,
            now_ms: now.millis(),
            object: ObjectId::new(rand::random()),
            file: Uuid::now_v7(),
        };
        match prepare(identifier, edit.kind, &edit.edit, standing, &ground) {
            Ok(one) => prepared.push(one),
            Err(refusal) => {
                refused.get_or_insert(refusal);
            }
        }
    }
    if let Some(refusal) = refused {
        return Err(Failure::Refused(refusal, derived));
    }
    for (edit, one) in ready.job.edits.iter().zip(&prepared) {
        let after = Some(one.after.clone());
        chain.standing.insert(edit.identifier.clone(), Ok(after));
    }
    Ok((prepared, derived))
}

fn reply(job: Job, result: Result<Vec<Committed>, CatalogError>) {
    // The caller may have stopped waiting; the commit was settled all the same.
    let _ = job.reply.send(result);
}
