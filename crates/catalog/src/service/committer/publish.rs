//! From planned jobs to answers: files stored, commands run, outcomes settled.

use std::sync::Arc;

use anabranch_partition::{Accepted, Reason, RecordedAnswer, Refusal, RunError};
use anabranch_store::BranchState;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use futures::stream::{self, StreamExt};

use super::plan::Planned;
use super::{Committer, FILES_AT_ONCE, FILES_OF_ONE_AT_ONCE, Job, NamedEdit, reply};
use crate::body::PointerBody;
use crate::command::{CommitPointers, Published};
use crate::error::CatalogError;
use crate::reference::body::state_name;
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
        let puts: Vec<BoxFuture<'_, _>> = planned
            .files()
            .map(|file| {
                let bytes = file.document.bytes().clone();
                files.put_new(&file.location, bytes).boxed()
            })
            .collect();
        // All of them end before any failure is told: none may be on its way when the others are
        // discarded.
        let stored: Vec<_> = stream::iter(puts)
            .buffered(FILES_OF_ONE_AT_ONCE)
            .collect()
            .await;
        let stored: Result<Vec<()>, _> = stored.into_iter().collect();
        stored.map_err(|error| CatalogError::unwritten(&error))?;
        Ok(())
    }

    /// Answers a job by what became of its command, or gives it back to be prepared again.
    async fn settle(
        &self,
        planned: Planned,
        outcome: Result<Accepted<Vec<Published>>, RunError>,
    ) -> Option<Job> {
        match outcome {
            Ok(accepted) if accepted.replayed => {
                self.discard_but(&planned, &accepted.outcome).await;
                self.answer_again(planned.ready.job, accepted.outcome).await;
                None
            }
            // The state that such a commit belongs to is an earlier one: it is read.
            Ok(accepted) if planned.changes_nothing_somewhere() => {
                self.answer_again(planned.ready.job, accepted.outcome).await;
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
        self.discard_but(planned, &[]).await;
    }

    /// The same, but what an earlier request published stays, whatever is thought of this one.
    async fn discard_but(&self, planned: &Planned, published: &[Published]) {
        let settings = &planned.ready.catalog.settings;
        let files = self.core.files.with_settings(settings);
        let bodies = published.iter();
        let bodies = bodies.map(|one| serde_json::from_str::<PointerBody>(&one.body));
        let Ok(bodies) = bodies.collect::<Result<Vec<_>, _>>() else {
            // Which files they are can't be read: all stay for the sweep.
            return;
        };
        let is_published =
            |location: &str| bodies.iter().any(|body| body.metadata_location == location);
        let stored = planned.files();
        for file in stored.filter(|file| !is_published(file.location.as_str())) {
            if let Err(error) = files.delete(&file.location).await {
                // The sweep finds it later.
                tracing::debug!(detail = error.detail(), "a left-over file stays for now");
            }
        }
    }

    async fn answer_with_committed(&self, planned: Planned, accepted: &Accepted<Vec<Published>>) {
        let settings = Arc::new(planned.ready.catalog.settings);
        let mut committed = Vec::with_capacity(planned.prepared.len());
        let edits = planned.ready.job.edits.iter();
        let edits = edits.zip(&planned.ready.located);
        for (((edit, located), prepared), published) in
            edits.zip(planned.prepared).zip(&accepted.outcome)
        {
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
                    object: published.object,
                    // Not the predicted one: a rename there and back leaves the content as it was.
                    version: published.version,
                    metadata_location: after.pointer.metadata_location,
                    location: after.pointer.location,
                    settings: settings.clone(),
                    is_shared: located.is_shared(),
                    revision: state_name(BranchState {
                        branch: prepared.change.database.map().1,
                        revision: accepted.revision,
                    }),
                },
                document: after.document,
            });
        }
        reply(planned.ready.job, Ok(committed));
    }

    /// Answers with success: the request was applied before. A table that still stands under its
    /// name is shown as it is now, one that was dropped, renamed or replaced since as the request
    /// left it. If neither can be read, no error may say that nothing was changed.
    async fn answer_again(&self, job: Job, published: Vec<Published>) {
        let mut current = Vec::with_capacity(job.edits.len());
        for (edit, published) in job.edits.iter().zip(&published) {
            match self.current(&job, edit, published).await {
                Ok(committed) => current.push(committed),
                Err(_) => return reply(job, Err(RunError::Unknown.into())),
            }
        }
        reply(job, Ok(current));
    }

    async fn current(
        &self,
        job: &Job,
        edit: &NamedEdit,
        published: &Published,
    ) -> Result<Committed, CatalogError> {
        self.core
            .committed_before(&job.warehouse, &edit.identifier, edit.kind, published)
            .await
    }

    /// A request that would be refused may be one that was applied before and whose answer was
    /// lost: then it is answered with success. Else the refusal is given, and kept under the
    /// request's key.
    pub(super) async fn settle_refusal(&self, job: Job, refusal: Refusal, derived: Vec<String>) {
        match self.was_applied(&job, &derived).await {
            Ok(None) => {}
            Ok(Some(published)) => {
                metrics::counter!("anabranch_recognised_total").increment(1);
                return self.answer_again(job, published).await;
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
            Ok(accepted) => match serde_json::from_value(accepted.outcome) {
                Ok(published) => self.answer_again(job, published).await,
                Err(_) => reply(job, Err(RunError::Unknown.into())),
            },
            Err(error) => reply(job, Err(error)),
        }
    }

    /// What an earlier, equal request by the same principal published, if there was one.
    async fn was_applied(
        &self,
        job: &Job,
        derived: &[String],
    ) -> Result<Option<Vec<Published>>, RunError> {
        for key in derived {
            let earlier = self.core.partitions.recorded(key).await?;
            let equal = earlier.filter(|record| {
                record.fingerprint == job.caller.fingerprint
                    && record.principal == job.caller.principal
            });
            if let Some(RecordedAnswer::Outcome(outcome)) = equal.map(|record| record.answer) {
                let published = serde_json::from_value(outcome).map_err(|_| RunError::Unknown)?;
                return Ok(Some(published));
            }
        }
        Ok(None)
    }
}
