//! A new table from a create request.

use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

use crate::apply::UpdateContext;
use crate::error::UpdateError;
use crate::fresh_ids::FreshIds;
use crate::partition::PartitionSpec;
use crate::schema::Schema;
use crate::schema_rules::{SchemaIndex, check_schema};
use crate::sort::SortOrder;
use crate::table::TableMetadata;
use crate::transform_rules::{check_order_binds, check_spec_alone, check_spec_binds};
use crate::{DEFAULT_FORMAT_VERSION, MAX_FORMAT_VERSION};

/// Property by which a client names the format version; it never stays among the properties.
pub(crate) const FORMAT_VERSION_PROPERTY: &str = "format-version";

/// Properties that name parts of the metadata; as properties they would only contradict it.
const RESERVED_PROPERTIES: [&str; 8] = [
    "uuid",
    "snapshot-count",
    "current-snapshot-summary",
    "current-snapshot-id",
    "current-snapshot-timestamp-ms",
    "current-schema",
    "default-partition-spec",
    "default-sort-order",
];

/// A table to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTable {
    /// The identity, made by the caller.
    pub uuid: Uuid,
    /// Base location of the table's files.
    pub location: String,
    /// The schema; its field ids only tie spec, order and identifier fields to it and are assigned anew.
    pub schema: Schema,
    /// The partition spec; unpartitioned if there is none.
    pub partition_spec: Option<PartitionSpec>,
    /// The sort order; unsorted if there is none.
    pub write_order: Option<SortOrder>,
    /// The properties; `format-version` among them picks the version and isn't kept.
    pub properties: BTreeMap<String, String>,
    /// The format version, which goes before the property; 2 if neither names one.
    pub format_version: Option<u8>,
}

impl TableMetadata {
    /// Makes the metadata of a new table, with fresh field ids, partition field ids from 1000 on, and no snapshot.
    ///
    /// # Errors
    ///
    /// [`UpdateError::Invalid`] for a schema, spec or order that doesn't fit, reserved properties, or a format version
    /// that isn't supported.
    pub fn create(
        table: CreateTable,
        context: &UpdateContext,
    ) -> Result<TableMetadata, UpdateError> {
        let mut properties = table.properties;
        let named_version = take_format_version(&mut properties)?;
        check_not_reserved(properties.keys())?;
        let format_version = match table.format_version {
            Some(version) => supported_version(i64::from(version))?,
            None => named_version.unwrap_or(DEFAULT_FORMAT_VERSION),
        };
        let location = checked_location(&table.location)?;

        let (schema, fresh_ids) = FreshIds::assign(table.schema)?;
        check_schema(&schema, format_version)?;
        let index = SchemaIndex::of(&schema)?;
        let spec = fresh_ids.rebind_spec(
            table
                .partition_spec
                .unwrap_or_else(PartitionSpec::unpartitioned),
        )?;
        check_spec_alone(&spec)?;
        check_spec_binds(&spec, &index)?;
        let order =
            fresh_ids.rebind_order(table.write_order.unwrap_or_else(SortOrder::unsorted))?;
        check_order_binds(&order, &index)?;

        let mut metadata = TableMetadata::blank(format_version);
        metadata.table_uuid = table.uuid;
        metadata.location = location;
        metadata.last_updated_ms = context.now_ms;
        metadata.last_column_id = fresh_ids.last();
        metadata.current_schema_id = schema.schema_id;
        metadata.schemas = vec![Arc::new(schema)];
        metadata.default_spec_id = spec.spec_id;
        metadata.last_partition_id = spec.highest_field_id();
        metadata.partition_specs = vec![spec];
        metadata.default_sort_order_id = order.order_id;
        metadata.sort_orders = vec![order];
        metadata.properties = properties;
        Ok(metadata)
    }
}

/// The location without slashes at its end, since writers put file names after one of their own (reference
/// implementation: `LocationUtil.stripTrailingSlash`).
pub(crate) fn checked_location(location: &str) -> Result<String, UpdateError> {
    let mut stripped = location;
    while stripped.ends_with('/') && !stripped.ends_with("://") {
        stripped = &stripped[..stripped.len() - 1];
    }
    if stripped.is_empty() {
        return Err(UpdateError::invalid(
            "the location is empty; name an absolute location",
        ));
    }
    Ok(stripped.to_string())
}

/// Takes the property that names the format version out of the properties.
pub(crate) fn take_format_version(
    properties: &mut BTreeMap<String, String>,
) -> Result<Option<u8>, UpdateError> {
    let Some(text) = properties.remove(FORMAT_VERSION_PROPERTY) else {
        return Ok(None);
    };
    let number: i64 = text.trim().parse().map_err(|_| {
        UpdateError::invalid(format!(
            "the property format-version must be a number, '{text}' is none"
        ))
    })?;
    supported_version(number).map(Some)
}

/// The version, if this crate can write it.
pub(crate) fn supported_version(number: i64) -> Result<u8, UpdateError> {
    u8::try_from(number).ok().filter(|version| (1..=MAX_FORMAT_VERSION).contains(version)).ok_or_else(|| {
        UpdateError::invalid(format!(
            "unsupported format-version {number}, versions 1 to {MAX_FORMAT_VERSION} are supported"
        ))
    })
}

/// Refuses properties that name parts of the metadata.
pub(crate) fn check_not_reserved<'a>(
    mut names: impl Iterator<Item = &'a String>,
) -> Result<(), UpdateError> {
    match names.find(|name| RESERVED_PROPERTIES.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(UpdateError::invalid(format!(
            "the property '{name}' is reserved for the table's own state; choose another name"
        ))),
    }
}
