//! Applying the updates of a commit.
//!
//! ```text
//! base + updates ──► Draft: one update after the other ──► finish: what can only be judged at the end ──► metadata
//! ```
//!
//! Clients send their updates in different orders (DuckDB adds a snapshot before there is a current schema), so an
//! update is judged by itself when it comes, and how schema, spec and order fit together is judged in `finish`.

mod finish;
mod properties;
mod snapshots;
mod structure;

use std::collections::HashSet;

use crate::DEFAULT_FORMAT_VERSION;
use crate::create::{supported_version, take_format_version};
use crate::error::UpdateError;
use crate::statistics::EncryptedKey;
use crate::table::TableMetadata;
use crate::update::TableUpdate;

/// What a commit has to be told, since the rules have no clock and see no storage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UpdateContext {
    /// The present, in milliseconds since 1970.
    pub now_ms: i64,
    /// Where the document of the base is stored; it goes into the metadata log of what is made from it.
    pub previous_metadata_location: Option<String>,
}

/// Applies updates to a table, or makes a new one from them where `base` is `None`.
///
/// A new table needs `assign-uuid`, `set-location` and `add-schema`; everything else has a default. Updates that change
/// nothing give back the base as it is, times and metadata log included.
///
/// # Errors
///
/// [`UpdateError::Invalid`] or [`UpdateError::Conflict`]; nothing else comes from here. Requirements are checked by
/// [`crate::TableRequirement::check`].
pub fn apply(
    base: Option<&TableMetadata>,
    updates: &[TableUpdate],
    context: &UpdateContext,
) -> Result<TableMetadata, UpdateError> {
    let mut draft = Draft::start(base, updates, context)?;
    for update in updates {
        draft.apply(update)?;
    }
    draft.finish(context)
}

/// A table in the middle of a commit.
struct Draft<'a> {
    base: Option<&'a TableMetadata>,
    metadata: TableMetadata,
    /// The present, but never before the base's last update.
    now_ms: i64,
    uuid_assigned: bool,
    /// What -1 stands for.
    last_added: LastAdded,
    chosen: Chosen,
    /// Specs and orders that were added, to be checked against the schema that is current in the end.
    specs_to_check: Vec<i32>,
    orders_to_check: Vec<i32>,
    added_snapshots: HashSet<i64>,
    /// Snapshots that go; they are taken out in the end, all at once.
    removed_snapshots: HashSet<i64>,
    removed_keys: Vec<EncryptedKey>,
}

#[derive(Default)]
struct LastAdded {
    schema_id: Option<i32>,
    spec_id: Option<i32>,
    order_id: Option<i32>,
}

/// Which defaults the updates set.
#[derive(Default)]
struct Chosen {
    schema: bool,
    spec: bool,
    order: bool,
}

impl<'a> Draft<'a> {
    fn start(
        base: Option<&'a TableMetadata>,
        updates: &[TableUpdate],
        context: &UpdateContext,
    ) -> Result<Draft<'a>, UpdateError> {
        let metadata = match base {
            Some(base) => base.clone(),
            None => TableMetadata::blank(first_format_version(updates)?),
        };
        Ok(Draft {
            base,
            now_ms: context.now_ms.max(metadata.last_updated_ms),
            metadata,
            uuid_assigned: base.is_some(),
            last_added: LastAdded::default(),
            chosen: Chosen::default(),
            specs_to_check: Vec::new(),
            orders_to_check: Vec::new(),
            added_snapshots: HashSet::new(),
            removed_snapshots: HashSet::new(),
            removed_keys: Vec::new(),
        })
    }

    fn apply(&mut self, update: &TableUpdate) -> Result<(), UpdateError> {
        match update {
            TableUpdate::AssignUuid { uuid } => self.assign_uuid(*uuid),
            TableUpdate::UpgradeFormatVersion { format_version } => {
                self.upgrade_format_version(supported_version(i64::from(*format_version))?)
            }
            TableUpdate::AddSchema { schema } => self.add_schema(schema),
            TableUpdate::SetCurrentSchema { schema_id } => self.set_current_schema(*schema_id),
            TableUpdate::AddSpec { spec } => self.add_spec(spec),
            TableUpdate::SetDefaultSpec { spec_id } => self.set_default_spec(*spec_id),
            TableUpdate::AddSortOrder { sort_order } => self.add_sort_order(sort_order),
            TableUpdate::SetDefaultSortOrder { sort_order_id } => {
                self.set_default_sort_order(*sort_order_id)
            }
            TableUpdate::AddSnapshot { snapshot } => self.add_snapshot(snapshot),
            TableUpdate::SetSnapshotRef {
                ref_name,
                reference,
            } => self.set_snapshot_ref(ref_name, reference),
            TableUpdate::RemoveSnapshots { snapshot_ids } => {
                self.remove_snapshots(snapshot_ids);
                Ok(())
            }
            TableUpdate::RemoveSnapshotRef { ref_name } => {
                self.remove_snapshot_ref(ref_name);
                Ok(())
            }
            TableUpdate::SetLocation { location } => self.set_location(location),
            TableUpdate::SetProperties { updates } => self.set_properties(updates),
            TableUpdate::RemoveProperties { removals } => self.remove_properties(removals),
            TableUpdate::SetStatistics { statistics } => {
                self.metadata
                    .statistics
                    .retain(|known| known.snapshot_id() != statistics.snapshot_id());
                self.metadata.statistics.push(statistics.clone());
                Ok(())
            }
            TableUpdate::RemoveStatistics { snapshot_id } => {
                self.metadata
                    .statistics
                    .retain(|known| known.snapshot_id() != *snapshot_id);
                Ok(())
            }
            TableUpdate::SetPartitionStatistics {
                partition_statistics,
            } => {
                let snapshot_id = partition_statistics.snapshot_id();
                self.metadata
                    .partition_statistics
                    .retain(|known| known.snapshot_id() != snapshot_id);
                self.metadata
                    .partition_statistics
                    .push(partition_statistics.clone());
                Ok(())
            }
            TableUpdate::RemovePartitionStatistics { snapshot_id } => {
                self.metadata
                    .partition_statistics
                    .retain(|known| known.snapshot_id() != *snapshot_id);
                Ok(())
            }
            TableUpdate::RemovePartitionSpecs { spec_ids } => self.remove_partition_specs(spec_ids),
            TableUpdate::RemoveSchemas { schema_ids } => self.remove_schemas(schema_ids),
            TableUpdate::AddEncryptionKey { encryption_key } => {
                self.add_encryption_key(encryption_key)
            }
            TableUpdate::RemoveEncryptionKey { key_id } => {
                self.remove_encryption_key(key_id);
                Ok(())
            }
        }
    }
}

/// The format version with which a new table starts: an `upgrade-format-version` of a new table may name any.
fn first_format_version(updates: &[TableUpdate]) -> Result<u8, UpdateError> {
    for update in updates {
        if let TableUpdate::UpgradeFormatVersion { format_version } = update {
            return supported_version(i64::from(*format_version));
        }
    }
    for update in updates {
        if let TableUpdate::SetProperties { updates } = update
            && let Some(version) = take_format_version(&mut updates.clone())?
        {
            return Ok(version);
        }
    }
    Ok(DEFAULT_FORMAT_VERSION)
}

/// The id that an update means, where -1 is what the commit added last.
fn resolve(what: &str, id: i32, last_added: Option<i32>) -> Result<i32, UpdateError> {
    if id != -1 {
        return Ok(id);
    }
    last_added.ok_or_else(|| {
        UpdateError::invalid(format!(
            "the {what} id -1 means the last one added, and the commit adds none before"
        ))
    })
}
