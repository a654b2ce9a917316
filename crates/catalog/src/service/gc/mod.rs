//! Removes the files that no version which is kept names: the only job that deletes files which
//! several references may share.
//!
//! ```text
//! places of tables ─ list old files ─ take out what kept versions name ─ mark the catalog's places
//!                                                                              │
//!        take the mark away ─ delete ─ take out what came since ─ inventory ◄──┘
//! ```
//!
//! A file goes if it lies below a table's location, is older than the grace period, and no version
//! of any table of the store that stands on a branch or can still be read names it. Files are
//! listed before the last inventory is taken, so what a commit brings meanwhile isn't among them;
//! the mark keeps metadata that lies there from being registered after that inventory. What can't
//! be read keeps all files of its table.

mod body;
mod needed;
mod places;
mod run;

use std::time::Duration;

use anabranch_partition::{Reason, Refusal, RunError, Subject};
use anabranch_store::{PartitionId, StoreTime, Task, TaskId};
use uuid::Uuid;

use crate::error::CatalogError;
use crate::name::Warehouse;
use crate::service::Catalog;

pub(crate) use body::GC_TASK;
pub use body::{FileKind, GcBody, GcFile, GcKept, GcReport, GcState, GcUnreadable, Total};
pub(crate) use run::Collected;

/// The grace period if none is asked for, unless `sweep_grace` is longer.
const DEFAULT_GRACE: Duration = Duration::from_secs(3 * 24 * 3600);

/// A run to be started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewGc {
    /// Only tables of this database.
    pub database: Option<String>,
    /// Only says what would be removed.
    pub dry_run: bool,
    /// How old a file must be; at least [`crate::Limits::sweep_grace`].
    pub grace: Option<Duration>,
}

/// A run as it is known now.
#[derive(Clone, Debug, PartialEq)]
pub struct GcRun {
    /// Names it.
    pub id: Uuid,
    /// What it was asked to do, and how far it is.
    pub body: GcBody,
}

impl Catalog {
    /// Notes a run for whichever server takes it first.
    pub async fn start_gc(
        &self,
        warehouse: &Warehouse,
        new: &NewGc,
    ) -> Result<GcRun, CatalogError> {
        let catalog = self.core.catalog(warehouse).await?;
        let database = match &new.database {
            Some(name) => Some(self.core.versioned(warehouse, name).await?.partition),
            None => None,
        };
        let least = self.core.limits.sweep_grace;
        let grace = new.grace.unwrap_or(DEFAULT_GRACE.max(least));
        if grace < least {
            return Err(Refusal::invalid(format!(
                "`gracePeriodMillis` is less than the server's `sweep-grace`, {} ms: a commit that \
                 is under way may still name younger files; ask for that or more",
                least.as_millis()
            ))
            .into());
        }
        let body = GcBody {
            catalog: catalog.container.partition,
            database,
            dry_run: new.dry_run,
            grace_millis: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
            marks: 0,
            state: GcState::Queued,
            report: GcReport::default(),
        };
        let id = Uuid::new_v4();
        let task = Task {
            id: TaskId(id),
            kind: GC_TASK.to_owned(),
            body: body.write(),
            due: StoreTime(0),
            attempts: 0,
        };
        let noted = self.core.partitions.store().ensure_task(&task).await;
        noted.map_err(|error| RunError::from_store(&error))?;
        Ok(GcRun { id, body })
    }

    /// A run of a catalog. Runs that ended are known for a week.
    pub async fn gc(&self, warehouse: &Warehouse, id: &str) -> Result<GcRun, CatalogError> {
        let catalog = self.core.catalog(warehouse).await?.container.partition;
        let absent = || {
            let message =
                format!("there is no gc {id} of this catalog; it may have ended long ago");
            CatalogError::from(Refusal::new(Reason::NotFound(Subject::Catalog), message))
        };
        let id = Uuid::parse_str(id).map_err(|_| absent())?;
        let task = self.core.partitions.store().task(TaskId(id)).await;
        let task = task.map_err(|error| RunError::from_store(&error))?;
        let body = task
            .filter(|task| task.kind == GC_TASK)
            .and_then(|task| GcBody::read(&task.body))
            .filter(|body| body.catalog == catalog)
            .ok_or_else(absent)?;
        Ok(GcRun { id, body })
    }
}

/// Something that belongs to a catalog: two catalogs may spell different places alike.
type OfCatalog = (PartitionId, String);
