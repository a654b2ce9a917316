//! Removes metadata files that failed attempts left in the folders of standing tables.
//!
//! A file may go if it is older than the grace period, has a name of ours, and is named by no
//! version that stands or can still be read, and by no entry in the metadata log of one that stands
//! or that a tag, fork or merge keeps.
//! No commit can name it any more: one that was prepared half a grace period ago is prepared
//! again, with new files.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use anabranch_files::{Location, MetadataName, StorageSettings};
use anabranch_partition::RunError;
use anabranch_store::PartitionId;
use futures::StreamExt;

use crate::error::CatalogError;
use crate::service::document::Content;
use crate::service::inventory::Held;
use crate::service::{Catalog, Core, Page};

impl Catalog {
    /// Sweeps all catalogs; answers how many files went.
    pub async fn sweep(&self) -> Result<u64, CatalogError> {
        let mut swept = 0;
        for metalake in self.list_metalakes().await? {
            for catalog in self.list_catalogs(&metalake, &Page::default()).await?.items {
                swept += self
                    .core
                    .sweep_catalog(catalog.id, &catalog.settings)
                    .await?;
            }
        }
        Ok(swept)
    }
}

impl Core {
    async fn sweep_catalog(
        &self,
        catalog: PartitionId,
        settings: &StorageSettings,
    ) -> Result<u64, CatalogError> {
        let mut candidates = Vec::new();
        // Several branches of a table have one folder: what one of them names isn't another's.
        let mut named = HashSet::new();
        let mut unreadable: Vec<Location> = Vec::new();
        let databases = self.database_rows(Some(catalog)).await?;
        for database in &databases {
            for held in self.standing_pointers(database.id).await? {
                let Some((folder, old)) = self.old_files(&held, settings).await? else {
                    continue;
                };
                match self.names_in(&held, settings).await {
                    Some(names) => named.extend(names),
                    None => unreadable.push(folder),
                }
                candidates.extend(old);
            }
        }
        if candidates.is_empty() {
            return Ok(0);
        }
        for database in &databases {
            for held in self.pinned_pointers(database).await? {
                let folder = held.pointer.metadata_location.rsplit_once('/');
                let folder = folder.and_then(|(folder, _)| Location::parse(folder).ok());
                match self.names_in(&held, settings).await {
                    Some(names) => named.extend(names),
                    None => unreadable.extend(folder),
                }
            }
        }
        candidates.retain(|file| !unreadable.iter().any(|folder| file.is_within(folder)));
        if candidates.is_empty() {
            return Ok(0);
        }
        let inventory = self.inventory().await?;
        let inventory = inventory
            .iter()
            .filter_map(|held| Location::parse(&held.pointer.metadata_location).ok());
        named.extend(inventory.map(|location| location.canonical()));
        let files = self.files.with_settings(settings);
        let mut swept = 0;
        for candidate in candidates {
            if named.contains(&candidate.canonical()) {
                continue;
            }
            match files.delete(&candidate).await {
                Ok(()) => swept += 1,
                Err(error) => {
                    tracing::warn!(detail = error.detail(), "a left-over file can't be deleted");
                }
            }
        }
        Ok(swept)
    }

    /// The metadata folder of a standing table, and files of ours in it that are old enough to go;
    /// `None` if there are none, or nobody can tell.
    async fn old_files(
        &self,
        held: &Held,
        settings: &StorageSettings,
    ) -> Result<Option<(Location, Vec<Location>)>, CatalogError> {
        let current = &held.pointer.metadata_location;
        let Some((folder, _)) = current.rsplit_once('/') else {
            return Ok(None);
        };
        let Ok(folder) = Location::parse(folder) else {
            return Ok(None);
        };
        let edge = self.edge_of(self.limits.sweep_grace).await?;
        let mut old = Vec::new();
        let mut listing = self.files.with_settings(settings).list(&folder);
        while let Some(file) = listing.next().await {
            match file {
                Ok(file)
                    if file.last_modified < edge
                        && MetadataName::is_ours(file.location.file_name()) =>
                {
                    old.push(file.location);
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(detail = error.detail(), "a metadata folder can't be listed");
                    return Ok(None);
                }
            }
        }
        Ok((!old.is_empty()).then_some((folder, old)))
    }

    /// What the current metadata of a table names: itself and its log. `None` if it can't be read.
    async fn names_in(&self, held: &Held, settings: &StorageSettings) -> Option<HashSet<String>> {
        let current = &held.pointer.metadata_location;
        let document = self.document(current, settings).await.ok()?;
        let mut names = vec![current.clone()];
        match document.content(held.kind).ok()? {
            Content::Table(metadata) => {
                let log = metadata.metadata_log().iter();
                names.extend(log.map(|entry| entry.metadata_file.clone()));
            }
            Content::View(_) => {}
        }
        let parsed = names.iter().filter_map(|name| Location::parse(name).ok());
        Some(parsed.map(|location| location.canonical()).collect())
    }

    /// What was written before it is older than `grace`, by the store's time.
    pub(crate) async fn edge_of(&self, grace: Duration) -> Result<SystemTime, CatalogError> {
        let now = self.partitions.store().now().await;
        let now = now.map_err(|error| RunError::from_store(&error))?;
        let micros = u64::try_from(now.0).unwrap_or_default();
        let now = SystemTime::UNIX_EPOCH + Duration::from_micros(micros);
        Ok(now.checked_sub(grace).unwrap_or(SystemTime::UNIX_EPOCH))
    }
}
