//! What a commit does to a table, as it comes over the wire.

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;
use std::collections::BTreeMap;
use uuid::Uuid;

use crate::error::{ShapeError, UpdateError};
use crate::json::{Fields, FromValue, deserialize_value};
use crate::partition::PartitionSpec;
use crate::schema::Schema;
use crate::snapshot::{Snapshot, SnapshotRef};
use crate::sort::SortOrder;
use crate::statistics::{EncryptedKey, PartitionStatisticsFile, StatisticsFile};

/// One change to a table (REST specification: `TableUpdate`).
///
/// Where an id selects a schema, spec or sort order, -1 means the one that was added last in the same commit.
#[derive(Debug, Clone, PartialEq)]
pub enum TableUpdate {
    /// Gives a new table its identity; accepted again with the same uuid.
    AssignUuid {
        /// The identity.
        uuid: Uuid,
    },
    /// Raises the format version; never lowers it.
    UpgradeFormatVersion {
        /// 1, 2 or 3; wider here than in the metadata so that the refusal can name it.
        format_version: i32,
    },
    /// Adds a schema, or finds the equal one that is there; its id is given by the table.
    AddSchema {
        /// The schema, with field ids.
        schema: Schema,
    },
    /// Chooses the current schema.
    SetCurrentSchema {
        /// Id or -1.
        schema_id: i32,
    },
    /// Adds a partition spec, or finds the equal one that is there; its id is given by the table.
    AddSpec {
        /// The spec; field ids may be missing.
        spec: PartitionSpec,
    },
    /// Chooses the spec that writers use.
    SetDefaultSpec {
        /// Id or -1.
        spec_id: i32,
    },
    /// Adds a sort order, or finds the equal one that is there; its id is given by the table.
    AddSortOrder {
        /// The order.
        sort_order: SortOrder,
    },
    /// Chooses the sort order that writers use.
    SetDefaultSortOrder {
        /// Id or -1.
        sort_order_id: i32,
    },
    /// Adds a snapshot; no branch moves.
    AddSnapshot {
        /// The snapshot.
        snapshot: Snapshot,
    },
    /// Makes a branch or tag, or moves it.
    SetSnapshotRef {
        /// Name of the branch or tag.
        ref_name: String,
        /// Where it points, and its retention.
        reference: SnapshotRef,
    },
    /// Removes snapshots and whatever points at them.
    RemoveSnapshots {
        /// Ids; those that aren't there don't matter.
        snapshot_ids: Vec<i64>,
    },
    /// Removes a branch or tag.
    RemoveSnapshotRef {
        /// Name; one that isn't there doesn't matter.
        ref_name: String,
    },
    /// Moves the base location of files to come.
    SetLocation {
        /// Location.
        location: String,
    },
    /// Sets properties.
    SetProperties {
        /// New values by name.
        updates: BTreeMap<String, String>,
    },
    /// Removes properties.
    RemoveProperties {
        /// Names; those that aren't there don't matter.
        removals: Vec<String>,
    },
    /// Sets the statistics file of a snapshot.
    SetStatistics {
        /// The file.
        statistics: StatisticsFile,
    },
    /// Removes the statistics file of a snapshot.
    RemoveStatistics {
        /// The snapshot.
        snapshot_id: i64,
    },
    /// Sets the partition statistics file of a snapshot.
    SetPartitionStatistics {
        /// The file.
        partition_statistics: PartitionStatisticsFile,
    },
    /// Removes the partition statistics file of a snapshot.
    RemovePartitionStatistics {
        /// The snapshot.
        snapshot_id: i64,
    },
    /// Removes partition specs that no data uses any more.
    RemovePartitionSpecs {
        /// Ids; the default one is refused.
        spec_ids: Vec<i32>,
    },
    /// Removes schemas that no snapshot uses any more.
    RemoveSchemas {
        /// Ids; the current one is refused.
        schema_ids: Vec<i32>,
    },
    /// Adds an encryption key (format version 3).
    AddEncryptionKey {
        /// The key.
        encryption_key: EncryptedKey,
    },
    /// Removes an encryption key (format version 3).
    RemoveEncryptionKey {
        /// Id; one that isn't there doesn't matter.
        key_id: String,
    },
}

impl TableUpdate {
    /// Reads one update of a request.
    ///
    /// # Errors
    ///
    /// [`UpdateError::Invalid`], which names an unknown action or the field that is wrong.
    pub fn from_json_value(value: Value) -> Result<TableUpdate, UpdateError> {
        Ok(TableUpdate::from_value(value)?)
    }

