//! What can only be judged, or decided, when all updates of a commit are in.

use serde_json::Map;

use super::{Draft, UpdateContext};
use crate::error::UpdateError;
use crate::logs::MetadataLogEntry;
use crate::partition::PartitionSpec;
use crate::schema_rules::SchemaIndex;
use crate::sort::SortOrder;
use crate::table::TableMetadata;
use crate::transform_rules::{check_order_binds, check_spec_binds};

/// Property that bounds the metadata log.
const PREVIOUS_VERSIONS_PROPERTY: &str = "write.metadata.previous-versions-max";
const DEFAULT_PREVIOUS_VERSIONS: usize = 100;

impl Draft<'_> {
    pub(super) fn finish(mut self, context: &UpdateContext) -> Result<TableMetadata, UpdateError> {
        if self.base.is_none() {
            self.complete_new_table()?;
        }
        self.drop_removed_snapshots();
        self.tidy_snapshot_log();
        self.check_structure()?;
        self.check_removed_keys()?;
        if let Some(base) = self.base {
            if self.metadata == *base {
                return Ok(self.metadata);
            }
            self.log_previous_metadata(base, context);
        }
        self.metadata.last_updated_ms = self.last_updated_ms();
        Ok(self.metadata)
    }

    /// What a new table needs, and the defaults of the rest.
    fn complete_new_table(&mut self) -> Result<(), UpdateError> {
        if !self.uuid_assigned {
            return Err(UpdateError::invalid(
                "a new table needs a uuid; send assign-uuid",
            ));
        }
        if self.metadata.location.is_empty() {
            return Err(UpdateError::invalid(
                "a new table needs a location; send set-location",
            ));
        }
        let Some(last_schema_id) = self.last_added.schema_id else {
            return Err(UpdateError::invalid(
                "a new table needs a schema; send add-schema",
            ));
        };
        if !self.chosen.schema {
            self.metadata.current_schema_id = last_schema_id;
        }
        if self.metadata.partition_specs.is_empty() {
            self.metadata
                .partition_specs
                .push(PartitionSpec::unpartitioned());
        }
        if !self.chosen.spec {
            self.metadata.default_spec_id = self.last_added.spec_id.unwrap_or(0);
        }
        if self.metadata.sort_orders.is_empty() {
            self.metadata.sort_orders.push(SortOrder::unsorted());
        }
        if !self.chosen.order {
            self.metadata.default_sort_order_id = self.last_added.order_id.unwrap_or(0);
        }
        Ok(())
    }

    /// Specs and orders that are new, or that are used with a new schema, must fit the current schema. What the base
    /// had already isn't judged.
    fn check_structure(&self) -> Result<(), UpdateError> {
        let metadata = &self.metadata;
        let schema = metadata.current_schema().ok_or_else(|| {
            UpdateError::invalid(format!(
                "the current schema {} was removed",
                metadata.current_schema_id
            ))
        })?;
        let is_default_spec =
            |spec: &PartitionSpec| self.chosen_anew() && spec.spec_id == metadata.default_spec_id;
        let is_default_order = |order: &SortOrder| {
            self.chosen_anew() && order.order_id == metadata.default_sort_order_id
        };
        let specs: Vec<&PartitionSpec> = metadata
            .partition_specs
            .iter()
            .filter(|spec| self.specs_to_check.contains(&spec.spec_id) || is_default_spec(spec))
            .collect();
        let orders: Vec<&SortOrder> = metadata
            .sort_orders
            .iter()
            .filter(|order| {
                self.orders_to_check.contains(&order.order_id) || is_default_order(order)
            })
            .collect();
        if specs.is_empty() && orders.is_empty() {
            return Ok(());
        }
        let index = SchemaIndex::of(schema)?;
        for spec in specs {
            let fits = check_spec_binds(spec, &index);
            if fits.is_err()
                && !self.was_unfit_in_base(
                    |base| base.default_spec() == Some(spec),
                    |schema| check_spec_binds(spec, schema),
                )
            {
                return fits;
            }
        }
        for order in orders {
            let fits = check_order_binds(order, &index);
            if fits.is_err()
                && !self.was_unfit_in_base(
                    |base| base.default_sort_order() == Some(order),
                    |schema| check_order_binds(order, schema),
                )
            {
                return fits;
            }
        }
        Ok(())
    }

    /// Whether a default of the base didn't fit the base's own schema: a table that another writer damaged must stay
    /// changeable, or nobody could mend it.
    fn was_unfit_in_base(
        &self,
        is_default_of: impl Fn(&TableMetadata) -> bool,
        fits: impl Fn(&SchemaIndex<'_>) -> Result<(), UpdateError>,
    ) -> bool {
        let Some(base) = self.base.filter(|base| is_default_of(base)) else {
            return false;
        };
        match base.current_schema().map(SchemaIndex::of) {
            Some(Ok(index)) => fits(&index).is_err(),
            Some(Err(_)) | None => true,
        }
    }

    fn chosen_anew(&self) -> bool {
        let Some(base) = self.base else {
            return true;
        };
        base.current_schema_id != self.metadata.current_schema_id
            || base.default_spec_id != self.metadata.default_spec_id
            || base.default_sort_order_id != self.metadata.default_sort_order_id
    }

    /// A key that a snapshot or another key still needs must stay, or readers lose both.
    fn check_removed_keys(&self) -> Result<(), UpdateError> {
        for key in &self.removed_keys {
            let id = key.key_id();
            if self
                .metadata
                .encryption_keys
                .iter()
                .any(|known| known.key_id() == id)
            {
                continue;
            }
            let used_by_snapshot = self
                .metadata
                .snapshots
                .iter()
                .any(|snapshot| snapshot.key_id() == Some(id));
            let used_by_key = self
                .metadata
                .encryption_keys
                .iter()
                .any(|key| key.encrypted_by_id() == Some(id));
            if used_by_snapshot || used_by_key {
                return Err(UpdateError::invalid(format!(
                    "remove-encryption-key: the key '{id}' is still in use; remove what is encrypted with it first"
                )));
            }
        }
        Ok(())
    }

    fn log_previous_metadata(&mut self, base: &TableMetadata, context: &UpdateContext) {
        let Some(location) = &context.previous_metadata_location else {
            return;
        };
        let log = &mut self.metadata.metadata_log;
        log.push(MetadataLogEntry {
            metadata_file: location.clone(),
            timestamp_ms: base.last_updated_ms,
            extra: Map::new(),
        });
        let configured = self.metadata.properties.get(PREVIOUS_VERSIONS_PROPERTY);
        let kept: usize = configured
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(DEFAULT_PREVIOUS_VERSIONS);
        let surplus = log.len().saturating_sub(kept.max(1));
        log.drain(..surplus);
    }

    /// Never before the base's, nor before what the snapshot log says: readers refuse documents that are older than
    /// their own history.
    fn last_updated_ms(&self) -> i64 {
        let logged_ms = self
            .metadata
            .snapshot_log
            .last()
            .map_or(self.now_ms, |entry| entry.timestamp_ms);
        self.now_ms.max(logged_ms)
    }
}
