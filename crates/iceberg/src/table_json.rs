//! Reading and writing a table's document, and what the versions do differently.
//!
//! Version 1 documents of old writers carry only `schema` and `partition-spec`; they are read as the lists that newer
//! ones carry. What is written has both in version 1, so that old readers find what they know.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::SerializeMap};
use serde_json::{Map, Value, value::RawValue};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use uuid::Uuid;

use crate::MAX_FORMAT_VERSION;
use crate::error::{MetadataError, ShapeError};
use crate::json::{FromValue, string_map};
use crate::logs::{MetadataLogEntry, read_snapshot_log};
use crate::partition::{NO_PARTITION_FIELD_ID, PartitionField, PartitionSpec};
use crate::raw_object::{RawObject, missing};
use crate::schema::Schema;
use crate::snapshot::{MAIN_BRANCH, Snapshot, SnapshotRef, Snapshots};
use crate::sort::SortOrder;
use crate::table::TableMetadata;

impl TableMetadata {
    /// Reads a document.
    ///
    /// Tolerated: unknown fields and types; version 1 documents without the lists of schemas, specs and sort orders; a
    /// `current-snapshot-id` of -1 (none); a missing `main` branch (it is the current snapshot). Refused: what other
    /// readers would refuse, e.g. references to snapshots that aren't there; nesting beyond 128 levels.
    ///
    /// # Errors
    ///
    /// [`MetadataError::MissingUuid`] for a version 1 document without `table-uuid`: see
    /// [`TableMetadata::from_json_with_uuid`].
    pub fn from_json(json: &[u8]) -> Result<TableMetadata, MetadataError> {
        read(json, None)
    }

    /// Like [`TableMetadata::from_json`], but gives the table `uuid_if_missing` where a version 1 document has none.
    ///
    /// For registering a table: its identity must be stored at once, since each load of the same document would
    /// otherwise need one anew.
    pub fn from_json_with_uuid(
        json: &[u8],
        uuid_if_missing: Uuid,
    ) -> Result<TableMetadata, MetadataError> {
        read(json, Some(uuid_if_missing))
    }

    /// The document, in compact JSON.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("all keys of a metadata document are strings")
    }
}

fn read(json: &[u8], uuid_if_missing: Option<Uuid>) -> Result<TableMetadata, MetadataError> {
    let mut document = RawObject::of(json)?;
    let found: i64 = document.required("format-version")?;
    let format_version = u8::try_from(found)
        .ok()
        .filter(|version| (1..=MAX_FORMAT_VERSION).contains(version))
        .ok_or(MetadataError::UnsupportedFormatVersion {
            found,
            newest: MAX_FORMAT_VERSION,
        })?;

    let table_uuid = match document.take::<Uuid>("table-uuid")? {
        Some(uuid) => uuid,
        None if format_version == 1 => uuid_if_missing.ok_or(MetadataError::MissingUuid)?,
        None => return Err(missing("table-uuid")),
    };
    let last_sequence_number = match document.take("last-sequence-number")? {
        Some(number) => number,
        None if format_version == 1 => 0,
        None => return Err(missing("last-sequence-number")),
    };
    let next_row_id = match document.take("next-row-id")? {
        Some(id) => id,
        None if format_version < 3 => 0,
        None => return Err(missing("next-row-id")),
    };

    let last_column_id = document.required("last-column-id")?;
    let (schemas, current_schema_id) = read_schemas(&mut document, format_version)?;
    let (partition_specs, default_spec_id) = read_specs(&mut document, format_version)?;
    let highest_partition_id = partition_specs
        .iter()
        .map(PartitionSpec::highest_field_id)
        .max();
    let last_partition_id = match document.take("last-partition-id")? {
        Some(id) => id,
        None if format_version == 1 => highest_partition_id.unwrap_or(NO_PARTITION_FIELD_ID),
        None => return Err(missing("last-partition-id")),
    };
    let (sort_orders, default_sort_order_id) = read_sort_orders(&mut document, format_version)?;

    let mut snapshots = Snapshots::default();
    for raw in document
        .take::<Vec<&RawValue>>("snapshots")?
        .unwrap_or_default()
    {
        let snapshot = Snapshot::from_raw(raw)?;
        let snapshot_id = snapshot.snapshot_id();
        if !snapshots.push(snapshot) {
            return Err(inconsistent(format!(
                "the snapshot {snapshot_id} is there twice"
            )));
        }
    }
    let named_snapshot_id = document
        .take::<i64>("current-snapshot-id")?
        .filter(|&id| id != -1);
    let refs = read_refs(&mut document, named_snapshot_id)?;
    let current_snapshot_id =
        named_snapshot_id.or(refs.get(MAIN_BRANCH).map(|main| main.snapshot_id));
    let snapshot_log = match document.take_raw("snapshot-log") {
        Some(raw) => read_snapshot_log(raw)?,
        None => Vec::new(),
    };

    let metadata = TableMetadata {
        format_version,
        table_uuid,
        location: document.required("location")?,
        last_sequence_number,
        last_updated_ms: document.required("last-updated-ms")?,
        last_column_id,
        schemas,
        current_schema_id,
        partition_specs,
        default_spec_id,
        last_partition_id,
        sort_orders,
        default_sort_order_id,
        properties: read_properties(&mut document)?,
        current_snapshot_id,
        next_row_id,
        encryption_keys: document.take_kept("encryption-keys")?,
        refs,
        snapshots,
        statistics: document.take_kept("statistics")?,
        partition_statistics: document.take_kept("partition-statistics")?,
        snapshot_log,
        metadata_log: document
            .take_each::<MetadataLogEntry>("metadata-log")?
            .unwrap_or_default(),
        extra: document.rest()?,
    };
    check_consistency(&metadata)?;
    Ok(metadata)
}

