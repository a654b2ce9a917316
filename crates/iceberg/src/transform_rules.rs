//! When a partition spec or sort order fits a schema.
//!
//! A transform that nobody knows yet passes, as does any transform of a type that nobody knows yet; `void` keeps the
//! place of a dropped field and needs no source.

use std::collections::HashSet;

use crate::error::UpdateError;
use crate::partition::PartitionSpec;
use crate::schema::Type;
use crate::schema_rules::{SchemaIndex, base_name};
use crate::sort::SortOrder;

/// Checks what is wrong with a spec whatever the schema is: names and field ids must be unique.
pub(crate) fn check_spec_alone(spec: &PartitionSpec) -> Result<(), UpdateError> {
    let mut names = HashSet::new();
    let mut ids = HashSet::new();
    for field in &spec.fields {
        let name = &field.name;
        if name.is_empty() {
            return Err(UpdateError::invalid(
                "invalid partition spec: a field has an empty name",
            ));
        }
        if !names.insert(name.as_str()) {
            return Err(UpdateError::invalid(format!(
                "invalid partition spec: there are two fields with the name '{name}'; rename one"
            )));
        }
        if let Some(id) = field.field_id
            && !ids.insert(id)
        {
            return Err(UpdateError::invalid(format!(
                "invalid partition spec: there are two fields with the field-id {id}; leave field-id out to get a \
                 free one"
            )));
        }
    }
    Ok(())
}

/// Checks that every source of the spec is a field of the schema that can be partitioned by.
pub(crate) fn check_spec_binds(
    spec: &PartitionSpec,
    schema: &SchemaIndex<'_>,
) -> Result<(), UpdateError> {
    for field in spec.fields.iter().filter(|field| !field.is_void()) {
        let sources = field.sources();
        for &source in &sources {
            check_source(
                "partition field",
                &field.name,
                source,
                &field.transform,
                schema,
            )?;
        }
        if let Some(column) = schema.id_of_path(&field.name)
            && !sources.contains(&column)
        {
            return Err(UpdateError::invalid(format!(
                "invalid partition spec: the partition field '{}' has the name of another column; rename it",
                field.name
            )));
        }
    }
    Ok(())
}

/// Checks that every source of the order is a field of the schema that can be sorted by.
pub(crate) fn check_order_binds(
    order: &SortOrder,
    schema: &SchemaIndex<'_>,
) -> Result<(), UpdateError> {
    for field in order
        .fields
        .iter()
        .filter(|field| field.transform != "void")
    {
        for source in field.sources() {
            check_source(
                "sort field",
                &source.to_string(),
                source,
                &field.transform,
                schema,
            )?;
        }
    }
    Ok(())
}

fn check_source(
    what: &str,
    name: &str,
    source: i32,
    transform: &str,
    schema: &SchemaIndex<'_>,
) -> Result<(), UpdateError> {
    let Some(column) = schema.get(source) else {
        return Err(UpdateError::invalid(format!(
            "invalid {what} '{name}': the current schema has no field with the source-id {source}"
        )));
    };
    let path = &column.path;
    if !column.inside_structs_only {
        return Err(UpdateError::invalid(format!(
            "invalid {what} '{name}': '{path}' is inside a list or map"
        )));
    }
    match column.field_type {
        Type::Other(_) => Ok(()),
        Type::Struct(_) | Type::List(_) | Type::Map(_) => Err(UpdateError::invalid(format!(
            "invalid {what} '{name}': '{path}' is not primitive"
        ))),
        Type::Primitive(type_name) if transform_accepts(transform, type_name) => Ok(()),
        Type::Primitive(type_name) => Err(UpdateError::invalid(format!(
            "invalid {what} '{name}': the transform {transform} can't be applied to '{path}' of the type {type_name}"
        ))),
    }
}

/// The primitive types that transforms are defined on.
const KNOWN_TYPES: [&str; 20] = [
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "decimal",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "timestamp_ns",
    "timestamptz_ns",
    "string",
    "uuid",
    "fixed",
    "binary",
    "variant",
    "geometry",
    "geography",
    "unknown",
];

/// Whether a transform is defined on a type (Iceberg table specification, "Partition Transforms").
fn transform_accepts(transform: &str, type_name: &str) -> bool {
    let base = base_name(type_name);
    if !KNOWN_TYPES.contains(&base) {
        return true;
    }
    let is_timestamp = matches!(
        base,
        "timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns"
    );
    match base_name(transform) {
        "identity" => !matches!(base, "variant" | "geometry" | "geography"),
        "year" | "month" | "day" => base == "date" || is_timestamp,
        "hour" => is_timestamp,
        "bucket" => {
            is_timestamp
                || matches!(
                    base,
                    "int"
                        | "long"
                        | "decimal"
                        | "date"
                        | "time"
                        | "string"
                        | "uuid"
                        | "fixed"
                        | "binary"
                )
        }
        "truncate" => matches!(base, "int" | "long" | "decimal" | "string" | "binary"),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transforms_accept_the_types_they_are_defined_on() {
        assert!(transform_accepts("bucket[16]", "string"));
        assert!(transform_accepts("truncate[4]", "decimal(10, 2)"));
        assert!(transform_accepts("day", "timestamptz_ns"));
        assert!(!transform_accepts("hour", "date"));
        assert!(!transform_accepts("bucket[16]", "double"));
        assert!(!transform_accepts("truncate[4]", "uuid"));
        assert!(!transform_accepts("identity", "variant"));
    }

    #[test]
    fn what_nobody_knows_yet_passes() {
        assert!(transform_accepts("zorder[3]", "string"));
        assert!(transform_accepts("day", "interval"));
    }
}
