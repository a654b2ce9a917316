//! Snapshots and the references to them.
//!
//! A snapshot never changes once it was added, so it is kept as the text that its writer sent, with the few fields
//! read out that rules depend on. That keeps what is unknown, and makes tables with many snapshots cheap to load and
//! store.

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, json, value::RawValue};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::error::{MetadataError, ShapeError};
use crate::json::{Fields, FromValue, RawJson, deserialize_value, serialize_extra, string_map};
use crate::raw_object::RawObject;

/// The branch that readers see who name none; its snapshot is the table's current one.
pub const MAIN_BRANCH: &str = "main";

/// One state of a table.
#[derive(Debug, Clone)]
pub struct Snapshot {
    header: SnapshotHeader,
    json: RawJson,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct SnapshotHeader {
    snapshot_id: i64,
    #[serde(default)]
    parent_snapshot_id: Option<i64>,
    #[serde(default)]
    sequence_number: Option<i64>,
    timestamp_ms: i64,
    #[serde(default)]
    schema_id: Option<i32>,
    #[serde(default)]
    first_row_id: Option<i64>,
    #[serde(default)]
    added_rows: Option<i64>,
    #[serde(default)]
    key_id: Option<String>,
}

impl Snapshot {
    /// Reads a snapshot from text of a metadata document.
    pub(crate) fn from_raw(raw: &RawValue) -> Result<Snapshot, MetadataError> {
        let header = serde_json::from_str(raw.get()).map_err(|error| MetadataError::Malformed {
            message: format!("a snapshot: {error}"),
        })?;
        Ok(Snapshot {
            header,
            json: RawJson::keep(raw)?,
        })
    }

    /// The snapshot with the fields that version 2 demands and version 1 doesn't know: a sequence number of 0, which
    /// is what readers assume, and a summary that promises nothing.
    pub(crate) fn completed_for_version_2(&self) -> Result<Snapshot, MetadataError> {
        let mut object = RawObject::of(self.json.get().as_bytes())?;
        let sequence_number = object.take_raw("sequence-number");
        let summary = object.take_raw("summary");
        if sequence_number.is_some() && summary.is_some() {
            return Ok(self.clone());
        }
        let zero = RawJson::of(&json!(0))?;
        let overwrite = RawJson::of(&json!({"operation": "overwrite"}))?;
        object.push("sequence-number", sequence_number.unwrap_or(zero.as_raw()));
        object.push("summary", summary.unwrap_or(overwrite.as_raw()));
        Snapshot::from_raw(RawJson::of(&object)?.as_raw())
    }

    /// Id, unique within the table.
    pub fn snapshot_id(&self) -> i64 {
        self.header.snapshot_id
    }

    /// The snapshot that this one was made from.
    pub fn parent_snapshot_id(&self) -> Option<i64> {
        self.header.parent_snapshot_id
    }

    /// Place in the order of all writes to the table; none in format version 1.
    pub fn sequence_number(&self) -> Option<i64> {
        self.header.sequence_number
    }

    /// When the writer made it, in milliseconds since 1970.
    pub fn timestamp_ms(&self) -> i64 {
        self.header.timestamp_ms
    }

    /// The schema that was current when it was written.
    pub fn schema_id(&self) -> Option<i32> {
        self.header.schema_id
    }

    /// The first row id given to its rows (format version 3).
    pub fn first_row_id(&self) -> Option<i64> {
        self.header.first_row_id
    }

    /// How many row ids it takes (format version 3).
    pub fn added_rows(&self) -> Option<i64> {
        self.header.added_rows
    }

    /// The encryption key of its manifest list (format version 3).
    pub fn key_id(&self) -> Option<&str> {
        self.header.key_id.as_deref()
    }

    /// Location of the manifest list. Read from the text at each call.
    pub fn manifest_list(&self) -> Option<String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "kebab-case")]
        struct ManifestList {
            manifest_list: Option<String>,
        }
        serde_json::from_str::<ManifestList>(self.json.get())
            .ok()?
            .manifest_list
    }

    /// The writer's summary, e.g. `operation` and counts. Read from the text at each call; empty if there is none.
    pub fn summary(&self) -> BTreeMap<String, String> {
        #[derive(Deserialize)]
        struct Summary {
            summary: Option<BTreeMap<String, String>>,
        }
        let summary = serde_json::from_str::<Summary>(self.json.get())
            .ok()
            .and_then(|found| found.summary);
        summary.unwrap_or_default()
    }

    /// The snapshot as its writer sent it.
    pub fn json(&self) -> &RawJson {
        &self.json
    }
}

impl PartialEq for Snapshot {
    fn eq(&self, other: &Snapshot) -> bool {
        self.json == other.json
    }
}

impl Eq for Snapshot {}

impl FromValue for Snapshot {
    fn from_value(value: Value) -> Result<Snapshot, ShapeError> {
        let header = SnapshotHeader::deserialize(&value)
            .map_err(|error| ShapeError(format!("a snapshot: {error}")))?;
        check_snapshot_shape(&value)?;
        Ok(Snapshot {
            header,
            json: RawJson::of(&value)?,
        })
    }
}

/// What any reader of a new snapshot needs: where its manifests are, and a summary that is made of strings.
fn check_snapshot_shape(value: &Value) -> Result<(), ShapeError> {
    let manifest_list = value.get("manifest-list").and_then(Value::as_str);
    let manifests = value.get("manifests").and_then(Value::as_array);
    if manifest_list.is_none() && manifests.is_none() {
        return Err(ShapeError(
            "a snapshot needs the field 'manifest-list'".to_string(),
        ));
    }
    match value.get("summary") {
        None | Some(Value::Null) => Ok(()),
        Some(summary) if string_map(summary.clone()).is_some() => Ok(()),
        Some(_) => Err(ShapeError(
            "the field 'summary' of a snapshot must be an object of strings".to_string(),
        )),
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Snapshot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Snapshot, D::Error> {
        deserialize_value(deserializer)
    }
}

/// The snapshots of a table in the order of the document, found by id in constant time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshots {
    in_order: Vec<Arc<Snapshot>>,
    position_by_id: HashMap<i64, usize>,
}

