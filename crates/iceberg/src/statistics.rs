//! Statistics files and encryption keys: things that a catalog passes on without looking into them.
//!
//! Each is kept as the text that its writer sent, with the fields read out that rules depend on.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, value::RawValue};

use crate::error::{MetadataError, ShapeError};
use crate::json::{Fields, FromValue, RawJson, deserialize_value};

/// A file of statistics about one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatisticsFile {
    header: FileHeader,
    json: RawJson,
}

/// A file of statistics about the partitions of one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionStatisticsFile {
    header: FileHeader,
    json: RawJson,
}

/// A key of the table's encryption, itself encrypted (format version 3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncryptedKey {
    header: KeyHeader,
    json: RawJson,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct FileHeader {
    snapshot_id: i64,
    statistics_path: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct KeyHeader {
    key_id: String,
    #[serde(default)]
    encrypted_by_id: Option<String>,
}

impl StatisticsFile {
    /// The snapshot that the statistics describe.
    pub fn snapshot_id(&self) -> i64 {
        self.header.snapshot_id
    }

    /// Location of the file.
    pub fn statistics_path(&self) -> &str {
        &self.header.statistics_path
    }

    /// The entry as its writer sent it.
    pub fn json(&self) -> &RawJson {
        &self.json
    }
}

impl PartitionStatisticsFile {
    /// The snapshot that the statistics describe.
    pub fn snapshot_id(&self) -> i64 {
        self.header.snapshot_id
    }

    /// Location of the file.
    pub fn statistics_path(&self) -> &str {
        &self.header.statistics_path
    }

    /// The entry as its writer sent it.
    pub fn json(&self) -> &RawJson {
        &self.json
    }
}

impl EncryptedKey {
    /// Id, unique within the table.
    pub fn key_id(&self) -> &str {
        &self.header.key_id
    }

    /// The key that this one is encrypted with, if that is one of the table's own.
    pub fn encrypted_by_id(&self) -> Option<&str> {
        self.header.encrypted_by_id.as_deref()
    }

    /// The entry as its writer sent it.
    pub fn json(&self) -> &RawJson {
        &self.json
    }
}

/// Something that is kept as text and read from the text of a document or from a value of a request.
pub(crate) trait Kept: Sized {
    fn from_raw(raw: &RawValue) -> Result<Self, MetadataError>;
}

fn header_of<'a, T: Deserialize<'a>>(what: &str, raw: &'a RawValue) -> Result<T, MetadataError> {
    serde_json::from_str(raw.get()).map_err(|error| MetadataError::Malformed {
        message: format!("{what}: {error}"),
    })
}

impl Kept for StatisticsFile {
    fn from_raw(raw: &RawValue) -> Result<StatisticsFile, MetadataError> {
        Ok(StatisticsFile {
            header: header_of("a statistics file", raw)?,
            json: RawJson::keep(raw)?,
        })
    }
}

impl Kept for PartitionStatisticsFile {
    fn from_raw(raw: &RawValue) -> Result<PartitionStatisticsFile, MetadataError> {
        let header = header_of("a partition statistics file", raw)?;
        Ok(PartitionStatisticsFile {
            header,
            json: RawJson::keep(raw)?,
        })
    }
}

impl Kept for EncryptedKey {
    fn from_raw(raw: &RawValue) -> Result<EncryptedKey, MetadataError> {
        Ok(EncryptedKey {
            header: header_of("an encryption key", raw)?,
            json: RawJson::keep(raw)?,
        })
    }
}

impl FromValue for StatisticsFile {
    fn from_value(value: Value) -> Result<StatisticsFile, ShapeError> {
        let json = RawJson::of(&value)?;
        let mut object = Fields::of("statistics file", value)?;
        let header = FileHeader {
            snapshot_id: object.i64("snapshot-id")?,
            statistics_path: object.string("statistics-path")?,
        };
        object.i64("file-size-in-bytes")?;
        object.i64("file-footer-size-in-bytes")?;
        object.list("blob-metadata")?;
        Ok(StatisticsFile { header, json })
    }
}

impl FromValue for PartitionStatisticsFile {
    fn from_value(value: Value) -> Result<PartitionStatisticsFile, ShapeError> {
        let json = RawJson::of(&value)?;
        let mut object = Fields::of("partition statistics file", value)?;
        let header = FileHeader {
            snapshot_id: object.i64("snapshot-id")?,
            statistics_path: object.string("statistics-path")?,
        };
        object.i64("file-size-in-bytes")?;
        Ok(PartitionStatisticsFile { header, json })
    }
}

impl FromValue for EncryptedKey {
    fn from_value(value: Value) -> Result<EncryptedKey, ShapeError> {
        let json = RawJson::of(&value)?;
        let mut object = Fields::of("encryption key", value)?;
        let header = KeyHeader {
            key_id: object.string("key-id")?,
            encrypted_by_id: object.optional_string("encrypted-by-id")?,
        };
        object.string("encrypted-key-metadata")?;
        Ok(EncryptedKey { header, json })
    }
}

impl Serialize for StatisticsFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl Serialize for PartitionStatisticsFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl Serialize for EncryptedKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StatisticsFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StatisticsFile, D::Error> {
        deserialize_value(deserializer)
    }
}
