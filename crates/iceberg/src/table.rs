//! A table's metadata: the state that a document describes, and how to look at it.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use uuid::Uuid;

use crate::json::RawJson;
use crate::logs::{MetadataLogEntry, SnapshotLogEntry};
use crate::partition::{NO_PARTITION_FIELD_ID, PartitionSpec};
use crate::schema::Schema;
use crate::snapshot::{Snapshot, SnapshotRef, Snapshots};
use crate::sort::SortOrder;
use crate::statistics::{EncryptedKey, PartitionStatisticsFile, StatisticsFile};

/// A table's metadata of format version 1, 2 or 3.
///
/// Schemas and snapshots are shared between copies, so a clone costs a few pointers per snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct TableMetadata {
    pub(crate) format_version: u8,
    pub(crate) table_uuid: Uuid,
    pub(crate) location: String,
    pub(crate) last_sequence_number: i64,
    pub(crate) last_updated_ms: i64,
    pub(crate) last_column_id: i32,
    pub(crate) schemas: Vec<Arc<Schema>>,
    pub(crate) current_schema_id: i32,
    pub(crate) partition_specs: Vec<PartitionSpec>,
    pub(crate) default_spec_id: i32,
    pub(crate) last_partition_id: i32,
    pub(crate) sort_orders: Vec<SortOrder>,
    pub(crate) default_sort_order_id: i32,
    pub(crate) properties: BTreeMap<String, String>,
    pub(crate) current_snapshot_id: Option<i64>,
    pub(crate) next_row_id: i64,
    pub(crate) encryption_keys: Vec<EncryptedKey>,
    pub(crate) refs: BTreeMap<String, SnapshotRef>,
    pub(crate) snapshots: Snapshots,
    pub(crate) statistics: Vec<StatisticsFile>,
    pub(crate) partition_statistics: Vec<PartitionStatisticsFile>,
    pub(crate) snapshot_log: Vec<SnapshotLogEntry>,
    pub(crate) metadata_log: Vec<MetadataLogEntry>,
    pub(crate) extra: Vec<(String, RawJson)>,
}

impl TableMetadata {
    /// A table of which nothing is decided yet.
    pub(crate) fn blank(format_version: u8) -> TableMetadata {
        TableMetadata {
            format_version,
            table_uuid: Uuid::nil(),
            location: String::new(),
            last_sequence_number: 0,
            last_updated_ms: 0,
            last_column_id: 0,
            schemas: Vec::new(),
            current_schema_id: 0,
            partition_specs: Vec::new(),
            default_spec_id: 0,
            last_partition_id: NO_PARTITION_FIELD_ID,
            sort_orders: Vec::new(),
            default_sort_order_id: 0,
            properties: BTreeMap::new(),
            current_snapshot_id: None,
            next_row_id: 0,
            encryption_keys: Vec::new(),
            refs: BTreeMap::new(),
            snapshots: Snapshots::default(),
            statistics: Vec::new(),
            partition_statistics: Vec::new(),
            snapshot_log: Vec::new(),
            metadata_log: Vec::new(),
            extra: Vec::new(),
        }
    }

    /// Format version: 1, 2 or 3.
    pub fn format_version(&self) -> u8 {
        self.format_version
    }

    /// The table's identity.
    pub fn uuid(&self) -> Uuid {
        self.table_uuid
    }

    /// Base location of the table's files.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// The highest sequence number that was given to a snapshot; 0 in format version 1.
    pub fn last_sequence_number(&self) -> i64 {
        self.last_sequence_number
    }

    /// When the metadata last changed, in milliseconds since 1970; never goes back.
    pub fn last_updated_ms(&self) -> i64 {
        self.last_updated_ms
    }

    /// The highest field id that was ever given to a column.
    pub fn last_column_id(&self) -> i32 {
        self.last_column_id
    }

    /// All schemas, in the order of the document.
    pub fn schemas(&self) -> impl ExactSizeIterator<Item = &Schema> {
        self.schemas.iter().map(AsRef::as_ref)
    }

    /// The schema with that id.
    pub fn schema_by_id(&self, schema_id: i32) -> Option<&Schema> {
        self.schemas().find(|schema| schema.schema_id == schema_id)
    }

