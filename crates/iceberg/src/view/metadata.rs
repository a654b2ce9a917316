//! A view's document.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::SerializeMap};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use uuid::Uuid;

use super::version::ViewVersion;
use crate::error::{MetadataError, ShapeError};
use crate::json::{Fields, FromValue, each, serialize_extra};
use crate::schema::Schema;
use crate::update::uuid_field;

/// The view format version that this crate reads and writes.
pub(super) const VIEW_FORMAT_VERSION: i64 = 1;

/// A view's metadata.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewMetadata {
    pub(super) view_uuid: Uuid,
    pub(super) location: String,
    pub(super) current_version_id: i32,
    pub(super) versions: Vec<ViewVersion>,
    pub(super) version_log: Vec<ViewHistoryEntry>,
    pub(super) schemas: Vec<Schema>,
    pub(super) properties: BTreeMap<String, String>,
    pub(super) extra: Map<String, Value>,
}

/// Since when a version was the current one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewHistoryEntry {
    /// The version.
    pub version_id: i32,
    /// Milliseconds since 1970.
    pub timestamp_ms: i64,
    /// Fields of the JSON object that aren't known.
    pub extra: Map<String, Value>,
}

impl ViewMetadata {
    /// Reads a document; unknown fields are kept.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if it isn't a view's document, or its current version isn't among the versions.
    pub fn from_json(json: &[u8]) -> Result<ViewMetadata, MetadataError> {
        let value: Value =
            serde_json::from_slice(json).map_err(|error| MetadataError::Malformed {
                message: error.to_string(),
            })?;
        ViewMetadata::from_document(value)
    }

    fn from_document(value: Value) -> Result<ViewMetadata, MetadataError> {
        let mut object = Fields::of("view metadata document", value)?;
        let found = object.i64("format-version")?;
        if found != VIEW_FORMAT_VERSION {
            return Err(MetadataError::UnsupportedFormatVersion { found, newest: 1 });
        }
        let metadata = ViewMetadata {
            view_uuid: uuid_field(&mut object, "view-uuid")?,
            location: object.string("location")?,
            current_version_id: object.i32("current-version-id")?,
            versions: each(object.list("versions")?, ViewVersion::from_value)?,
            version_log: each(object.list("version-log")?, ViewHistoryEntry::from_value)?,
            schemas: each(object.list("schemas")?, Schema::from_value)?,
            properties: object
                .optional_string_map("properties")?
                .unwrap_or_default(),
            extra: object.rest(),
        };
        if metadata.current_version().is_none() {
            let id = metadata.current_version_id;
            return Err(MetadataError::Inconsistent {
                message: format!("current-version-id {id} isn't among the versions"),
            });
        }
        Ok(metadata)
    }

    /// The document, in compact JSON.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("all keys of a metadata document are strings")
    }

    /// The view's identity.
    pub fn uuid(&self) -> Uuid {
        self.view_uuid
    }

    /// Base location of the view's files.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Id of the version that readers see.
    pub fn current_version_id(&self) -> i32 {
        self.current_version_id
    }

    /// The version that readers see. `None` can't happen in metadata that was loaded, created or committed.
    pub fn current_version(&self) -> Option<&ViewVersion> {
        self.version_by_id(self.current_version_id)
    }

    /// The version with that id.
    pub fn version_by_id(&self, version_id: i32) -> Option<&ViewVersion> {
        self.versions
            .iter()
            .find(|version| version.version_id == version_id)
    }

    /// The versions that are kept, in the order of the document.
    pub fn versions(&self) -> &[ViewVersion] {
        &self.versions
    }

    /// Which version was current since when, the oldest first.
    pub fn version_log(&self) -> &[ViewHistoryEntry] {
        &self.version_log
    }

    /// All schemas, in the order of the document.
    pub fn schemas(&self) -> &[Schema] {
        &self.schemas
    }

    /// The schema with that id.
    pub fn schema_by_id(&self, schema_id: i32) -> Option<&Schema> {
        self.schemas
            .iter()
            .find(|schema| schema.schema_id == schema_id)
    }

    /// The view's properties.
    pub fn properties(&self) -> &BTreeMap<String, String> {
        &self.properties
    }
}

impl FromValue for ViewHistoryEntry {
    fn from_value(value: Value) -> Result<ViewHistoryEntry, ShapeError> {
        let mut object = Fields::of("version-log entry", value)?;
        Ok(ViewHistoryEntry {
            version_id: object.i32("version-id")?,
            timestamp_ms: object.i64("timestamp-ms")?,
            extra: object.rest(),
        })
    }
}

impl Serialize for ViewHistoryEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("timestamp-ms", &self.timestamp_ms)?;
        map.serialize_entry("version-id", &self.version_id)?;
        serialize_extra(&mut map, &self.extra)?;
        map.end()
    }
}

impl Serialize for ViewMetadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("view-uuid", &self.view_uuid)?;
        map.serialize_entry("format-version", &VIEW_FORMAT_VERSION)?;
        map.serialize_entry("location", &self.location)?;
        map.serialize_entry("schemas", &self.schemas)?;
        map.serialize_entry("current-version-id", &self.current_version_id)?;
        map.serialize_entry("versions", &self.versions)?;
        map.serialize_entry("version-log", &self.version_log)?;
        map.serialize_entry("properties", &self.properties)?;
        serialize_extra(&mut map, &self.extra)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for ViewMetadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ViewMetadata, D::Error> {
        ViewMetadata::from_document(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
