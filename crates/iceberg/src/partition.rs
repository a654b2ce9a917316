//! Partition specs, as written: unknown transforms and several sources for one field are kept.

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use crate::error::ShapeError;
use crate::json::{Fields, FromValue, deserialize_value, each, serialize_extra};

/// One below the first id that a partition field can have; a table that never had a partition field has this as its
/// `last-partition-id`.
pub(crate) const NO_PARTITION_FIELD_ID: i32 = 999;

/// How a table's rows are divided into partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionSpec {
    /// Id within the table; 0 where the document has none.
    pub spec_id: i32,
    /// The fields; none for an unpartitioned table.
    pub fields: Vec<PartitionField>,
    /// Fields of the JSON object that aren't known.
    pub extra: Map<String, Value>,
}

/// One field of a partition spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionField {
    /// The schema field that the value is computed from.
    pub source_id: Option<i32>,
    /// The schema fields, where the transform takes several (format version 3).
    pub source_ids: Option<Vec<i32>>,
    /// Id of the partition field; always there in a table, may be missing in an update.
    pub field_id: Option<i32>,
    /// Name, unique within the spec.
    pub name: String,
    /// Transform as written: `identity`, `bucket[16]`, `day`, `void`, or one that nobody knows yet.
    pub transform: String,
    /// Fields of the JSON object that aren't known.
    pub extra: Map<String, Value>,
}

impl PartitionSpec {
    /// The spec of a table without partitions, with id 0.
    pub fn unpartitioned() -> PartitionSpec {
        PartitionSpec {
            spec_id: 0,
            fields: Vec::new(),
            extra: Map::new(),
        }
    }

    /// The highest partition field id, or 999 if there is none.
    pub fn highest_field_id(&self) -> i32 {
        let ids = self.fields.iter().filter_map(|field| field.field_id);
        ids.max()
            .unwrap_or(NO_PARTITION_FIELD_ID)
            .max(NO_PARTITION_FIELD_ID)
    }

    /// Whether both specs divide rows in the same way under the same names, whatever their ids are (reference
    /// implementation: `PartitionSpec.compatibleWith`).
    pub fn compatible_with(&self, other: &PartitionSpec) -> bool {
        self.fields.len() == other.fields.len()
            && self.fields.iter().zip(&other.fields).all(|(left, right)| {
                left.name == right.name
                    && left.transform == right.transform
                    && left.sources() == right.sources()
            })
    }
}

impl PartitionField {
    /// The schema fields that the value is computed from, one or several.
    pub fn sources(&self) -> Vec<i32> {
        match (&self.source_ids, self.source_id) {
            (Some(ids), _) => ids.clone(),
            (None, Some(id)) => vec![id],
            (None, None) => Vec::new(),
        }
    }

    /// Whether the field only keeps the place of one that was dropped.
    pub fn is_void(&self) -> bool {
        self.transform == "void"
    }
}

impl FromValue for PartitionSpec {
    fn from_value(value: Value) -> Result<PartitionSpec, ShapeError> {
        let mut object = Fields::of("partition spec", value)?;
        Ok(PartitionSpec {
            spec_id: object.optional_i32("spec-id")?.unwrap_or(0),
            fields: each(object.list("fields")?, PartitionField::from_value)?,
            extra: object.rest(),
        })
    }
}

impl FromValue for PartitionField {
    fn from_value(value: Value) -> Result<PartitionField, ShapeError> {
        let mut object = Fields::of("partition field", value)?;
        let source_id = object.optional_i32("source-id")?;
        let source_ids = object.optional_i32_list("source-ids")?;
        if source_id.is_none() && source_ids.is_none() {
            return Err(object.missing("source-id"));
        }
        Ok(PartitionField {
            source_id,
            source_ids,
            field_id: object.optional_i32("field-id")?,
            name: object.string("name")?,
            transform: object.string("transform")?,
            extra: object.rest(),
        })
    }
}

impl Serialize for PartitionSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("spec-id", &self.spec_id)?;
        map.serialize_entry("fields", &self.fields)?;
        serialize_extra(&mut map, &self.extra)?;
        map.end()
    }
}

impl Serialize for PartitionField {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("transform", &self.transform)?;
        if let Some(source_id) = self.source_id {
            map.serialize_entry("source-id", &source_id)?;
        }
        if let Some(source_ids) = &self.source_ids {
            map.serialize_entry("source-ids", source_ids)?;
        }
        if let Some(field_id) = self.field_id {
            map.serialize_entry("field-id", &field_id)?;
        }
        serialize_extra(&mut map, &self.extra)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for PartitionSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PartitionSpec, D::Error> {
        deserialize_value(deserializer)
    }
}
