//! From waiting jobs to planned ones: names resolved, metadata loaded, the chain computed.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use anabranch_files::Location;
use anabranch_partition::{Refusal, RunError};
use anabranch_store::{Kind, ObjectId, Resolved, StoreTime};
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use uuid::Uuid;

use super::chain::Chain;
use super::{Committer, FILES_AT_ONCE, Job, reply};
use crate::body::{self, PointerBody};
use crate::command::{Becomes, Expected};
use crate::error::CatalogError;
use crate::name::Identifier;
use crate::place::Map;
use crate::service::creation::Creation;
use crate::service::lookup::{FoundCatalog, absent_at, found_catalog, found_database, table_path};
use crate::service::pointers::PointerKind;
use crate::service::prepare::{Edit, Ground, NewFile, Prepared, Standing, derived_keys, prepare};
use crate::service::reach::Located;

/// What a job's names resolved to.
pub(super) struct Ready {
    pub(super) job: Job,
    pub(super) catalog: FoundCatalog,
    pub(super) located: Vec<Located>,
}

impl Ready {
    /// The store's time when the names were resolved.
    pub(super) fn now(&self) -> StoreTime {
        let first = self.located.first();
        first.map(|one| one.resolved.now).unwrap_or_default()
    }
}

/// A job whose files are ready to be stored.
pub(super) struct Planned {
    pub(super) ready: Ready,
    pub(super) prepared: Vec<Prepared>,
    pub(super) derived: Vec<String>,
    /// That something is being created here, if so.
    pub(super) note: Option<Creation>,
}

impl Planned {
    fn new(ready: Ready, prepared: Vec<Prepared>, derived: Vec<String>) -> Planned {
        let created = prepared
            .iter()
            .filter(|one| one.change.expected == Expected::Absent);
        let files = created.filter_map(|one| one.file.as_ref());
        let locations: Vec<String> = files
            .map(|file| file.location.as_str().to_owned())
            .collect();
        let note = (!locations.is_empty())
            .then(|| Creation::new(ready.catalog.container.clone(), locations));
        Planned {
            ready,
            prepared,
            derived,
            note,
        }
    }

    /// Places with files that are there already and that this makes tables of.
    pub(super) fn adopted(&self) -> Vec<Location> {
        let edits = self.ready.job.edits.iter();
        let places = edits.filter_map(|edit| match &edit.edit {
            Edit::Register {
                location,
                metadata_location,
                ..
            } => Some([location, metadata_location]),
            _ => None,
        });
        places
            .flatten()
            .filter_map(|text| Location::parse(text).ok())
            .collect()
    }

    /// Whether it has tables of some branch, and leaves all of them as they are.
    pub(super) fn changes_nothing_somewhere(&self) -> bool {
        let is_same = |one: &&Prepared| one.change.becomes == Becomes::Same;
        let changed = self.prepared.iter().filter(|one| !is_same(one));
        let changed: HashSet<Map> = changed.map(|one| one.change.database.map()).collect();
        let mut same = self.prepared.iter().filter(is_same);
        same.any(|one| !changed.contains(&one.change.database.map()))
    }

    /// The files that have to be stored before the commit.
    pub(super) fn files(&self) -> impl Iterator<Item = &NewFile> {
        self.prepared.iter().filter_map(|one| one.file.as_ref())
    }
}

impl Committer {
    /// Finds what the names of all jobs stand for, in one statement.
    pub(super) async fn resolve(&self, jobs: Vec<Job>) -> Vec<Ready> {
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
        let mut located = match self.core.locate(paths).await {
            Ok(located) => located.into_iter(),
            Err(error) => {
                for job in jobs {
                    reply(job, Err(error.clone()));
                }
                return Vec::new();
            }
        };
        let mut ready = Vec::with_capacity(jobs.len());
        for job in jobs {
            let own: Vec<Located> = located.by_ref().take(job.edits.len()).collect();
            let first = own.first().cloned().unwrap_or_default();
            match found_catalog(&job.warehouse, &first.resolved) {
                Ok(catalog) => ready.push(Ready {
                    job,
                    catalog,
                    located: own,
                }),
                Err(error) => match error.refusal().cloned() {
                    Some(refusal) => {
                        let edits = job.edits.iter();
                        let derived = edits.flat_map(|edit| derived_keys(&edit.edit, None));
                        let derived = derived.collect();
                        self.settle_refusal(job, refusal, derived).await;
                    }
                    None => reply(job, Err(error)),
                },
            }
        }
        ready
    }

