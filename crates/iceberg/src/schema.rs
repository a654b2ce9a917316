//! Schemas and the types of their fields, as written: a type that nobody knows yet is kept like any other.

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use crate::error::ShapeError;
use crate::json::{Extra, Fields, FromValue, deserialize_value, each, kind_of, serialize_extra};

/// A table's or view's schema: a struct with an id and, for tables, the fields that identify a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// Id within the table; 0 where the document has none.
    pub schema_id: i32,
    /// Ids of the fields that together identify a row; often empty.
    pub identifier_field_ids: Vec<i32>,
    /// Top-level fields, in order.
    pub fields: Vec<Field>,
    /// Fields of the JSON object that aren't known.
    pub extra: Map<String, Value>,
}

/// One field of a struct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Id, unique within the schema.
    pub id: i32,
    /// Name, unique within its struct.
    pub name: String,
    /// Whether the field can't be null.
    pub required: bool,
    /// Type.
    pub field_type: Type,
    /// Comment.
    pub doc: Option<String>,
    /// The value that rows have which were written before the field existed (format version 3).
    pub initial_default: Option<Value>,
    /// The value that a writer puts where the row has none.
    pub write_default: Option<Value>,
    /// Fields of the JSON object that aren't known.
    pub extra: Map<String, Value>,
}

/// A type as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// Anything that is written as a string, parameters included, known or not: `long`, `decimal(10,2)`, `variant`,
    /// `geometry(OGC:CRS84)`.
    Primitive(String),
    /// A struct.
    Struct(StructType),
    /// A list.
    List(Box<ListType>),
    /// A map.
    Map(Box<MapType>),
    /// An object whose `type` nobody knows yet; what it contains is kept but not looked into.
    Other(Map<String, Value>),
}

/// A struct of fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructType {
    /// The fields, in order.
    pub fields: Vec<Field>,
    /// Fields of the JSON object that aren't known.
    pub extra: Map<String, Value>,
}

/// A list of one element type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListType {
    /// Field id of the element.
    pub element_id: i32,
    /// Whether an element can't be null.
    pub element_required: bool,
    /// Type of the element.
    pub element: Type,
    /// Fields of the JSON object that aren't known.
    pub extra: Map<String, Value>,
}

/// A map from one key type to one value type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapType {
    /// Field id of the key.
    pub key_id: i32,
    /// Type of the key.
    pub key: Type,
    /// Field id of the value.
    pub value_id: i32,
    /// Whether a value can't be null.
    pub value_required: bool,
    /// Type of the value.
    pub value: Type,
    /// Fields of the JSON object that aren't known.
    pub extra: Map<String, Value>,
}

impl Schema {
    /// The highest field id in use, nested fields included; 0 for a schema without fields.
    pub fn highest_field_id(&self) -> i32 {
        let mut highest = 0;
        walk_fields(&self.fields, &mut |id| highest = highest.max(id));
        highest
    }

    /// Whether the other schema has the same fields and identifier fields; ids and unknown fields of the schemas
    /// themselves don't count (reference implementation: `Schema.sameSchema`), nor does how a type is spelled:
    /// `decimal(9,2)` is `decimal(9, 2)`.
    pub fn same_schema(&self, other: &Schema) -> bool {
        let sorted = |ids: &[i32]| {
            let mut ids = ids.to_vec();
            ids.sort_unstable();
            ids
        };
        same_fields(&self.fields, &other.fields)
            && sorted(&self.identifier_field_ids) == sorted(&other.identifier_field_ids)
    }
}

fn same_fields(left: &[Field], right: &[Field]) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .all(|(left, right)| same_field(left, right))
}

fn same_field(left: &Field, right: &Field) -> bool {
    left.id == right.id
        && left.name == right.name
        && left.required == right.required
        && left.doc == right.doc
        && left.initial_default == right.initial_default
        && left.write_default == right.write_default
        && left.extra == right.extra
        && same_type(&left.field_type, &right.field_type)
}

fn same_type(left: &Type, right: &Type) -> bool {
    match (left, right) {
        (Type::Primitive(left), Type::Primitive(right)) => {
            let letters = |name: &str| {
                name.chars()
                    .filter(|letter| !letter.is_whitespace())
                    .collect::<String>()
            };
            left == right || letters(left) == letters(right)
        }
        (Type::Struct(left), Type::Struct(right)) => {
            left.extra == right.extra && same_fields(&left.fields, &right.fields)
        }
        (Type::List(left), Type::List(right)) => {
            left.element_id == right.element_id
                && left.element_required == right.element_required
                && left.extra == right.extra
                && same_type(&left.element, &right.element)
        }
        (Type::Map(left), Type::Map(right)) => {
            left.key_id == right.key_id
                && left.value_id == right.value_id
                && left.value_required == right.value_required
                && left.extra == right.extra
                && same_type(&left.key, &right.key)
                && same_type(&left.value, &right.value)
        }
        (left, right) => left == right,
    }
}

fn walk_fields(fields: &[Field], visit: &mut impl FnMut(i32)) {
    for field in fields {
        visit(field.id);
        walk_type(&field.field_type, visit);
    }
}

fn walk_type(field_type: &Type, visit: &mut impl FnMut(i32)) {
    match field_type {
        Type::Primitive(_) | Type::Other(_) => {}
        Type::Struct(struct_type) => walk_fields(&struct_type.fields, visit),
        Type::List(list) => {
            visit(list.element_id);
            walk_type(&list.element, visit);
        }
        Type::Map(map) => {
            visit(map.key_id);
            visit(map.value_id);
            walk_type(&map.key, visit);
            walk_type(&map.value, visit);
        }
    }
}

