//! One version of a view's definition.

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

use crate::error::{ShapeError, UpdateError};
use crate::json::{Fields, FromValue, deserialize_value, serialize_extra};

/// A version of a view: its definition in one or more dialects, and where names in it are looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewVersion {
    /// Id within the view.
    pub version_id: i32,
    /// Id of the schema of its rows; in an update -1 for the schema that was added last.
    pub schema_id: i32,
    /// When it was made, in milliseconds since 1970.
    pub timestamp_ms: i64,
    /// What its writer says about it.
    pub summary: BTreeMap<String, String>,
    /// The definitions as written; those with the type `sql` have `sql` and `dialect`.
    pub representations: Vec<Value>,
    /// The catalog that names without one are looked up in; if none, the view's own.
    pub default_catalog: Option<String>,
    /// The namespace that names without one are looked up in.
    pub default_namespace: Vec<String>,
    /// Fields of the JSON object that aren't known.
    pub extra: Map<String, Value>,
}

impl ViewVersion {
    /// The dialects of the SQL definitions, in lower case.
    pub fn dialects(&self) -> BTreeSet<String> {
        self.representations.iter().filter_map(dialect_of).collect()
    }

    /// Whether both say the same, whatever their ids and times are (reference implementation: `sameViewVersion`).
    pub(super) fn same_definition(&self, other: &ViewVersion) -> bool {
        self.summary == other.summary
            && self.representations == other.representations
            && self.default_catalog == other.default_catalog
            && self.default_namespace == other.default_namespace
            && self.schema_id == other.schema_id
    }

    /// Refuses two SQL definitions of one dialect: readers couldn't choose.
    pub(super) fn check_dialects(&self) -> Result<(), UpdateError> {
        let mut seen = BTreeSet::new();
        for dialect in self.representations.iter().filter_map(dialect_of) {
            if seen.contains(&dialect) {
                return Err(UpdateError::invalid(format!(
                    "invalid view version: there are two definitions for the dialect '{dialect}'; leave one out"
                )));
            }
            seen.insert(dialect);
        }
        Ok(())
    }
}

fn dialect_of(representation: &Value) -> Option<String> {
    let kind = representation.get("type").and_then(Value::as_str)?;
    if kind != "sql" {
        return None;
    }
    representation
        .get("dialect")
        .and_then(Value::as_str)
        .map(str::to_lowercase)
}

fn check_representation(value: &Value) -> Result<(), ShapeError> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let Some(kind) = text("type") else {
        return Err(ShapeError(
            "a view representation needs the field 'type'".to_string(),
        ));
    };
    let missing = ["sql", "dialect"]
        .into_iter()
        .find(|name| kind == "sql" && text(name).is_none());
    match missing {
        None => Ok(()),
        Some(name) => Err(ShapeError(format!(
            "a view representation of the type sql needs the field '{name}'"
        ))),
    }
}

impl FromValue for ViewVersion {
    fn from_value(value: Value) -> Result<ViewVersion, ShapeError> {
        let mut object = Fields::of("view version", value)?;
        let representations = object.list("representations")?;
        representations.iter().try_for_each(check_representation)?;
        Ok(ViewVersion {
            version_id: object.i32("version-id")?,
            schema_id: object.i32("schema-id")?,
            timestamp_ms: object.i64("timestamp-ms")?,
            summary: object.optional_string_map("summary")?.unwrap_or_default(),
            representations,
            default_catalog: object.optional_string("default-catalog")?,
            default_namespace: object.string_list("default-namespace")?,
            extra: object.rest(),
        })
    }
}

impl Serialize for ViewVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("version-id", &self.version_id)?;
        map.serialize_entry("timestamp-ms", &self.timestamp_ms)?;
        map.serialize_entry("schema-id", &self.schema_id)?;
        map.serialize_entry("summary", &self.summary)?;
        if let Some(catalog) = &self.default_catalog {
            map.serialize_entry("default-catalog", catalog)?;
        }
        map.serialize_entry("default-namespace", &self.default_namespace)?;
        map.serialize_entry("representations", &self.representations)?;
        serialize_extra(&mut map, &self.extra)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for ViewVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ViewVersion, D::Error> {
        deserialize_value(deserializer)
    }
}
