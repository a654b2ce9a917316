//! When a schema is fit to be added to a table.
//!
//! Schemas that are stored already aren't judged: the rules run when one is added. A type that nobody knows yet
//! passes.

use std::collections::HashMap;

use crate::error::UpdateError;
use crate::schema::{Field, Schema, Type};

/// The fields of a schema by id, nested ones included.
pub(crate) struct SchemaIndex<'a> {
    by_id: HashMap<i32, IndexedField<'a>>,
    id_by_path: HashMap<String, i32>,
}

/// A field and what lies between it and the top of the schema.
pub(crate) struct IndexedField<'a> {
    /// Names from the top, joined by dots; `element`, `key` and `value` inside lists and maps.
    pub(crate) path: String,
    pub(crate) field_type: &'a Type,
    pub(crate) required: bool,
    /// Not inside a list or map.
    pub(crate) inside_structs_only: bool,
    /// Every struct around it is required.
    pub(crate) ancestors_required: bool,
}

/// Where the walk is.
#[derive(Clone)]
struct Place {
    path: String,
    inside_structs_only: bool,
    ancestors_required: bool,
}

impl<'a> SchemaIndex<'a> {
    /// Indexes a schema.
    ///
    /// # Errors
    ///
    /// [`UpdateError::Invalid`] if two fields have one id or one path.
    pub(crate) fn of(schema: &'a Schema) -> Result<SchemaIndex<'a>, UpdateError> {
        let mut index = SchemaIndex {
            by_id: HashMap::new(),
            id_by_path: HashMap::new(),
        };
        let top = Place {
            path: String::new(),
            inside_structs_only: true,
            ancestors_required: true,
        };
        index.add_fields(&schema.fields, &top)?;
        Ok(index)
    }

    pub(crate) fn get(&self, id: i32) -> Option<&IndexedField<'a>> {
        self.by_id.get(&id)
    }

    pub(crate) fn id_of_path(&self, path: &str) -> Option<i32> {
        self.id_by_path.get(path).copied()
    }

