//! Everything that the store still points at, for jobs that delete files.

use anabranch_partition::RunError;
use anabranch_store::{
    Class, Entry, Key, Kind, ObjectId, PartitionId, PartitionKind, PartitionRow, Revision,
};

use crate::body::{self, PointerBody};
use crate::error::CatalogError;
use crate::service::Core;
use crate::service::pointers::PointerKind;

const PAGE: u32 = 1000;

/// A pointer that stands, or that ended and can still be read.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) kind: PointerKind,
    pub(crate) object: ObjectId,
    pub(crate) key: Key,
    pub(crate) pointer: PointerBody,
    pub(crate) stands: bool,
}

impl Core {
    /// Partitions that hold or held tables.
    pub(crate) async fn databases(
        &self,
        below: Option<PartitionId>,
    ) -> Result<Vec<PartitionId>, CatalogError> {
        let rows = self.database_rows(below).await?;
        Ok(rows.into_iter().map(|row| row.id).collect())
    }

    /// The rows of partitions that hold or held tables.
    pub(crate) async fn database_rows(
        &self,
        below: Option<PartitionId>,
    ) -> Result<Vec<PartitionRow>, CatalogError> {
        let store = self.partitions.store();
        let rows = store.feed_partitions(below).await;
        let mut rows = rows.map_err(|error| RunError::from_store(&error))?;
        rows.retain(|row| row.id.kind() == Some(PartitionKind::Database));
        Ok(rows)
    }

    /// The pointers of one partition that stand, on whichever branch.
    pub(crate) async fn standing_pointers(
        &self,
        partition: PartitionId,
    ) -> Result<Vec<Held>, CatalogError> {
        let store = self.partitions.store();
        let mut held = Vec::new();
        let mut after = None;
        loop {
            let page = store.current_page(partition, after, PAGE).await;
            let page = page.map_err(|error| RunError::from_store(&error))?;
            let full = page.len() == PAGE as usize;
            after = page.last().map(|(key, _)| key.clone());
            for (key, entry) in page {
                held.extend(pointer(key, &entry, true)?);
            }
            if !full {
                return Ok(held);
            }
        }
    }

    /// The pointers of one partition that ended and can still be read.
    pub(crate) async fn ended_pointers(
        &self,
        partition: PartitionId,
    ) -> Result<Vec<Held>, CatalogError> {
        self.ended_by(partition, Revision::MAX).await
    }

    /// Those of them that ended before the horizon: tags, forks and merges keep them.
    pub(crate) async fn pinned_pointers(
        &self,
        row: &PartitionRow,
    ) -> Result<Vec<Held>, CatalogError> {
        self.ended_by(row.id, row.horizon).await
    }

    async fn ended_by(
        &self,
        partition: PartitionId,
        end: Revision,
    ) -> Result<Vec<Held>, CatalogError> {
        let store = self.partitions.store();
        let mut held = Vec::new();
        let mut after = None;
        loop {
            let page = store.history_page(partition, after, PAGE).await;
            let page = page.map_err(|error| RunError::from_store(&error))?;
            let full = page.len() == PAGE as usize;
            after = page.last().map(|(key, entry, _)| (key.clone(), entry.from));
            for (key, entry, _) in page.into_iter().filter(|(.., ended)| *ended <= end) {
                held.extend(pointer(key, &entry, false)?);
            }
            if !full {
                return Ok(held);
            }
        }
    }

    /// Everything that any catalog of this store points at.
    pub(crate) async fn inventory(&self) -> Result<Vec<Held>, CatalogError> {
        let mut held = Vec::new();
        for partition in self.databases(None).await? {
            // What ended is read last: a pointer that ends in between is seen in one of the two.
            held.extend(self.standing_pointers(partition).await?);
            held.extend(self.ended_pointers(partition).await?);
        }
        Ok(held)
    }
}

/// A pointer that can't be read is an error: what it needs isn't known, so nothing may go.
fn pointer(key: Key, entry: &Entry, stands: bool) -> Result<Option<Held>, CatalogError> {
    if key.class != Class::Table || entry.kind == Kind::Absent {
        return Ok(None);
    }
    let kind = match entry.kind {
        Kind::IcebergView => PointerKind::View,
        _ => PointerKind::Table,
    };
    Ok(Some(Held {
        kind,
        object: entry.object,
        key,
        pointer: body::read(entry)?,
        stands,
    }))
}