fn read_schemas(
    document: &mut RawObject<'_>,
    format_version: u8,
) -> Result<(Vec<Arc<Schema>>, i32), MetadataError> {
    // Later versions don't have the field: kept there, it would be stale after the next commit.
    let legacy: Option<Value> = document.take("schema")?.filter(|_| format_version == 1);
    let schemas: Option<Vec<Schema>> = document.take_each("schemas")?;
    let current_schema_id: Option<i32> = document.take("current-schema-id")?;
    match (schemas, legacy) {
        (Some(schemas), _) => {
            let current_schema_id =
                current_schema_id.ok_or_else(|| missing("current-schema-id"))?;
            Ok((
                schemas.into_iter().map(Arc::new).collect(),
                current_schema_id,
            ))
        }
        (None, Some(legacy)) => {
            let schema = Schema::from_value(legacy)?;
            let schema_id = schema.schema_id;
            Ok((vec![Arc::new(schema)], schema_id))
        }
        (None, None) => Err(missing("schemas")),
    }
}

fn read_specs(
    document: &mut RawObject<'_>,
    format_version: u8,
) -> Result<(Vec<PartitionSpec>, i32), MetadataError> {
    let legacy: Option<Vec<PartitionField>> = document
        .take_each("partition-spec")?
        .filter(|_| format_version == 1);
    let specs: Option<Vec<PartitionSpec>> = document.take_each("partition-specs")?;
    let default_spec_id: Option<i32> = document.take("default-spec-id")?;
    let (mut specs, default_spec_id) = match (specs, legacy) {
        (Some(specs), _) => (
            specs,
            default_spec_id.ok_or_else(|| missing("default-spec-id"))?,
        ),
        (None, Some(fields)) => {
            let spec_id = default_spec_id.unwrap_or(0);
            (
                vec![PartitionSpec {
                    spec_id,
                    fields,
                    extra: Map::new(),
                }],
                spec_id,
            )
        }
        (None, None) => return Err(missing("partition-specs")),
    };
    // Old version 1 writers gave no field ids: they are implied by the position.
    for spec in &mut specs {
        for (id, field) in (NO_PARTITION_FIELD_ID + 1..).zip(&mut spec.fields) {
            field.field_id.get_or_insert(id);
        }
    }
    Ok((specs, default_spec_id))
}

fn read_sort_orders(
    document: &mut RawObject<'_>,
    format_version: u8,
) -> Result<(Vec<SortOrder>, i32), MetadataError> {
    let orders: Option<Vec<SortOrder>> = document.take_each("sort-orders")?;
    let default_order_id: Option<i32> = document.take("default-sort-order-id")?;
    match orders {
        Some(mut orders) => {
            let default_order_id =
                default_order_id.ok_or_else(|| missing("default-sort-order-id"))?;
            // Some writers name the unsorted order without listing it.
            if default_order_id == 0 && !orders.iter().any(|order| order.order_id == 0) {
                orders.push(SortOrder::unsorted());
            }
            Ok((orders, default_order_id))
        }
        None if format_version == 1 => Ok((vec![SortOrder::unsorted()], 0)),
        None => Err(missing("sort-orders")),
    }
}

fn read_refs(
    document: &mut RawObject<'_>,
    current_snapshot_id: Option<i64>,
) -> Result<BTreeMap<String, SnapshotRef>, MetadataError> {
    let mut refs = BTreeMap::new();
    for (name, value) in document
        .take::<Map<String, Value>>("refs")?
        .unwrap_or_default()
    {
        refs.insert(name, SnapshotRef::from_value(value)?);
    }
    if let Some(snapshot_id) = current_snapshot_id {
        refs.entry(MAIN_BRANCH.to_string())
            .or_insert_with(|| SnapshotRef::branch(snapshot_id));
    }
    Ok(refs)
}

fn read_properties(
    document: &mut RawObject<'_>,
) -> Result<BTreeMap<String, String>, MetadataError> {
    match document.take::<Value>("properties")? {
        None => Ok(BTreeMap::new()),
        Some(value) => string_map(value).ok_or_else(|| {
            ShapeError("the field 'properties' must be an object of strings".to_string()).into()
        }),
    }
}

