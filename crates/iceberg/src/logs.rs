//! The two histories that a table's document carries.

use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, value::RawValue};

use crate::error::{MetadataError, ShapeError};
use crate::json::{Fields, FromValue, each, serialize_extra};

/// Since when a snapshot was the current one.
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotLogEntry {
    /// The snapshot.
    pub snapshot_id: i64,
    /// Milliseconds since 1970.
    pub timestamp_ms: i64,
    /// Fields of the JSON object that aren't known.
    pub extra: Map<String, Value>,
}

/// An earlier metadata document of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct MetadataLogEntry {
    /// Location of the document.
    pub metadata_file: String,
    /// Its `last-updated-ms`, in milliseconds since 1970.
    pub timestamp_ms: i64,
    /// Fields of the JSON object that aren't known.
    pub extra: Map<String, Value>,
}

/// A log entry as nearly all of them are; reading these avoids a map for each of many thousand.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct PlainEntry {
    snapshot_id: i64,
    timestamp_ms: i64,
}

/// Reads a snapshot log.
pub(crate) fn read_snapshot_log(raw: &RawValue) -> Result<Vec<SnapshotLogEntry>, MetadataError> {
    if let Ok(entries) = serde_json::from_str::<Vec<PlainEntry>>(raw.get()) {
        let entry = |plain: PlainEntry| SnapshotLogEntry {
            snapshot_id: plain.snapshot_id,
            timestamp_ms: plain.timestamp_ms,
            extra: Map::new(),
        };
        return Ok(entries.into_iter().map(entry).collect());
    }
    let items: Option<Vec<Value>> =
        serde_json::from_str(raw.get()).map_err(|error| MetadataError::Malformed {
            message: format!("snapshot-log: {error}"),
        })?;
    Ok(each(
        items.unwrap_or_default(),
        SnapshotLogEntry::from_value,
    )?)
}

impl FromValue for SnapshotLogEntry {
    fn from_value(value: Value) -> Result<SnapshotLogEntry, ShapeError> {
        let mut object = Fields::of("snapshot-log entry", value)?;
        Ok(SnapshotLogEntry {
            snapshot_id: object.i64("snapshot-id")?,
            timestamp_ms: object.i64("timestamp-ms")?,
            extra: object.rest(),
        })
    }
}

impl FromValue for MetadataLogEntry {
    fn from_value(value: Value) -> Result<MetadataLogEntry, ShapeError> {
        let mut object = Fields::of("metadata-log entry", value)?;
        Ok(MetadataLogEntry {
            metadata_file: object.string("metadata-file")?,
            timestamp_ms: object.i64("timestamp-ms")?,
            extra: object.rest(),
        })
    }
}

impl Serialize for SnapshotLogEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("timestamp-ms", &self.timestamp_ms)?;
        map.serialize_entry("snapshot-id", &self.snapshot_id)?;
        serialize_extra(&mut map, &self.extra)?;
        map.end()
    }
}

impl Serialize for MetadataLogEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("timestamp-ms", &self.timestamp_ms)?;
        map.serialize_entry("metadata-file", &self.metadata_file)?;
        serialize_extra(&mut map, &self.extra)?;
        map.end()
    }
}
