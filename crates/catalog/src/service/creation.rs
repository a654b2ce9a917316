//! Creations that may never be: what tells their files from those of tables that were dropped.
//!
//! Before the first file of a new table is stored, a task that would remove it is noted. The
//! commit that makes the table ends the task in the same SQL transaction. So a task that comes due
//! belongs to a creation that never was, and that no commit can complete any more.

use std::collections::HashSet;

use anabranch_files::{Location, StorageSettings};
use anabranch_partition::RunError;
use anabranch_store::{StoreTime, Task, TaskId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::CatalogError;
use crate::place::Container;
use crate::service::Core;

/// The job that removes the files of a creation that never was.
pub(crate) const FORGET_TASK: &str = "forget";

/// The note of one creation.
#[derive(Clone, Debug)]
pub(crate) struct Creation {
    pub(crate) task: TaskId,
    left: LeftOver,
}

/// What the job has to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LeftOver {
    pub(crate) catalog: Container,
    locations: Vec<String>,
}

impl Creation {
    pub(crate) fn new(catalog: Container, locations: Vec<String>) -> Creation {
        Creation {
            task: TaskId(Uuid::new_v4()),
            left: LeftOver { catalog, locations },
        }
    }
}

impl Core {
    pub(crate) async fn note_creation(
        &self,
        creation: &Creation,
        now: StoreTime,
    ) -> Result<(), CatalogError> {
        let grace = i64::try_from(self.limits.sweep_grace.as_micros()).unwrap_or(i64::MAX);
        let task = Task {
            id: creation.task,
            kind: FORGET_TASK.to_owned(),
            body: serde_json::to_string(&creation.left).unwrap_or_default(),
            due: now.plus_micros(grace),
            attempts: 0,
        };
        let noted = self.partitions.store().ensure_task(&task).await;
        noted.map_err(|error| {
            tracing::warn!(%error, "a creation can't be noted");
            match RunError::from_store(&error) {
                // Nothing was created yet, whatever became of the note.
                RunError::Unknown => RunError::Unavailable.into(),
                known => known.into(),
            }
        })
    }

    /// Removes the files, unless something names them all the same; answers how many there were.
    pub(crate) async fn forget(
        &self,
        left: &LeftOver,
        settings: &StorageSettings,
    ) -> Result<usize, CatalogError> {
        let files = self.files.with_settings(settings);
        let inventory = self.inventory().await?;
        let named: HashSet<String> = inventory
            .iter()
            .filter_map(|held| Location::parse(&held.pointer.metadata_location).ok())
            .map(|location| location.canonical())
            .collect();
        for location in left
            .locations
            .iter()
            .filter_map(|text| Location::parse(text).ok())
        {
            if named.contains(&location.canonical()) {
                continue;
            }
            let deleted = files.delete(&location).await;
            deleted.map_err(|error| CatalogError::unreadable(&error))?;
        }
        Ok(left.locations.len())
    }
}