impl Snapshots {
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Snapshot> + DoubleEndedIterator {
        self.in_order.iter().map(AsRef::as_ref)
    }

    pub(crate) fn get(&self, snapshot_id: i64) -> Option<&Snapshot> {
        self.position_by_id
            .get(&snapshot_id)
            .map(|&position| self.in_order[position].as_ref())
    }

    pub(crate) fn contains(&self, snapshot_id: i64) -> bool {
        self.position_by_id.contains_key(&snapshot_id)
    }

    /// Adds a snapshot at the end; false if its id is taken, and then nothing changes.
    pub(crate) fn push(&mut self, snapshot: Snapshot) -> bool {
        let snapshot_id = snapshot.snapshot_id();
        if self.contains(snapshot_id) {
            return false;
        }
        self.position_by_id.insert(snapshot_id, self.in_order.len());
        self.in_order.push(Arc::new(snapshot));
        true
    }

    /// Gives every snapshot the fields that version 2 demands.
    pub(crate) fn complete_for_version_2(&mut self) -> Result<(), MetadataError> {
        for snapshot in &mut self.in_order {
            *snapshot = Arc::new(snapshot.completed_for_version_2()?);
        }
        Ok(())
    }

    /// Keeps only the snapshots whose id passes.
    pub(crate) fn retain(&mut self, keep: impl Fn(i64) -> bool) {
        self.in_order
            .retain(|snapshot| keep(snapshot.snapshot_id()));
        self.position_by_id = self
            .in_order
            .iter()
            .enumerate()
            .map(|(position, snapshot)| (snapshot.snapshot_id(), position))
            .collect();
    }

    /// A copy that shares the snapshots named by `ids`, in the order of the document.
    pub(crate) fn subset(&self, ids: &HashSet<i64>) -> Snapshots {
        let mut subset = Snapshots::default();
        for snapshot in &self.in_order {
            if ids.contains(&snapshot.snapshot_id()) {
                subset
                    .position_by_id
                    .insert(snapshot.snapshot_id(), subset.in_order.len());
                subset.in_order.push(Arc::clone(snapshot));
            }
        }
        subset
    }
}

impl PartialEq for Snapshots {
    fn eq(&self, other: &Snapshots) -> bool {
        self.in_order == other.in_order
    }
}

impl Serialize for Snapshots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// A name for a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotRef {
    /// The snapshot.
    pub snapshot_id: i64,
    /// Branch or tag.
    pub kind: RefKind,
    /// Of a branch: how many snapshots to keep at least.
    pub min_snapshots_to_keep: Option<i32>,
    /// Of a branch: the age in milliseconds up to which its snapshots are kept.
    pub max_snapshot_age_ms: Option<i64>,
    /// The age in milliseconds up to which the reference itself is kept.
    pub max_ref_age_ms: Option<i64>,
    /// Fields of the JSON object that aren't known.
    pub extra: Map<String, Value>,
}

/// Whether a reference moves with writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefKind {
    /// Moves to each new snapshot that is written to it.
    Branch,
    /// Stays.
    Tag,
}

impl RefKind {
    fn name(self) -> &'static str {
        match self {
            RefKind::Branch => "branch",
            RefKind::Tag => "tag",
        }
    }
}

impl SnapshotRef {
    /// A branch at `snapshot_id` without retention rules.
    pub fn branch(snapshot_id: i64) -> SnapshotRef {
        SnapshotRef {
            snapshot_id,
            kind: RefKind::Branch,
            min_snapshots_to_keep: None,
            max_snapshot_age_ms: None,
            max_ref_age_ms: None,
            extra: Map::new(),
        }
    }

    pub(crate) fn from_fields(mut object: Fields) -> Result<SnapshotRef, ShapeError> {
        let kind = match object.string("type")?.to_ascii_lowercase().as_str() {
            "branch" => RefKind::Branch,
            "tag" => RefKind::Tag,
            _ => return Err(object.wrong("type", "'branch' or 'tag'")),
        };
        Ok(SnapshotRef {
            snapshot_id: object.i64("snapshot-id")?,
            kind,
            min_snapshots_to_keep: object.optional_i32("min-snapshots-to-keep")?,
            max_snapshot_age_ms: object.optional_i64("max-snapshot-age-ms")?,
            max_ref_age_ms: object.optional_i64("max-ref-age-ms")?,
            extra: object.rest(),
        })
    }

    pub(crate) fn serialize_into<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("snapshot-id", &self.snapshot_id)?;
        map.serialize_entry("type", self.kind.name())?;
        if let Some(count) = self.min_snapshots_to_keep {
            map.serialize_entry("min-snapshots-to-keep", &count)?;
        }
        if let Some(age) = self.max_snapshot_age_ms {
            map.serialize_entry("max-snapshot-age-ms", &age)?;
        }
        if let Some(age) = self.max_ref_age_ms {
            map.serialize_entry("max-ref-age-ms", &age)?;
        }
        serialize_extra(map, &self.extra)
    }
}

impl FromValue for SnapshotRef {
    fn from_value(value: Value) -> Result<SnapshotRef, ShapeError> {
        SnapshotRef::from_fields(Fields::of("snapshot reference", value)?)
    }
}

impl Serialize for SnapshotRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.serialize_into(&mut map)?;
        map.end()
    }
}
