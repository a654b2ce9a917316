//! Removes the files of purged tables, once nothing that is kept can read them.

use anabranch_files::{Location, StorageSettings};
use anabranch_store::{Answer, Read};

use crate::body::{self, CatalogBody};
use crate::command::Purge;
use crate::error::CatalogError;
use crate::place::Container;
use crate::service::Core;

/// What a purge did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purged {
    /// The files are gone; this many were deleted by this run.
    Done(u64),
    /// A retained version still reads them: later.
    Retained,
    /// They are left where they are: another table lies in the same place, or the catalog and
    /// with it the storage settings are gone.
    Left,
}

impl Core {
    /// Deletes what lies below the location of a dropped table. Every run begins anew, so a crash
    /// in between costs nothing. Files that lie in the place of another table, standing or
    /// retained, stay.
    pub(crate) async fn purge(&self, task: &Purge) -> Result<Purged, CatalogError> {
        let Some(settings) = self.settings_of(&task.catalog).await? else {
            return Ok(Purged::Left);
        };
        let Ok(location) = Location::parse(&task.location) else {
            return Ok(Purged::Left);
        };
        let mut others = Vec::new();
        for held in self.inventory().await? {
            if held.object == task.object && !held.stands {
                return Ok(Purged::Retained);
            }
            for used in [&held.pointer.location, &held.pointer.metadata_location] {
                others.extend(Location::parse(used));
            }
        }
        if others.iter().any(|other| location.is_within(other)) {
            return Ok(Purged::Left);
        }
        let inside: Vec<Location> = others
            .into_iter()
            .filter(|other| other.is_within(&location))
            .collect();
        let keep = move |path: &str| {
            Location::parse(path).map_or(true, |file| {
                inside.iter().any(|other| file.is_within(other))
            })
        };
        let files = self.files.with_settings(&settings);
        let report = files.delete_under(&location, keep).await;
        let report = report.map_err(|error| CatalogError::unreadable(&error))?;
        Ok(Purged::Done(report.deleted))
    }

    /// How the files of a catalog are reached; `None` if it is gone.
    pub(crate) async fn settings_of(
        &self,
        catalog: &Container,
    ) -> Result<Option<StorageSettings>, CatalogError> {
        let read = Read::Container(catalog.partition);
        let Some(Answer::Entries(entries)) = self.partitions.read(&[read]).await?.pop() else {
            return Ok(None);
        };
        let Some((_, entry)) = entries.first() else {
            return Ok(None);
        };
        let catalog: CatalogBody = body::read(entry)?;
        Ok(StorageSettings::from_properties(&catalog.properties).ok())
    }
}