    /// Computes what each job makes of what stands and of the jobs before it. A job that would be
    /// refused because of one before it, which isn't published yet, has to wait: what it would be
    /// refused for may never be.
    pub(super) async fn plan(&self, ready: Vec<Ready>) -> (Vec<Planned>, Vec<Job>) {
        let mut chain = Chain::default();
        self.load_standing(&ready, &mut chain).await;
        let mut planned = Vec::with_capacity(ready.len());
        let mut later = Vec::new();
        for ready in ready {
            // Nothing is published yet: a defect in one job's metadata is that job's alone.
            let planning = AssertUnwindSafe(|| plan_job(&ready, &mut chain));
            let planned_job = catch_unwind(planning).unwrap_or_else(|_| {
                tracing::error!("a commit can't be prepared: its metadata met a defect");
                Err(Failure::Failed(RunError::Failed.into()))
            });
            match planned_job {
                Ok((prepared, derived)) => planned.push(Planned::new(ready, prepared, derived)),
                Err(Failure::Refused(refusal, derived)) => {
                    self.settle_refusal(ready.job, *refusal, derived).await;
                }
                Err(Failure::Failed(error)) => reply(ready.job, Err(error)),
                Err(Failure::RestsOnUnpublished) => later.push(ready.job),
            }
        }
        (planned, later)
    }

    /// Loads the metadata of everything that stands under the names of a batch.
    async fn load_standing(&self, ready: &[Ready], chain: &mut Chain) {
        let mut wanted: HashMap<Identifier, (&FoundCatalog, &Resolved)> = HashMap::new();
        for one in ready {
            for (edit, located) in one.job.edits.iter().zip(&one.located) {
                wanted.insert(edit.identifier.clone(), (&one.catalog, &located.resolved));
            }
        }
        let loads: Vec<BoxFuture<'_, _>> = wanted
            .into_iter()
            .map(|(identifier, (catalog, resolved))| {
                let load = self.load_one(catalog, resolved);
                load.map(|standing| (identifier, standing)).boxed()
            })
            .collect();
        let loaded: Vec<_> = stream::iter(loads)
            .buffer_unordered(FILES_AT_ONCE)
            .collect()
            .await;
        chain.begin(loaded);
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
            Kind::IcebergView => PointerKind::View,
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
            body: entry.body.clone(),
            document,
        }))
    }
}

enum Failure {
    /// With the keys under which an earlier, equal request may have been applied.
    Refused(Box<Refusal>, Vec<String>),
    Failed(CatalogError),
    /// It would be refused because of an earlier job of the batch.
    RestsOnUnpublished,
}

/// Prepares all names of a job on the chain; the chain moves on only if all of them pass.
fn plan_job(ready: &Ready, chain: &mut Chain) -> Result<(Vec<Prepared>, Vec<String>), Failure> {
    let mut prepared = Vec::with_capacity(ready.job.edits.len());
    let mut derived = Vec::new();
    let mut refused = None;
    for (edit, located) in ready.job.edits.iter().zip(&ready.located) {
        let identifier = &edit.identifier;
        let standing = chain.standing(identifier).map_err(Failure::Failed)?;
        derived.extend(derived_keys(&edit.edit, standing));
        let database = match found_database(&identifier.namespace, located) {
            Ok(database) => match database.writable() {
                Ok(database) => database,
                Err(refusal) => {
                    refused.get_or_insert(refusal);
                    continue;
                }
            },
            Err(error) => {
                let refusal = match error.refusal() {
                    Some(refusal) if edit.edit.is_creation() => refusal.clone(),
                    _ => absent_at(edit.kind.subject(), identifier, &error),
                };
                refused.get_or_insert(refusal);
                continue;
            }
        };
        let ground = Ground {
            catalog: &ready.catalog.body,
            database: &database.container,
            now_ms: located.resolved.now.millis(),
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
        if chain.is_ahead_for(ready.job.edits.iter().map(|edit| &edit.identifier)) {
            return Err(Failure::RestsOnUnpublished);
        }
        return Err(Failure::Refused(Box::new(refusal), derived));
    }
    for (edit, one) in ready.job.edits.iter().zip(&prepared) {
        chain.go_on(edit.identifier.clone(), one.after.clone());
    }
    Ok((prepared, derived))
}
