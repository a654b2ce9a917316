//! What a commit depends on.

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;
use std::fmt::Display;
use uuid::Uuid;

use crate::error::{ShapeError, UpdateError};
use crate::json::{Fields, FromValue, deserialize_value};
use crate::table::TableMetadata;
use crate::update::uuid_field;

/// Something that must hold of the table when a commit is applied (REST specification: `TableRequirement`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableRequirement {
    /// The table isn't there.
    AssertCreate,
    /// The table is still the same one.
    AssertTableUuid {
        /// Its identity.
        uuid: Uuid,
    },
    /// A branch or tag still points at the snapshot.
    AssertRefSnapshotId {
        /// Name of the branch or tag.
        ref_name: String,
        /// The snapshot; `None` if the branch or tag must not exist.
        snapshot_id: Option<i64>,
    },
    /// No column was added.
    AssertLastAssignedFieldId {
        /// The highest field id.
        last_assigned_field_id: i32,
    },
    /// The current schema is the same.
    AssertCurrentSchemaId {
        /// Its id.
        current_schema_id: i32,
    },
    /// No partition field was added.
    AssertLastAssignedPartitionId {
        /// The highest partition field id.
        last_assigned_partition_id: i32,
    },
    /// The default spec is the same.
    AssertDefaultSpecId {
        /// Its id.
        default_spec_id: i32,
    },
    /// The default sort order is the same.
    AssertDefaultSortOrderId {
        /// Its id.
        default_sort_order_id: i32,
    },
}

impl TableRequirement {
    /// Reads one requirement of a request.
    ///
    /// # Errors
    ///
    /// [`UpdateError::Invalid`], which names an unknown type or the field that is wrong.
    pub fn from_json_value(value: Value) -> Result<TableRequirement, UpdateError> {
        Ok(TableRequirement::from_value(value)?)
    }

    /// The name of the requirement on the wire.
    pub fn type_name(&self) -> &'static str {
        match self {
            TableRequirement::AssertCreate => "assert-create",
            TableRequirement::AssertTableUuid { .. } => "assert-table-uuid",
            TableRequirement::AssertRefSnapshotId { .. } => "assert-ref-snapshot-id",
            TableRequirement::AssertLastAssignedFieldId { .. } => "assert-last-assigned-field-id",
            TableRequirement::AssertCurrentSchemaId { .. } => "assert-current-schema-id",
            TableRequirement::AssertLastAssignedPartitionId { .. } => {
                "assert-last-assigned-partition-id"
            }
            TableRequirement::AssertDefaultSpecId { .. } => "assert-default-spec-id",
            TableRequirement::AssertDefaultSortOrderId { .. } => "assert-default-sort-order-id",
        }
    }

    /// Whether the requirement holds of the table, where `None` is a table that isn't there.
    ///
    /// # Errors
    ///
    /// [`UpdateError::AlreadyExists`] if the table was to be created and is there; [`UpdateError::NotFound`] if
    /// something is required of a table that isn't there; otherwise [`UpdateError::RequirementFailed`].
    pub fn check(&self, current: Option<&TableMetadata>) -> Result<(), UpdateError> {
        let table = match (self, current) {
            (TableRequirement::AssertCreate, None) => return Ok(()),
            (TableRequirement::AssertCreate, Some(_)) => {
                return Err(UpdateError::AlreadyExists {
                    message: "the table already exists".to_string(),
                });
            }
            (
                TableRequirement::AssertRefSnapshotId {
                    snapshot_id: None, ..
                },
                None,
            ) => return Ok(()),
            (_, None) => {
                let message = format!("{} needs a table, and there is none", self.type_name());
                return Err(UpdateError::NotFound { message });
            }
            (_, Some(table)) => table,
        };
        match self {
            TableRequirement::AssertCreate => Ok(()),
            TableRequirement::AssertTableUuid { uuid } => {
                same("table-uuid", uuid, &table.table_uuid)
            }
            TableRequirement::AssertRefSnapshotId {
                ref_name,
                snapshot_id,
            } => {
                let found = table
                    .refs
                    .get(ref_name)
                    .map(|reference| reference.snapshot_id);
                check_ref(ref_name, *snapshot_id, found)
            }
            TableRequirement::AssertLastAssignedFieldId {
                last_assigned_field_id,
            } => same(
                "last-column-id",
                last_assigned_field_id,
                &table.last_column_id,
            ),
            TableRequirement::AssertCurrentSchemaId { current_schema_id } => same(
                "current-schema-id",
                current_schema_id,
                &table.current_schema_id,
            ),
            TableRequirement::AssertLastAssignedPartitionId {
                last_assigned_partition_id,
            } => same(
                "last-partition-id",
                last_assigned_partition_id,
                &table.last_partition_id,
            ),
            TableRequirement::AssertDefaultSpecId { default_spec_id } => {
                same("default-spec-id", default_spec_id, &table.default_spec_id)
            }
            TableRequirement::AssertDefaultSortOrderId {
                default_sort_order_id,
            } => same(
                "default-sort-order-id",
                default_sort_order_id,
                &table.default_sort_order_id,
            ),
        }
    }
}

