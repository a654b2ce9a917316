//! Identity, format version, schemas, specs and sort orders.

use std::sync::Arc;
use uuid::Uuid;

use super::{Draft, resolve};
use crate::error::UpdateError;
use crate::next_id::{id_after, next_id};
use crate::partition::{NO_PARTITION_FIELD_ID, PartitionField, PartitionSpec};
use crate::schema::Schema;
use crate::schema_rules::check_schema;
use crate::snapshot::Snapshot;
use crate::sort::SortOrder;
use crate::transform_rules::check_spec_alone;

impl Draft<'_> {
    pub(super) fn assign_uuid(&mut self, uuid: Uuid) -> Result<(), UpdateError> {
        let current = self.metadata.table_uuid;
        if self.uuid_assigned && current != uuid {
            return Err(UpdateError::invalid(format!(
                "the table has the uuid {current}, which can't be changed to {uuid}; leave assign-uuid out"
            )));
        }
        self.metadata.table_uuid = uuid;
        self.uuid_assigned = true;
        Ok(())
    }

    pub(super) fn upgrade_format_version(&mut self, format_version: u8) -> Result<(), UpdateError> {
        let current = self.metadata.format_version;
        if format_version < current {
            return Err(UpdateError::invalid(format!(
                "the table has format-version {current}, which can't be lowered to {format_version}"
            )));
        }
        if current == 1 && format_version > 1 {
            self.metadata
                .snapshots
                .complete_for_version_2()
                .map_err(|error| {
                    UpdateError::invalid(format!("the table can't be upgraded: {error}"))
                })?;
            // Version 1 has no sequence numbers, but some writers put them into snapshots all the same.
            let numbers = self
                .metadata
                .snapshots
                .iter()
                .filter_map(Snapshot::sequence_number);
            self.metadata.last_sequence_number = numbers.max().unwrap_or(0).max(0);
        }
        self.metadata.format_version = format_version;
        Ok(())
    }

    pub(super) fn add_schema(&mut self, schema: &Schema) -> Result<(), UpdateError> {
        check_schema(schema, self.metadata.format_version)?;
        let metadata = &mut self.metadata;
        metadata.last_column_id = metadata.last_column_id.max(schema.highest_field_id());
        let known = metadata
            .schemas
            .iter()
            .find(|known| known.same_schema(schema));
        let schema_id = match known {
            Some(known) => known.schema_id,
            None => {
                let known = metadata.schemas.iter().map(|known| known.schema_id);
                let schema_id = next_id("schema", known, 0)?;
                metadata.schemas.push(Arc::new(Schema {
                    schema_id,
                    ..schema.clone()
                }));
                schema_id
            }
        };
        self.last_added.schema_id = Some(schema_id);
        Ok(())
    }

    pub(super) fn set_current_schema(&mut self, schema_id: i32) -> Result<(), UpdateError> {
        let schema_id = resolve("schema", schema_id, self.last_added.schema_id)?;
        if self.metadata.schema_by_id(schema_id).is_none() {
            return Err(UpdateError::invalid(format!(
                "set-current-schema: the table has no schema {schema_id}; add it first and use -1"
            )));
        }
        self.metadata.current_schema_id = schema_id;
        self.chosen.schema = true;
        Ok(())
    }

    pub(super) fn remove_schemas(&mut self, schema_ids: &[i32]) -> Result<(), UpdateError> {
        let current = self.metadata.current_schema_id;
        if schema_ids.contains(&current) {
            return Err(UpdateError::invalid(format!(
                "remove-schemas: the schema {current} is the current one"
            )));
        }
        self.metadata
            .schemas
            .retain(|schema| !schema_ids.contains(&schema.schema_id));
        Ok(())
    }

    pub(super) fn add_spec(&mut self, spec: &PartitionSpec) -> Result<(), UpdateError> {
        let known = self
            .metadata
            .partition_specs
            .iter()
            .find(|known| known.compatible_with(spec));
        if let Some(known) = known {
            self.last_added.spec_id = Some(known.spec_id);
            return Ok(());
        }
        let mut spec = spec.clone();
        self.complete_field_ids(&mut spec)?;
        check_spec_alone(&spec)?;
        if self.metadata.format_version == 1 {
            check_sequential_field_ids(&spec)?;
        }
        let known = self.metadata.partition_specs.iter();
        spec.spec_id = next_id("partition spec", known.map(|known| known.spec_id), 0)?;
        self.metadata.last_partition_id =
            self.metadata.last_partition_id.max(spec.highest_field_id());
        self.last_added.spec_id = Some(spec.spec_id);
        self.specs_to_check.push(spec.spec_id);
        self.metadata.partition_specs.push(spec);
        Ok(())
    }

    /// Gives ids to the fields that have none: that of the same field in another spec, else a new one. Version 1 counts
    /// the fields of each spec from 1000.
    fn complete_field_ids(&self, spec: &mut PartitionSpec) -> Result<(), UpdateError> {
        let by_position = self.metadata.format_version == 1;
        let taken: Vec<i32> = spec
            .fields
            .iter()
            .filter_map(|field| field.field_id)
            .collect();
        let highest_taken = taken.iter().copied().max().unwrap_or(NO_PARTITION_FIELD_ID);
        let mut last = self.metadata.last_partition_id.max(highest_taken);
        let mut given = taken;
        for (position, field) in (NO_PARTITION_FIELD_ID + 1..).zip(&mut spec.fields) {
            if field.field_id.is_some() {
                continue;
            }
            let reused = self
                .id_of_same_field(field)
                .filter(|id| !given.contains(id));
            let id = match (by_position, reused) {
                (true, _) => position,
                (false, Some(id)) => id,
                (false, None) => {
                    last = id_after("partition field", last)?;
                    last
                }
            };
            given.push(id);
            field.field_id = Some(id);
        }
        Ok(())
    }

    fn id_of_same_field(&self, field: &PartitionField) -> Option<i32> {
        let fields = self
            .metadata
            .partition_specs
            .iter()
            .flat_map(|spec| &spec.fields);
        let mut same = fields.filter(|known| {
            known.transform == field.transform && known.sources() == field.sources()
        });
        same.find_map(|known| known.field_id)
    }

    pub(super) fn set_default_spec(&mut self, spec_id: i32) -> Result<(), UpdateError> {
        let spec_id = resolve("spec", spec_id, self.last_added.spec_id)?;
        if !self
            .metadata
            .partition_specs
            .iter()
            .any(|spec| spec.spec_id == spec_id)
        {
            return Err(UpdateError::invalid(format!(
                "set-default-spec: the table has no partition spec {spec_id}; add it first and use -1"
            )));
        }
        self.metadata.default_spec_id = spec_id;
        self.chosen.spec = true;
        Ok(())
    }

    pub(super) fn remove_partition_specs(&mut self, spec_ids: &[i32]) -> Result<(), UpdateError> {
        let default = self.metadata.default_spec_id;
        if spec_ids.contains(&default) {
            return Err(UpdateError::invalid(format!(
                "remove-partition-specs: the partition spec {default} is the default one"
            )));
        }
        self.metadata
            .partition_specs
            .retain(|spec| !spec_ids.contains(&spec.spec_id));
        Ok(())
    }

    pub(super) fn add_sort_order(&mut self, order: &SortOrder) -> Result<(), UpdateError> {
        let known = self
            .metadata
            .sort_orders
            .iter()
            .find(|known| known.fields == order.fields);
        if let Some(known) = known {
            self.last_added.order_id = Some(known.order_id);
            return Ok(());
        }
        let order_id = if order.is_unsorted() {
            0
        } else {
            let known = self.metadata.sort_orders.iter();
            next_id("sort order", known.map(|known| known.order_id), 1)?
        };
        self.last_added.order_id = Some(order_id);
        self.orders_to_check.push(order_id);
        self.metadata.sort_orders.push(SortOrder {
            order_id,
            ..order.clone()
        });
        Ok(())
    }

    pub(super) fn set_default_sort_order(&mut self, order_id: i32) -> Result<(), UpdateError> {
        let order_id = resolve("sort order", order_id, self.last_added.order_id)?;
        if !self
            .metadata
            .sort_orders
            .iter()
            .any(|order| order.order_id == order_id)
        {
            return Err(UpdateError::invalid(format!(
                "set-default-sort-order: the table has no sort order {order_id}; add it first and use -1"
            )));
        }
        self.metadata.default_sort_order_id = order_id;
        self.chosen.order = true;
        Ok(())
    }
}

/// Version 1 readers count partition fields instead of reading their ids.
fn check_sequential_field_ids(spec: &PartitionSpec) -> Result<(), UpdateError> {
    let sequential = (NO_PARTITION_FIELD_ID + 1..)
        .zip(&spec.fields)
        .all(|(expected, field)| field.field_id == Some(expected));
    if sequential {
        return Ok(());
    }
    Err(UpdateError::invalid(
        "invalid partition spec: format-version 1 needs field-ids that count from 1000; leave them out or upgrade the \
         table",
    ))
}