    /// The name of the update on the wire.
    pub fn action(&self) -> &'static str {
        match self {
            TableUpdate::AssignUuid { .. } => "assign-uuid",
            TableUpdate::UpgradeFormatVersion { .. } => "upgrade-format-version",
            TableUpdate::AddSchema { .. } => "add-schema",
            TableUpdate::SetCurrentSchema { .. } => "set-current-schema",
            TableUpdate::AddSpec { .. } => "add-spec",
            TableUpdate::SetDefaultSpec { .. } => "set-default-spec",
            TableUpdate::AddSortOrder { .. } => "add-sort-order",
            TableUpdate::SetDefaultSortOrder { .. } => "set-default-sort-order",
            TableUpdate::AddSnapshot { .. } => "add-snapshot",
            TableUpdate::SetSnapshotRef { .. } => "set-snapshot-ref",
            TableUpdate::RemoveSnapshots { .. } => "remove-snapshots",
            TableUpdate::RemoveSnapshotRef { .. } => "remove-snapshot-ref",
            TableUpdate::SetLocation { .. } => "set-location",
            TableUpdate::SetProperties { .. } => "set-properties",
            TableUpdate::RemoveProperties { .. } => "remove-properties",
            TableUpdate::SetStatistics { .. } => "set-statistics",
            TableUpdate::RemoveStatistics { .. } => "remove-statistics",
            TableUpdate::SetPartitionStatistics { .. } => "set-partition-statistics",
            TableUpdate::RemovePartitionStatistics { .. } => "remove-partition-statistics",
            TableUpdate::RemovePartitionSpecs { .. } => "remove-partition-specs",
            TableUpdate::RemoveSchemas { .. } => "remove-schemas",
            TableUpdate::AddEncryptionKey { .. } => "add-encryption-key",
            TableUpdate::RemoveEncryptionKey { .. } => "remove-encryption-key",
        }
    }
}

/// Ids of the snapshots that the updates add, in order.
///
/// A server that finds them all in the table already can tell that a commit came twice.
pub fn snapshot_ids_added(updates: &[TableUpdate]) -> Vec<i64> {
    let added = |update: &TableUpdate| match update {
        TableUpdate::AddSnapshot { snapshot } => Some(snapshot.snapshot_id()),
        _ => None,
    };
    updates.iter().filter_map(added).collect()
}

/// The uuid that the updates give to the table, if they do.
pub fn created_uuid(updates: &[TableUpdate]) -> Option<Uuid> {
    updates.iter().find_map(|update| match update {
        TableUpdate::AssignUuid { uuid } => Some(*uuid),
        _ => None,
    })
}

/// Reads the field `uuid`.
pub(crate) fn uuid_field(object: &mut Fields, name: &str) -> Result<Uuid, ShapeError> {
    Uuid::parse_str(&object.string(name)?).map_err(|_| object.wrong(name, "a uuid"))
}

impl FromValue for TableUpdate {
    fn from_value(value: Value) -> Result<TableUpdate, ShapeError> {
        let mut object = Fields::of("table update", value)?;
        let action = object.string("action")?;
        let update = match action.as_str() {
            "assign-uuid" => TableUpdate::AssignUuid {
                uuid: uuid_field(&mut object, "uuid")?,
            },
            "upgrade-format-version" => TableUpdate::UpgradeFormatVersion {
                format_version: object.i32("format-version")?,
            },
            "add-schema" => TableUpdate::AddSchema {
                schema: Schema::from_value(object.required("schema")?)?,
            },
            "set-current-schema" => TableUpdate::SetCurrentSchema {
                schema_id: object.i32("schema-id")?,
            },
            "add-spec" => TableUpdate::AddSpec {
                spec: PartitionSpec::from_value(object.required("spec")?)?,
            },
            "set-default-spec" => TableUpdate::SetDefaultSpec {
                spec_id: object.i32("spec-id")?,
            },
            "add-sort-order" => TableUpdate::AddSortOrder {
                sort_order: SortOrder::from_value(object.required("sort-order")?)?,
            },
            "set-default-sort-order" => TableUpdate::SetDefaultSortOrder {
                sort_order_id: object.i32("sort-order-id")?,
            },
            "add-snapshot" => TableUpdate::AddSnapshot {
                snapshot: Snapshot::from_value(object.required("snapshot")?)?,
            },
            "set-snapshot-ref" => TableUpdate::SetSnapshotRef {
                ref_name: object.string("ref-name")?,
                reference: SnapshotRef::from_fields(object)?,
            },
            "remove-snapshots" => TableUpdate::RemoveSnapshots {
                snapshot_ids: object.i64_list("snapshot-ids")?,
            },
            "remove-snapshot-ref" => TableUpdate::RemoveSnapshotRef {
                ref_name: object.string("ref-name")?,
            },
            "set-location" => TableUpdate::SetLocation {
                location: object.string("location")?,
            },
            // Older Java clients call the fields of these two `updated` and `removed`.
            "set-properties" => {
                object.accept_older_name("updated", "updates");
                TableUpdate::SetProperties {
                    updates: object.string_map("updates")?,
                }
            }
            "remove-properties" => {
                object.accept_older_name("removed", "removals");
                TableUpdate::RemoveProperties {
                    removals: object.string_list("removals")?,
                }
            }
            "set-statistics" => TableUpdate::SetStatistics {
                statistics: StatisticsFile::from_value(object.required("statistics")?)?,
            },
            "remove-statistics" => TableUpdate::RemoveStatistics {
                snapshot_id: object.i64("snapshot-id")?,
            },
            "set-partition-statistics" => TableUpdate::SetPartitionStatistics {
                partition_statistics: PartitionStatisticsFile::from_value(
                    object.required("partition-statistics")?,
                )?,
            },
            "remove-partition-statistics" => TableUpdate::RemovePartitionStatistics {
                snapshot_id: object.i64("snapshot-id")?,
            },
            "remove-partition-specs" => TableUpdate::RemovePartitionSpecs {
                spec_ids: object.i32_list("spec-ids")?,
            },
            "remove-schemas" => TableUpdate::RemoveSchemas {
                schema_ids: object.i32_list("schema-ids")?,
            },
            "add-encryption-key" => TableUpdate::AddEncryptionKey {
                encryption_key: EncryptedKey::from_value(object.required("encryption-key")?)?,
            },
            "remove-encryption-key" => TableUpdate::RemoveEncryptionKey {
                key_id: object.string("key-id")?,
            },
            unknown => {
                return Err(ShapeError(format!(
                    "unknown table update action '{unknown}'"
                )));
            }
        };
        Ok(update)
    }
}

