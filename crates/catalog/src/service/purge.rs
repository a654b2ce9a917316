//! Removes the files of purged tables, once nothing that is kept can read them.

use anabranch_files::{Location, StorageSettings};
use anabranch_store::{Answer, BranchId, ObjectId, PartitionId, Read};
use futures::StreamExt;

use crate::body::{self, CatalogBody};
use crate::command::{MarkPurge, Purge};
use crate::error::CatalogError;
use crate::place::Container;
use crate::service::caller::Caller;
use crate::service::inventory::Held;
use crate::service::{Core, location};

/// Files that are listed before it is looked up again who uses them.
const FILES_AT_ONCE: usize = 10_000;

/// What a purge did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purged {
    /// The files are gone; this many were deleted by this run.
    Done(u64),
    /// A retained version or a branch still reads them: later.
    Retained,
    /// They are left where they are: the table is back on `main`, another one lies in the same
    /// place, or the catalog and with it the storage settings are gone.
    Left,
}

impl Core {
    /// Deletes what lies below the location of a dropped table. Every run begins anew, so a crash
    /// in between costs nothing. Files in the place of another table, standing or retained, stay.
    ///
    /// The place is marked first: from then on nobody can register what lies there. Files are
    /// listed before it is looked up who uses them: what a table brings that is created later
    /// isn't among them.
    pub(crate) async fn purge(&self, task: &Purge) -> Result<Purged, CatalogError> {
        let Some((catalog, settings)) = self.reach_of(&task.catalog).await? else {
            return Ok(Purged::Left);
        };
        let Ok(location) = location::allowed_for_table(&catalog, "location", &task.location) else {
            return Ok(Purged::Left);
        };
        let inventory = self.inventory().await?;
        let mut own = inventory.iter().filter(|held| held.object == task.object);
        let is_back = |held: &Held| held.stands && held.key.branch == BranchId::MAIN;
        if own.clone().any(is_back) {
            return Ok(Purged::Left);
        }
        if own.next().is_some() {
            return Ok(Purged::Retained);
        }
        self.mark(task, Some(task.location.clone())).await?;
        let purged = self.remove_files(&location, &settings).await?;
        self.mark(task, None).await?;
        Ok(purged)
    }

    async fn mark(&self, task: &Purge, location: Option<String>) -> Result<(), CatalogError> {
        let command = MarkPurge {
            table: task.object,
            mark: ObjectId::new(rand::random()),
            location,
        };
        let partitions = vec![PartitionId::ROOT];
        self.run(&Caller::server(), partitions, command).await?;
        Ok(())
    }

    async fn remove_files(
        &self,
        location: &Location,
        settings: &StorageSettings,
    ) -> Result<Purged, CatalogError> {
        let files = self.files.with_settings(settings);
        let mut used: Vec<Location> = Vec::new();
        let mut removed = 0;
        loop {
            let listed = self.list_unused(location, settings, &used).await?;
            used = places(&self.inventory().await?);
            used.retain(|place| place.overlaps(location));
            if used.iter().any(|place| location.is_within(place)) {
                return Ok(Purged::Left);
            }
            if listed.is_empty() {
                break;
            }
            for file in listed {
                if !used.iter().any(|place| file.is_within(place)) {
                    let deleted = files.delete(&file).await;
                    deleted.map_err(|error| CatalogError::unreadable(&error))?;
                    removed += 1;
                }
            }
        }
        // What is left are empty folders, and files of others.
        let tidied = files.delete_under(location, |_| true).await;
        tidied.map_err(|error| CatalogError::unreadable(&error))?;
        Ok(Purged::Done(removed))
    }

    /// The next files below a location that lie in none of the used places.
    async fn list_unused(
        &self,
        location: &Location,
        settings: &StorageSettings,
        used: &[Location],
    ) -> Result<Vec<Location>, CatalogError> {
        let mut listed = Vec::new();
        let mut listing = self.files.with_settings(settings).list(location);
        while let Some(file) = listing.next().await {
            let file = file.map_err(|error| CatalogError::unreadable(&error))?;
            if !used.iter().any(|place| file.location.is_within(place)) {
                listed.push(file.location);
            }
            if listed.len() == FILES_AT_ONCE {
                break;
            }
        }
        Ok(listed)
    }

    /// A catalog, and how its files are reached; `None` if it is gone.
    pub(crate) async fn reach_of(
        &self,
        catalog: &Container,
    ) -> Result<Option<(CatalogBody, StorageSettings)>, CatalogError> {
        let read = Read::Container(catalog.partition);
        let Some(Answer::Entries(entries)) = self.partitions.read(&[read]).await?.pop() else {
            return Ok(None);
        };
        let Some((_, entry)) = entries.first() else {
            return Ok(None);
        };
        let catalog: CatalogBody = body::read(entry)?;
        let settings = StorageSettings::from_properties(&catalog.properties).ok();
        Ok(settings.map(|settings| (catalog, settings)))
    }
}

/// The locations and documents of tables and views.
fn places(inventory: &[Held]) -> Vec<Location> {
    let named = inventory
        .iter()
        .flat_map(|held| [&held.pointer.location, &held.pointer.metadata_location]);
    named
        .filter_map(|text| Location::parse(text).ok())
        .collect()
}
