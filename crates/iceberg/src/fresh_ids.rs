//! Field ids of a new table: clients number fields as they like, the table numbers them anew.

use std::collections::HashMap;

use crate::error::UpdateError;
use crate::partition::{NO_PARTITION_FIELD_ID, PartitionSpec};
use crate::schema::{Field, ListType, MapType, Schema, StructType, Type};
use crate::sort::SortOrder;

/// A schema with field ids from 1 on, and where the old ids went.
///
/// All fields of a struct are numbered before what is nested in them, the element of a list before what is nested in
/// it, key and value of a map before what is nested in either (reference implementation: `TypeUtil.assignFreshIds`).
pub(crate) struct FreshIds {
    last: i32,
    new_by_old: HashMap<i32, NewId>,
}

#[derive(Clone, Copy)]
enum NewId {
    One(i32),
    Ambiguous,
}

impl FreshIds {
    /// Numbers a schema anew.
    ///
    /// # Errors
    ///
    /// [`UpdateError::Invalid`] if an identifier field isn't in the schema.
    pub(crate) fn assign(schema: Schema) -> Result<(Schema, FreshIds), UpdateError> {
        let mut ids = FreshIds {
            last: 0,
            new_by_old: HashMap::new(),
        };
        let fields = ids.fields(schema.fields);
        let old_identifiers = schema.identifier_field_ids;
        let identifier_field_ids = old_identifiers
            .into_iter()
            .map(|id| ids.new_id("identifier-field-ids", id));
        let identifier_field_ids =
            identifier_field_ids.collect::<Result<Vec<i32>, UpdateError>>()?;
        Ok((
            Schema {
                schema_id: 0,
                identifier_field_ids,
                fields,
                extra: schema.extra,
            },
            ids,
        ))
    }

    /// The highest id that was given.
    pub(crate) fn last(&self) -> i32 {
        self.last
    }

    /// The spec with the new ids as sources, and field ids from 1000 on.
    pub(crate) fn rebind_spec(
        &self,
        mut spec: PartitionSpec,
    ) -> Result<PartitionSpec, UpdateError> {
        spec.spec_id = 0;
        for (field_id, field) in (NO_PARTITION_FIELD_ID + 1..).zip(&mut spec.fields) {
            field.field_id = Some(field_id);
            self.rebind(&mut field.source_id, &mut field.source_ids)?;
        }
        Ok(spec)
    }

    /// The order with the new ids as sources; its id is 1, or 0 if it is unsorted.
    pub(crate) fn rebind_order(&self, mut order: SortOrder) -> Result<SortOrder, UpdateError> {
        order.order_id = i32::from(!order.is_unsorted());
        for field in &mut order.fields {
            self.rebind(&mut field.source_id, &mut field.source_ids)?;
        }
        Ok(order)
    }

    fn rebind(
        &self,
        source_id: &mut Option<i32>,
        source_ids: &mut Option<Vec<i32>>,
    ) -> Result<(), UpdateError> {
        if let Some(id) = source_id {
            *id = self.new_id("source-id", *id)?;
        }
        for id in source_ids.iter_mut().flatten() {
            *id = self.new_id("source-ids", *id)?;
        }
        Ok(())
    }

    fn new_id(&self, what: &str, old: i32) -> Result<i32, UpdateError> {
        match self.new_by_old.get(&old) {
            Some(NewId::One(new)) => Ok(*new),
            Some(NewId::Ambiguous) => Err(UpdateError::invalid(format!(
                "invalid {what}: several fields of the schema have the id {old}; give each field an id of its own"
            ))),
            None => Err(UpdateError::invalid(format!(
                "invalid {what}: there is no field with id {old} in the schema"
            ))),
        }
    }

    fn next(&mut self, old: i32) -> i32 {
        self.last += 1;
        let new = self.last;
        self.new_by_old
            .entry(old)
            .and_modify(|known| *known = NewId::Ambiguous)
            .or_insert(NewId::One(new));
        new
    }

    fn fields(&mut self, fields: Vec<Field>) -> Vec<Field> {
        let numbered: Vec<Field> = fields
            .into_iter()
            .map(|field| Field {
                id: self.next(field.id),
                ..field
            })
            .collect();
        let inside = |field: Field| Field {
            field_type: self.inside(field.field_type),
            ..field
        };
        numbered.into_iter().map(inside).collect()
    }

    fn inside(&mut self, field_type: Type) -> Type {
        match field_type {
            Type::Primitive(_) | Type::Other(_) => field_type,
            Type::Struct(StructType { fields, extra }) => Type::Struct(StructType {
                fields: self.fields(fields),
                extra,
            }),
            Type::List(list) => {
                let element_id = self.next(list.element_id);
                Type::List(Box::new(ListType {
                    element_id,
                    element: self.inside(list.element),
                    ..*list
                }))
            }
            Type::Map(map) => {
                let key_id = self.next(map.key_id);
                let value_id = self.next(map.value_id);
                let key = self.inside(map.key);
                let value = self.inside(map.value);
                Type::Map(Box::new(MapType {
                    key_id,
                    value_id,
                    key,
                    value,
                    ..*map
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_struct_is_numbered_before_what_is_nested_in_it() {
        let schema: Schema = serde_json::from_value(json!({"type": "struct", "fields": [
            {"id": 10, "name": "a", "required": true, "type": {"type": "struct", "fields": [
                {"id": 20, "name": "b", "required": true, "type": "int"}]}},
            {"id": 30, "name": "c", "required": true, "type":
                {"type": "list", "element-id": 31, "element-required": true, "element":
                    {"type": "struct", "fields": [{"id": 32, "name": "d", "required": true, "type": "int"}]}}},
            {"id": 40, "name": "e", "required": true, "type":
                {"type": "map", "key-id": 41, "key":
                    {"type": "struct", "fields": [{"id": 43, "name": "f", "required": true, "type": "int"}]},
                 "value-id": 42, "value-required": true, "value": "int"}}
        ], "identifier-field-ids": [20]}))
        .unwrap();
        let (fresh, ids) = FreshIds::assign(schema).unwrap();
        let new = |old| ids.new_id("x", old).unwrap();
        assert_eq!(
            [10, 30, 40, 20, 31, 32, 41, 42, 43].map(new),
            [1, 2, 3, 4, 5, 6, 7, 8, 9]
        );
        assert_eq!(fresh.identifier_field_ids, [4]);
        assert_eq!(fresh.highest_field_id(), ids.last());
    }

    #[test]
    fn a_reference_to_an_id_that_two_fields_have_is_refused() {
        let schema: Schema = serde_json::from_value(json!({"type": "struct", "fields": [
            {"id": 0, "name": "a", "required": true, "type": "int"},
            {"id": 0, "name": "b", "required": true, "type": "int"}
        ]}))
        .unwrap();
        let (_, ids) = FreshIds::assign(schema).unwrap();
        assert!(ids.new_id("source-id", 0).is_err());
    }
}