impl Serialize for TableUpdate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("action", self.action())?;
        match self {
            TableUpdate::AssignUuid { uuid } => map.serialize_entry("uuid", uuid)?,
            TableUpdate::UpgradeFormatVersion { format_version } => {
                map.serialize_entry("format-version", format_version)?;
            }
            TableUpdate::AddSchema { schema } => map.serialize_entry("schema", schema)?,
            TableUpdate::SetCurrentSchema { schema_id } => {
                map.serialize_entry("schema-id", schema_id)?
            }
            TableUpdate::AddSpec { spec } => map.serialize_entry("spec", spec)?,
            TableUpdate::SetDefaultSpec { spec_id } => map.serialize_entry("spec-id", spec_id)?,
            TableUpdate::AddSortOrder { sort_order } => {
                map.serialize_entry("sort-order", sort_order)?
            }
            TableUpdate::SetDefaultSortOrder { sort_order_id } => {
                map.serialize_entry("sort-order-id", sort_order_id)?;
            }
            TableUpdate::AddSnapshot { snapshot } => map.serialize_entry("snapshot", snapshot)?,
            TableUpdate::SetSnapshotRef {
                ref_name,
                reference,
            } => {
                map.serialize_entry("ref-name", ref_name)?;
                reference.serialize_into(&mut map)?;
            }
            TableUpdate::RemoveSnapshots { snapshot_ids } => {
                map.serialize_entry("snapshot-ids", snapshot_ids)?
            }
            TableUpdate::RemoveSnapshotRef { ref_name } => {
                map.serialize_entry("ref-name", ref_name)?
            }
            TableUpdate::SetLocation { location } => map.serialize_entry("location", location)?,
            TableUpdate::SetProperties { updates } => map.serialize_entry("updates", updates)?,
            TableUpdate::RemoveProperties { removals } => {
                map.serialize_entry("removals", removals)?
            }
            TableUpdate::SetStatistics { statistics } => {
                map.serialize_entry("statistics", statistics)?
            }
            TableUpdate::SetPartitionStatistics {
                partition_statistics,
            } => {
                map.serialize_entry("partition-statistics", partition_statistics)?;
            }
            TableUpdate::RemoveStatistics { snapshot_id }
            | TableUpdate::RemovePartitionStatistics { snapshot_id } => {
                map.serialize_entry("snapshot-id", snapshot_id)?;
            }
            TableUpdate::RemovePartitionSpecs { spec_ids } => {
                map.serialize_entry("spec-ids", spec_ids)?
            }
            TableUpdate::RemoveSchemas { schema_ids } => {
                map.serialize_entry("schema-ids", schema_ids)?
            }
            TableUpdate::AddEncryptionKey { encryption_key } => {
                map.serialize_entry("encryption-key", encryption_key)?;
            }
            TableUpdate::RemoveEncryptionKey { key_id } => map.serialize_entry("key-id", key_id)?,
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for TableUpdate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TableUpdate, D::Error> {
        deserialize_value(deserializer)
    }
}