    fn add_fields(&mut self, fields: &'a [Field], place: &Place) -> Result<(), UpdateError> {
        for field in fields {
            self.add(
                field.id,
                &field.name,
                field.required,
                &field.field_type,
                place,
            )?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        id: i32,
        name: &str,
        required: bool,
        field_type: &'a Type,
        place: &Place,
    ) -> Result<(), UpdateError> {
        let path = if place.path.is_empty() {
            name.to_string()
        } else {
            format!("{}.{name}", place.path)
        };
        let field = IndexedField {
            path: path.clone(),
            field_type,
            required,
            inside_structs_only: place.inside_structs_only,
            ancestors_required: place.ancestors_required,
        };
        if let Some(other) = self.by_id.insert(id, field) {
            return Err(UpdateError::invalid(format!(
                "invalid schema: the fields '{}' and '{path}' have the same id {id}; give each field an id of its own",
                other.path
            )));
        }
        if self.id_by_path.insert(path.clone(), id).is_some() {
            return Err(UpdateError::invalid(format!(
                "invalid schema: there are two fields with the name '{path}'; rename one"
            )));
        }
        let inside_struct = Place {
            path: path.clone(),
            inside_structs_only: place.inside_structs_only,
            ancestors_required: place.ancestors_required && required,
        };
        let inside_collection = Place {
            inside_structs_only: false,
            ..inside_struct.clone()
        };
        match field_type {
            Type::Primitive(_) | Type::Other(_) => Ok(()),
            Type::Struct(struct_type) => self.add_fields(&struct_type.fields, &inside_struct),
            Type::List(list) => self.add(
                list.element_id,
                "element",
                list.element_required,
                &list.element,
                &inside_collection,
            ),
            Type::Map(map) => {
                self.add(map.key_id, "key", true, &map.key, &inside_collection)?;
                self.add(
                    map.value_id,
                    "value",
                    map.value_required,
                    &map.value,
                    &inside_collection,
                )
            }
        }
    }
}

/// Checks a schema that is to be added to a table of `format_version`.
///
/// # Errors
///
/// [`UpdateError::Invalid`] for duplicate names or ids, identifier fields that can't identify, and what the format
/// version doesn't have.
pub(crate) fn check_schema(schema: &Schema, format_version: u8) -> Result<(), UpdateError> {
    let index = SchemaIndex::of(schema)?;
    for &id in &schema.identifier_field_ids {
        check_identifier_field(&index, id)?;
    }
    for field in index.by_id.values() {
        check_type(field, format_version)?;
    }
    check_defaults(&schema.fields, format_version)
}

fn check_identifier_field(index: &SchemaIndex<'_>, id: i32) -> Result<(), UpdateError> {
    let Some(field) = index.get(id) else {
        return Err(UpdateError::invalid(format!(
            "invalid identifier-field-ids: there is no field with id {id} in the schema"
        )));
    };
    let problem = match field.field_type {
        Type::Primitive(name) if name == "float" || name == "double" => {
            "is a floating point number"
        }
        Type::Primitive(_) if !field.required => "is optional",
        Type::Primitive(_) if !field.inside_structs_only => "is inside a list or map",
        Type::Primitive(_) if !field.ancestors_required => "is inside an optional struct",
        Type::Primitive(_) | Type::Other(_) => return Ok(()),
        Type::Struct(_) | Type::List(_) | Type::Map(_) => "is not primitive",
    };
    let path = &field.path;
    Err(UpdateError::invalid(format!(
        "invalid identifier-field-ids: the field '{path}' {problem} and can't identify rows"
    )))
}

fn check_type(field: &IndexedField<'_>, format_version: u8) -> Result<(), UpdateError> {
    let Type::Primitive(name) = field.field_type else {
        return Ok(());
    };
    let path = &field.path;
    let base = base_name(name);
    let needs_version_3 = matches!(
        base,
        "variant" | "geometry" | "geography" | "unknown" | "timestamp_ns" | "timestamptz_ns"
    );
    if needs_version_3 && format_version < 3 {
        return Err(UpdateError::invalid(format!(
            "invalid schema: the type {name} of the field '{path}' needs format-version 3, the table has \
             {format_version}; upgrade the table first"
        )));
    }
    if base == "unknown" && field.required {
        return Err(UpdateError::invalid(format!(
            "invalid schema: the field '{path}' of the type unknown can only be null; make it optional"
        )));
    }
    if base == "decimal" && precision(name).is_some_and(|digits| digits > 38) {
        return Err(UpdateError::invalid(format!(
            "invalid schema: the type {name} of the field '{path}' has more than 38 digits"
        )));
    }
    Ok(())
}

/// A type name without its parameters.
pub(crate) fn base_name(type_name: &str) -> &str {
    let end = type_name.find(['(', '[']).unwrap_or(type_name.len());
    type_name[..end].trim_end()
}

fn precision(type_name: &str) -> Option<u32> {
    let (_, parameters) = type_name.split_once('(')?;
    parameters.split([',', ')']).next()?.trim().parse().ok()
}

fn check_defaults(fields: &[Field], format_version: u8) -> Result<(), UpdateError> {
    fields.iter().try_for_each(|field| {
        if field.initial_default.is_some() && format_version < 3 {
            let name = &field.name;
            return Err(UpdateError::invalid(format!(
                "invalid schema: the initial-default of the field '{name}' needs format-version 3, the table has \
                 {format_version}; upgrade the table first"
            )));
        }
        check_defaults_inside(&field.field_type, format_version)
    })
}

fn check_defaults_inside(field_type: &Type, format_version: u8) -> Result<(), UpdateError> {
    match field_type {
        Type::Primitive(_) | Type::Other(_) => Ok(()),
        Type::Struct(struct_type) => check_defaults(&struct_type.fields, format_version),
        Type::List(list) => check_defaults_inside(&list.element, format_version),
        Type::Map(map) => {
            check_defaults_inside(&map.key, format_version)?;
            check_defaults_inside(&map.value, format_version)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(
        fields: serde_json::Value,
        identifiers: &[i32],
        format_version: u8,
    ) -> Result<(), String> {
        let document =
            json!({"type": "struct", "fields": fields, "identifier-field-ids": identifiers});
        let schema: Schema = serde_json::from_value(document).unwrap();
        check_schema(&schema, format_version).map_err(|error| error.to_string())
    }

    #[test]
    fn two_fields_of_one_name_or_one_id_are_refused() {
        let two_names = json!([
            {"id": 1, "name": "a", "required": false, "type": "int"},
            {"id": 2, "name": "a", "required": false, "type": "int"}
        ]);
        assert!(
            check(two_names, &[], 2)
                .unwrap_err()
                .contains("two fields with the name 'a'")
        );
        let two_ids = json!([
            {"id": 1, "name": "a", "required": false, "type": "int"},
            {"id": 1, "name": "b", "required": false, "type": "int"}
        ]);
        assert!(check(two_ids, &[], 2).unwrap_err().contains("same id 1"));
    }

    #[test]
    fn a_dot_in_a_name_that_looks_like_a_nested_field_is_refused() {
        let fields = json!([
            {"id": 1, "name": "a.b", "required": false, "type": "int"},
            {"id": 2, "name": "a", "required": false, "type": {"type": "struct", "fields": [
                {"id": 3, "name": "b", "required": false, "type": "int"}]}}
        ]);
        assert!(check(fields, &[], 2).is_err());
    }

    #[test]
    fn identifier_fields_must_be_required_primitive_and_reached_through_required_structs() {
        let fields = json!([
            {"id": 1, "name": "ok", "required": true, "type": "long"},
            {"id": 2, "name": "optional", "required": false, "type": "long"},
            {"id": 3, "name": "real", "required": true, "type": "double"},
            {"id": 4, "name": "inner", "required": false, "type": {"type": "struct", "fields": [
                {"id": 5, "name": "deep", "required": true, "type": "long"}]}},
            {"id": 6, "name": "list", "required": true, "type":
                {"type": "list", "element-id": 7, "element-required": true, "element": "long"}},
            {"id": 8, "name": "outer", "required": true, "type": {"type": "struct", "fields": [
                {"id": 9, "name": "deep", "required": true, "type": "long"}]}},
        ]);
        assert_eq!(check(fields.clone(), &[1, 9], 2), Ok(()));
        for id in [2, 3, 4, 5, 6, 7, 77] {
            assert!(check(fields.clone(), &[id], 2).is_err(), "field {id}");
        }
    }

    #[test]
    fn known_types_of_version_3_need_version_3_and_types_of_the_future_pass() {
        for name in [
            "variant",
            "geometry(OGC:CRS84)",
            "geography",
            "unknown",
            "timestamp_ns",
            "timestamptz_ns",
        ] {
            let fields = json!([{"id": 1, "name": "a", "required": false, "type": name}]);
            assert!(
                check(fields.clone(), &[], 2)
                    .unwrap_err()
                    .contains("format-version 3"),
                "{name}"
            );
            assert_eq!(check(fields, &[], 3), Ok(()), "{name}");
        }
        let future = json!([
            {"id": 1, "name": "a", "required": true, "type": "interval(day)"},
            {"id": 2, "name": "b", "required": true, "type": {"type": "tensor", "shape": [3, 3]}}
        ]);
        assert_eq!(check(future, &[], 1), Ok(()));
    }

    #[test]
    fn a_default_for_old_rows_needs_version_3_wherever_the_field_is() {
        let fields = json!([{"id": 1, "name": "a", "required": false, "type":
            {"type": "map", "key-id": 2, "key": "string", "value-id": 3, "value-required": false, "value":
                {"type": "struct", "fields": [
                    {"id": 4, "name": "b", "required": false, "type": "int", "initial-default": 7}]}}}]);
        assert!(
            check(fields.clone(), &[], 2)
                .unwrap_err()
                .contains("initial-default")
        );
        assert_eq!(check(fields, &[], 3), Ok(()));
    }

    #[test]
    fn impossible_types_are_refused() {
        let wide = json!([{"id": 1, "name": "a", "required": false, "type": "decimal(39, 2)"}]);
        assert!(check(wide, &[], 2).is_err());
        let never = json!([{"id": 1, "name": "a", "required": true, "type": "unknown"}]);
        assert!(check(never, &[], 3).is_err());
    }
}