fn inconsistent(message: String) -> MetadataError {
    MetadataError::Inconsistent { message }
}

/// What every reader relies on.
fn check_consistency(metadata: &TableMetadata) -> Result<(), MetadataError> {
    check_unique("schema", metadata.schemas().map(|schema| schema.schema_id))?;
    check_unique(
        "partition spec",
        metadata.partition_specs.iter().map(|spec| spec.spec_id),
    )?;
    check_unique(
        "sort order",
        metadata.sort_orders.iter().map(|order| order.order_id),
    )?;
    if metadata.current_schema().is_none() {
        return Err(inconsistent(format!(
            "current-schema-id {} isn't among the schemas",
            metadata.current_schema_id
        )));
    }
    if metadata.default_spec().is_none() {
        let id = metadata.default_spec_id;
        return Err(inconsistent(format!(
            "default-spec-id {id} isn't among the partition specs"
        )));
    }
    if metadata.default_sort_order().is_none() {
        let id = metadata.default_sort_order_id;
        return Err(inconsistent(format!(
            "default-sort-order-id {id} isn't among the sort orders"
        )));
    }
    for (name, reference) in &metadata.refs {
        if !metadata.snapshots.contains(reference.snapshot_id) {
            let id = reference.snapshot_id;
            return Err(inconsistent(format!(
                "the reference '{name}' points at snapshot {id}, which isn't there"
            )));
        }
    }
    let main_snapshot_id = metadata.refs.get(MAIN_BRANCH).map(|main| main.snapshot_id);
    if metadata.current_snapshot_id != main_snapshot_id {
        return Err(inconsistent(
            "current-snapshot-id isn't the snapshot of the branch 'main'".to_string(),
        ));
    }
    Ok(())
}

fn check_unique<T: Copy + Eq + Hash + fmt::Display>(
    what: &str,
    ids: impl Iterator<Item = T>,
) -> Result<(), MetadataError> {
    let mut seen = HashSet::new();
    for id in ids {
        if !seen.insert(id) {
            return Err(inconsistent(format!("the {what} {id} is there twice")));
        }
    }
    Ok(())
}

impl Serialize for TableMetadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let version = self.format_version;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("format-version", &version)?;
        map.serialize_entry("table-uuid", &self.table_uuid)?;
        map.serialize_entry("location", &self.location)?;
        if version >= 2 {
            map.serialize_entry("last-sequence-number", &self.last_sequence_number)?;
        }
        map.serialize_entry("last-updated-ms", &self.last_updated_ms)?;
        map.serialize_entry("last-column-id", &self.last_column_id)?;
        if version == 1
            && let Some(schema) = self.current_schema()
        {
            map.serialize_entry("schema", schema)?;
        }
        map.serialize_entry("current-schema-id", &self.current_schema_id)?;
        map.serialize_entry("schemas", &Each(&self.schemas))?;
        if version == 1
            && let Some(spec) = self.default_spec()
        {
            map.serialize_entry("partition-spec", &spec.fields)?;
        }
        map.serialize_entry("default-spec-id", &self.default_spec_id)?;
        map.serialize_entry("partition-specs", &self.partition_specs)?;
        map.serialize_entry("last-partition-id", &self.last_partition_id)?;
        map.serialize_entry("default-sort-order-id", &self.default_sort_order_id)?;
        map.serialize_entry("sort-orders", &self.sort_orders)?;
        map.serialize_entry("properties", &self.properties)?;
        match self.current_snapshot_id {
            Some(id) => map.serialize_entry("current-snapshot-id", &id)?,
            // Readers of versions 1 and 2 may insist on the field, those of version 3 don't.
            None if version < 3 => map.serialize_entry("current-snapshot-id", &-1)?,
            None => {}
        }
        if version >= 3 {
            map.serialize_entry("next-row-id", &self.next_row_id)?;
        }
        if !self.encryption_keys.is_empty() {
            map.serialize_entry("encryption-keys", &self.encryption_keys)?;
        }
        map.serialize_entry("refs", &self.refs)?;
        map.serialize_entry("snapshots", &self.snapshots)?;
        map.serialize_entry("statistics", &self.statistics)?;
        map.serialize_entry("partition-statistics", &self.partition_statistics)?;
        map.serialize_entry("snapshot-log", &self.snapshot_log)?;
        map.serialize_entry("metadata-log", &self.metadata_log)?;
        for (name, json) in &self.extra {
            map.serialize_entry(name, json)?;
        }
        map.end()
    }
}

/// A list of shared items.
struct Each<'a, T>(&'a [Arc<T>]);

impl<T: Serialize> Serialize for Each<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(AsRef::as_ref))
    }
}

impl<'de> Deserialize<'de> for TableMetadata {
    /// Reads like [`TableMetadata::from_json`]. Works from `serde_json` text and values, not inside `flatten` or
    /// untagged enums.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TableMetadata, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        TableMetadata::from_json(raw.get().as_bytes()).map_err(D::Error::custom)
    }
}