fn same<T: PartialEq + Display>(field: &str, expected: &T, found: &T) -> Result<(), UpdateError> {
    if expected == found {
        return Ok(());
    }
    Err(UpdateError::requirement_failed(format!(
        "requirement failed: {field} was expected to be {expected} and is {found}; reload the table and retry"
    )))
}

fn check_ref(name: &str, expected: Option<i64>, found: Option<i64>) -> Result<(), UpdateError> {
    let problem = match (expected, found) {
        (expected, found) if expected == found => return Ok(()),
        (None, Some(found)) => format!("was expected not to exist and is at snapshot {found}"),
        (Some(expected), None) => format!("was expected at snapshot {expected} and doesn't exist"),
        (Some(expected), Some(found)) => {
            format!("was expected at snapshot {expected} and is at {found}")
        }
        (None, None) => return Ok(()),
    };
    Err(UpdateError::requirement_failed(format!(
        "requirement failed: the reference '{name}' {problem}; reload the table and retry"
    )))
}

impl FromValue for TableRequirement {
    fn from_value(value: Value) -> Result<TableRequirement, ShapeError> {
        let mut object = Fields::of("table requirement", value)?;
        let requirement = match object.string("type")?.as_str() {
            "assert-create" => TableRequirement::AssertCreate,
            "assert-table-uuid" => TableRequirement::AssertTableUuid {
                uuid: uuid_field(&mut object, "uuid")?,
            },
            "assert-ref-snapshot-id" => TableRequirement::AssertRefSnapshotId {
                ref_name: object.string("ref")?,
                snapshot_id: object.optional_i64("snapshot-id")?,
            },
            "assert-last-assigned-field-id" => TableRequirement::AssertLastAssignedFieldId {
                last_assigned_field_id: object.i32("last-assigned-field-id")?,
            },
            "assert-current-schema-id" => TableRequirement::AssertCurrentSchemaId {
                current_schema_id: object.i32("current-schema-id")?,
            },
            "assert-last-assigned-partition-id" => {
                TableRequirement::AssertLastAssignedPartitionId {
                    last_assigned_partition_id: object.i32("last-assigned-partition-id")?,
                }
            }
            "assert-default-spec-id" => TableRequirement::AssertDefaultSpecId {
                default_spec_id: object.i32("default-spec-id")?,
            },
            "assert-default-sort-order-id" => TableRequirement::AssertDefaultSortOrderId {
                default_sort_order_id: object.i32("default-sort-order-id")?,
            },
            unknown => {
                return Err(ShapeError(format!(
                    "unknown table requirement type '{unknown}'"
                )));
            }
        };
        Ok(requirement)
    }
}

impl Serialize for TableRequirement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.type_name())?;
        match self {
            TableRequirement::AssertCreate => {}
            TableRequirement::AssertTableUuid { uuid } => map.serialize_entry("uuid", uuid)?,
            TableRequirement::AssertRefSnapshotId {
                ref_name,
                snapshot_id,
            } => {
                map.serialize_entry("ref", ref_name)?;
                map.serialize_entry("snapshot-id", snapshot_id)?;
            }
            TableRequirement::AssertLastAssignedFieldId {
                last_assigned_field_id,
            } => {
                map.serialize_entry("last-assigned-field-id", last_assigned_field_id)?;
            }
            TableRequirement::AssertCurrentSchemaId { current_schema_id } => {
                map.serialize_entry("current-schema-id", current_schema_id)?;
            }
            TableRequirement::AssertLastAssignedPartitionId {
                last_assigned_partition_id,
            } => {
                map.serialize_entry("last-assigned-partition-id", last_assigned_partition_id)?;
            }
            TableRequirement::AssertDefaultSpecId { default_spec_id } => {
                map.serialize_entry("default-spec-id", default_spec_id)?;
            }
            TableRequirement::AssertDefaultSortOrderId {
                default_sort_order_id,
            } => {
                map.serialize_entry("default-sort-order-id", default_sort_order_id)?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for TableRequirement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TableRequirement, D::Error> {
        deserialize_value(deserializer)
    }
}
