//! From planned jobs to answers: files stored, commands run, outcomes settled.

use std::sync::Arc;

use anabranch_partition::{Accepted, Reason, Refusal, RunError};
use anabranch_store::{Answer, Read};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use futures::stream::{self, StreamExt};

use super::plan::Planned;
use super::{Committer, FILES_AT_ONCE, Job, NamedEdit, reply};
use crate::command::CommitPointers;
use crate::error::CatalogError;
use crate::service::lookup::reference_revision;
use crate::service::pointers::Pointer;
use crate::service::prepare::Committed;

impl Committer {
    /// Stores the files, then submits the commits in order.
    pub(super) async fn publish(&self, planned: Vec<Planned>) -> Vec<Job> {
        let writes: Vec<BoxFuture<'_, _>> = planned
            .iter()
            .map(|planned| self.store_files(planned).boxed())
            .collect();
        let stored: Vec<_> = stream::iter(writes).buffered(FILES_AT_ONCE).collect().await;
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
        let runs: Vec<BoxFuture<'_, _>> = submitted
            .iter()
            .map(|planned| {
                let command = self.command(planned);
                let partitions = command.partitions();
                let caller = &planned.ready.job.caller;
                self.core.run(caller, partitions, command).boxed()
            })
            .collect();
        let outcomes = join_all(runs).await;
        let mut again = Vec::new();
        for (planned, outcome) in submitted.into_iter().zip(outcomes) {
            again.extend(self.settle(planned, outcome).await);
        }
        again
    }

    fn command(&self, planned: &Planned) -> CommitPointers {
        let half_grace = self.core.limits.sweep_grace.as_micros() / 2;
        let half_grace = i64::try_from(half_grace).unwrap_or(i64::MAX);
        let changes = planned.prepared.iter().map(|one| one.change.clone());
        CommitPointers {
            changes: changes.collect(),
            adopted: planned.adopted(),
            derived: planned.derived.clone(),
            fingerprint: planned.ready.job.caller.fingerprint.clone(),
            forget: planned.note.as_ref().map(|note| note.task),
            valid_until: planned.ready.now().plus_micros(half_grace),
        }
    }

    async fn store_files(&self, planned: &Planned) -> Result<(), CatalogError> {
        if let Some(note) = &planned.note {
            self.core.note_creation(note, planned.ready.now()).await?;
        }
        let settings = &planned.ready.catalog.settings;
        let files = self.core.files.with_settings(settings);
        for file in planned.files() {
            let bytes = file.document.bytes().clone();
            let stored = files.put_new(&file.location, bytes).await;
            stored.map_err(|error| CatalogError::unwritten(&error))?;
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
        let settings = &planned.ready.catalog.settings;
        let files = self.core.files.with_settings(settings);
        for file in planned.files() {
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
                let documents = &self.core.documents;
                let weight = file.document.bytes().len() as u64;
                let document = file.document.clone();
                documents
                    .insert(&file.location, &settings, document, weight)
                    .await;
                if let Some(replaced) = &file.replaces {
                    documents.invalidate(replaced, &settings).await;
                }
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

    /// Answers with success and what stands now: the request was applied before. A table that was
    /// dropped or renamed since is left out. If what stands can't be read, no error may say that
    /// nothing was changed.
    async fn answer_with_current(&self, job: Job) {
        let mut current = Vec::with_capacity(job.edits.len());
        for edit in &job.edits {
            match self.current(&job, edit).await {
                Ok(committed) => current.push(committed),
                Err(error) if error.refusal().is_some() => {}
                Err(_) => return reply(job, Err(RunError::Unknown.into())),
            }
        }
        reply(job, Ok(current));
    }

    async fn current(&self, job: &Job, edit: &NamedEdit) -> Result<Committed, CatalogError> {
        let core = &self.core;
        let pointer = core
            .pointer(&job.warehouse, &edit.identifier, edit.kind)
            .await?;
        let document = core
            .document(&pointer.metadata_location, &pointer.settings)
            .await?;
        Ok(Committed { pointer, document })
    }

    /// A request that would be refused may be one that was applied before and whose answer was
    /// lost: then it is answered with success. Else the refusal is given, and kept under the
    /// request's key.
    pub(super) async fn settle_refusal(&self, job: Job, refusal: Refusal, derived: Vec<String>) {
        match self.was_applied(&job, &derived).await {
            Ok(false) => {}
            Ok(true) => {
                metrics::counter!("anabranch_recognised_total").increment(1);
                return self.answer_with_current(job).await;
            }
            Err(error) => {
                tracing::warn!(%error, "whether a commit was applied before can't be read");
                return reply(job, Err(RunError::Unknown.into()));
            }
        }
        if matches!(refusal.reason, Reason::Conflict) {
            metrics::counter!("anabranch_conflicts_total", "reason" => "requirement").increment(1);
        }
        match self.core.refuse(&job.caller, refusal.into()).await {
            Ok(_) => self.answer_with_current(job).await,
            Err(error) => reply(job, Err(error)),
        }
    }

    async fn was_applied(&self, job: &Job, derived: &[String]) -> Result<bool, RunError> {
        let reads: Vec<Read> = derived.iter().cloned().map(Read::Operation).collect();
        if reads.is_empty() {
            return Ok(false);
        }
        let answers = self.core.partitions.read(&reads).await?;
        Ok(answers.iter().any(|answer| {
            matches!(answer, Answer::Operation(Some(record))
                if record.fingerprint == job.caller.fingerprint
                    && record.principal == job.caller.principal)
        }))
    }
}