    /// Id of the current schema; it is always among the schemas.
    pub fn current_schema_id(&self) -> i32 {
        self.current_schema_id
    }

    /// The current schema.
    ///
    /// `None` can't happen in metadata that was loaded, created or committed.
    pub fn current_schema(&self) -> Option<&Schema> {
        self.schema_by_id(self.current_schema_id)
    }

    /// All partition specs, in the order of the document.
    pub fn partition_specs(&self) -> &[PartitionSpec] {
        &self.partition_specs
    }

    /// Id of the spec that writers use.
    pub fn default_spec_id(&self) -> i32 {
        self.default_spec_id
    }

    /// The spec that writers use. `None` can't happen in metadata that was loaded, created or committed.
    pub fn default_spec(&self) -> Option<&PartitionSpec> {
        self.partition_specs
            .iter()
            .find(|spec| spec.spec_id == self.default_spec_id)
    }

    /// The highest partition field id that was ever given; 999 if none was.
    pub fn last_partition_id(&self) -> i32 {
        self.last_partition_id
    }

    /// All sort orders, in the order of the document.
    pub fn sort_orders(&self) -> &[SortOrder] {
        &self.sort_orders
    }

    /// Id of the order that writers use; 0 for none.
    pub fn default_sort_order_id(&self) -> i32 {
        self.default_sort_order_id
    }

    /// The order that writers use. `None` can't happen in metadata that was loaded, created or committed.
    pub fn default_sort_order(&self) -> Option<&SortOrder> {
        self.sort_orders
            .iter()
            .find(|order| order.order_id == self.default_sort_order_id)
    }

    /// The table's properties.
    pub fn properties(&self) -> &BTreeMap<String, String> {
        &self.properties
    }

    /// The snapshot that readers see who name none.
    pub fn current_snapshot_id(&self) -> Option<i64> {
        self.current_snapshot_id
    }

    /// The current snapshot.
    pub fn current_snapshot(&self) -> Option<&Snapshot> {
        self.current_snapshot_id
            .and_then(|id| self.snapshot_by_id(id))
    }

    /// All snapshots, in the order of the document.
    pub fn snapshots(&self) -> impl ExactSizeIterator<Item = &Snapshot> + DoubleEndedIterator {
        self.snapshots.iter()
    }

    /// The snapshot with that id, in constant time.
    pub fn snapshot_by_id(&self, snapshot_id: i64) -> Option<&Snapshot> {
        self.snapshots.get(snapshot_id)
    }

    /// Branches and tags by name.
    pub fn refs(&self) -> &BTreeMap<String, SnapshotRef> {
        &self.refs
    }

    /// Which snapshot was current since when, the oldest first.
    pub fn snapshot_log(&self) -> &[SnapshotLogEntry] {
        &self.snapshot_log
    }

    /// Earlier documents of the table, the oldest first.
    pub fn metadata_log(&self) -> &[MetadataLogEntry] {
        &self.metadata_log
    }

    /// The next row id to be given (format version 3; 0 before).
    pub fn next_row_id(&self) -> i64 {
        self.next_row_id
    }

    /// Encryption keys (format version 3).
    pub fn encryption_keys(&self) -> &[EncryptedKey] {
        &self.encryption_keys
    }

    /// Statistics files, at most one for each snapshot.
    pub fn statistics(&self) -> &[StatisticsFile] {
        &self.statistics
    }

    /// Partition statistics files, at most one for each snapshot.
    pub fn partition_statistics(&self) -> &[PartitionStatisticsFile] {
        &self.partition_statistics
    }

    /// The top-level fields of the document that aren't known, in the order in which they came.
    pub fn extra(&self) -> Map<String, Value> {
        self.extra
            .iter()
            .map(|(name, json)| (name.clone(), json.to_value()))
            .collect()
    }

    /// The same metadata with only those snapshots that a branch or tag points at (`snapshots=refs` of the REST
    /// specification). The logs stay whole.
    pub fn with_snapshots_refs_only(&self) -> TableMetadata {
        let referenced: HashSet<i64> = self
            .refs
            .values()
            .map(|reference| reference.snapshot_id)
            .collect();
        let snapshots = self.snapshots.subset(&referenced);
        TableMetadata {
            snapshots,
            ..self.clone()
        }
    }
}