impl FromValue for Schema {
    fn from_value(value: Value) -> Result<Schema, ShapeError> {
        let mut object = Fields::of("schema", value)?;
        if let Some(kind) = object.optional_string("type")?
            && kind != "struct"
        {
            return Err(object.wrong("type", "'struct'"));
        }
        let schema_id = object.optional_i32("schema-id")?.unwrap_or(0);
        let identifier_field_ids = object
            .optional_i32_list("identifier-field-ids")?
            .unwrap_or_default();
        let fields = each(object.list("fields")?, Field::from_value)?;
        Ok(Schema {
            schema_id,
            identifier_field_ids,
            fields,
            extra: object.rest(),
        })
    }
}

impl FromValue for Field {
    fn from_value(value: Value) -> Result<Field, ShapeError> {
        let mut object = Fields::of("schema field", value)?;
        Ok(Field {
            id: object.i32("id")?,
            name: object.string("name")?,
            required: object.bool("required")?,
            field_type: Type::from_value(object.required("type")?)?,
            doc: object.optional_string("doc")?,
            initial_default: object.take("initial-default"),
            write_default: object.take("write-default"),
            extra: object.rest(),
        })
    }
}

impl FromValue for Type {
    fn from_value(value: Value) -> Result<Type, ShapeError> {
        let map = match value {
            Value::String(name) => return Ok(Type::Primitive(name)),
            Value::Object(map) => map,
            other => {
                let found = kind_of(&other);
                return Err(ShapeError(format!(
                    "a type must be a string or an object, not {found}"
                )));
            }
        };
        match map.get("type").and_then(Value::as_str) {
            Some("struct") => {
                let mut object = Fields::of("struct type", Value::Object(map))?;
                object.take("type");
                let fields = each(object.list("fields")?, Field::from_value)?;
                Ok(Type::Struct(StructType {
                    fields,
                    extra: object.rest(),
                }))
            }
            Some("list") => {
                let mut object = Fields::of("list type", Value::Object(map))?;
                object.take("type");
                Ok(Type::List(Box::new(ListType {
                    element_id: object.i32("element-id")?,
                    element_required: object.bool("element-required")?,
                    element: Type::from_value(object.required("element")?)?,
                    extra: object.rest(),
                })))
            }
            Some("map") => {
                let mut object = Fields::of("map type", Value::Object(map))?;
                object.take("type");
                Ok(Type::Map(Box::new(MapType {
                    key_id: object.i32("key-id")?,
                    key: Type::from_value(object.required("key")?)?,
                    value_id: object.i32("value-id")?,
                    value_required: object.bool("value-required")?,
                    value: Type::from_value(object.required("value")?)?,
                    extra: object.rest(),
                })))
            }
            Some(_) => Ok(Type::Other(map)),
            None => Err(ShapeError(
                "a type that is an object needs the field 'type'".to_string(),
            )),
        }
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "struct")?;
        map.serialize_entry("schema-id", &self.schema_id)?;
        if !self.identifier_field_ids.is_empty() {
            map.serialize_entry("identifier-field-ids", &self.identifier_field_ids)?;
        }
        map.serialize_entry("fields", &self.fields)?;
        serialize_extra(&mut map, &self.extra)?;
        map.end()
    }
}

impl Serialize for Field {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("required", &self.required)?;
        map.serialize_entry("type", &self.field_type)?;
        if let Some(doc) = &self.doc {
            map.serialize_entry("doc", doc)?;
        }
        if let Some(value) = &self.initial_default {
            map.serialize_entry("initial-default", value)?;
        }
        if let Some(value) = &self.write_default {
            map.serialize_entry("write-default", value)?;
        }
        serialize_extra(&mut map, &self.extra)?;
        map.end()
    }
}

impl Serialize for Type {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, extra): (&str, &Extra) = match self {
            Type::Primitive(name) => return serializer.serialize_str(name),
            Type::Other(map) => return map.serialize(serializer),
            Type::Struct(struct_type) => ("struct", &struct_type.extra),
            Type::List(list) => ("list", &list.extra),
            Type::Map(map_type) => ("map", &map_type.extra),
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", kind)?;
        match self {
            Type::Primitive(_) | Type::Other(_) => {}
            Type::Struct(struct_type) => map.serialize_entry("fields", &struct_type.fields)?,
            Type::List(list) => {
                map.serialize_entry("element-id", &list.element_id)?;
                map.serialize_entry("element", &list.element)?;
                map.serialize_entry("element-required", &list.element_required)?;
            }
            Type::Map(map_type) => {
                map.serialize_entry("key-id", &map_type.key_id)?;
                map.serialize_entry("key", &map_type.key)?;
                map.serialize_entry("value-id", &map_type.value_id)?;
                map.serialize_entry("value", &map_type.value)?;
                map.serialize_entry("value-required", &map_type.value_required)?;
            }
        }
        serialize_extra(&mut map, extra)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Schema, D::Error> {
        deserialize_value(deserializer)
    }
}

impl<'de> Deserialize<'de> for Type {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Type, D::Error> {
        deserialize_value(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_spelling_of_a_type_makes_no_other_schema_but_anything_else_does() {
        let schema = |name: &str, type_name: &str| -> Schema {
            let inner = json!({"type": "list", "element-id": 2, "element-required": true, "element": type_name});
            let field = json!({"id": 1, "name": name, "required": true, "type": inner});
            serde_json::from_value(json!({"type": "struct", "fields": [field]})).unwrap()
        };
        assert!(schema("a", "decimal(9,2)").same_schema(&schema("a", "decimal(9, 2)")));
        assert!(!schema("a", "decimal(9,2)").same_schema(&schema("a", "decimal(9,3)")));
        assert!(!schema("a", "int").same_schema(&schema("b", "int")));
    }
}
