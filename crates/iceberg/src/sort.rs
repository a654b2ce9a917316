//! Sort orders, as written.

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use crate::error::ShapeError;
use crate::json::{Fields, FromValue, deserialize_value, each, serialize_extra};

/// The order in which writers should lay out rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortOrder {
    /// Id within the table; 0 is the unsorted order.
    pub order_id: i32,
    /// The fields, the most significant first.
    pub fields: Vec<SortField>,
    /// Fields of the JSON object that aren't known.
    pub extra: Map<String, Value>,
}

/// One field of a sort order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortField {
    /// The schema field that is sorted by.
    pub source_id: Option<i32>,
    /// The schema fields, where the transform takes several (format version 3).
    pub source_ids: Option<Vec<i32>>,
    /// Transform as written.
    pub transform: String,
    /// `asc` or `desc`, as written.
    pub direction: String,
    /// `nulls-first` or `nulls-last`, as written.
    pub null_order: String,
    /// Fields of the JSON object that aren't known.
    pub extra: Map<String, Value>,
}

impl SortOrder {
    /// No order, with id 0.
    pub fn unsorted() -> SortOrder {
        SortOrder {
            order_id: 0,
            fields: Vec::new(),
            extra: Map::new(),
        }
    }

    /// Whether there is nothing to sort by.
    pub fn is_unsorted(&self) -> bool {
        self.fields.is_empty()
    }
}

impl SortField {
    /// The schema fields that are sorted by, one or several.
    pub fn sources(&self) -> Vec<i32> {
        match (&self.source_ids, self.source_id) {
            (Some(ids), _) => ids.clone(),
            (None, Some(id)) => vec![id],
            (None, None) => Vec::new(),
        }
    }
}

impl FromValue for SortOrder {
    fn from_value(value: Value) -> Result<SortOrder, ShapeError> {
        let mut object = Fields::of("sort order", value)?;
        Ok(SortOrder {
            order_id: object.optional_i32("order-id")?.unwrap_or(0),
            fields: each(object.list("fields")?, SortField::from_value)?,
            extra: object.rest(),
        })
    }
}

impl FromValue for SortField {
    fn from_value(value: Value) -> Result<SortField, ShapeError> {
        let mut object = Fields::of("sort field", value)?;
        let source_id = object.optional_i32("source-id")?;
        let source_ids = object.optional_i32_list("source-ids")?;
        if source_id.is_none() && source_ids.is_none() {
            return Err(object.missing("source-id"));
        }
        Ok(SortField {
            source_id,
            source_ids,
            transform: object.string("transform")?,
            direction: object.string("direction")?,
            null_order: object.string("null-order")?,
            extra: object.rest(),
        })
    }
}

impl Serialize for SortOrder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("order-id", &self.order_id)?;
        map.serialize_entry("fields", &self.fields)?;
        serialize_extra(&mut map, &self.extra)?;
        map.end()
    }
}

impl Serialize for SortField {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("transform", &self.transform)?;
        if let Some(source_id) = self.source_id {
            map.serialize_entry("source-id", &source_id)?;
        }
        if let Some(source_ids) = &self.source_ids {
            map.serialize_entry("source-ids", source_ids)?;
        }
        map.serialize_entry("direction", &self.direction)?;
        map.serialize_entry("null-order", &self.null_order)?;
        serialize_extra(&mut map, &self.extra)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for SortOrder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SortOrder, D::Error> {
        deserialize_value(deserializer)
    }
}
