//! New tables: from a request, and from the updates of a staged create.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use anabranch_iceberg::{CreateTable, TableMetadata, UpdateError, apply};
use serde_json::{Value, json};
use support::*;
use uuid::Uuid;

fn create(change: impl FnOnce(&mut CreateTable)) -> Result<TableMetadata, UpdateError> {
    let mut request = create_request(2);
    request.format_version = None;
    change(&mut request);
    TableMetadata::create(request, &context())
}

#[test]
fn a_new_table_has_fresh_ids_and_everything_bound_to_them() {
    let table = create(|request| {
        request.schema = schema(json!({"type": "struct", "schema-id": 8, "identifier-field-ids": [30], "fields": [
            {"id": 10, "name": "s", "required": true, "type": {"type": "struct", "fields": [
                {"id": 30, "name": "key", "required": true, "type": "string"}]}},
            {"id": 20, "name": "ts", "required": true, "type": "timestamptz"}
        ]}));
        request.partition_spec = Some(
            serde_json::from_value(json!({"spec-id": 4, "fields": [
                {"name": "day", "transform": "day", "source-id": 20, "field-id": 1234},
                {"name": "k", "transform": "bucket[8]", "source-id": 30}
            ]}))
            .unwrap(),
        );
        request.write_order = Some(
            serde_json::from_value(json!({"order-id": 0, "fields": [
                {"transform": "identity", "source-id": 20, "direction": "asc", "null-order": "nulls-first"}]}))
            .unwrap(),
        );
    })
    .unwrap();
    let written = document(&table);
    assert_eq!(
        written["schemas"],
        json!([{"type": "struct", "schema-id": 0, "identifier-field-ids": [3], "fields": [
            {"id": 1, "name": "s", "required": true, "type": {"type": "struct", "fields": [
                {"id": 3, "name": "key", "required": true, "type": "string"}]}},
            {"id": 2, "name": "ts", "required": true, "type": "timestamptz"}
        ]}])
    );
    assert_eq!(
        written["partition-specs"],
        json!([{"spec-id": 0, "fields": [
            {"name": "day", "transform": "day", "source-id": 2, "field-id": 1000},
            {"name": "k", "transform": "bucket[8]", "source-id": 3, "field-id": 1001}
        ]}])
    );
    assert_eq!(written["sort-orders"][0]["order-id"], json!(1));
    assert_eq!(
        written["sort-orders"][0]["fields"][0]["source-id"],
        json!(2)
    );
    assert_eq!(
        (table.last_column_id(), table.last_partition_id()),
        (3, 1001)
    );
    assert_eq!(
        (table.default_sort_order_id(), table.format_version()),
        (1, 2)
    );
    assert_eq!(TableMetadata::from_json(&table.to_json()).unwrap(), table);
}

#[test]
fn the_format_version_property_picks_the_version_and_is_not_kept() {
    let with_property = |text: &str| {
        create(|request| {
            request
                .properties
                .insert("format-version".to_string(), text.to_string());
            request
                .properties
                .insert("owner".to_string(), "me".to_string());
        })
    };
    let table = with_property("3").unwrap();
    assert_eq!(
        (
            table.format_version(),
            document(&table)["properties"].clone()
        ),
        (3, json!({"owner": "me"}))
    );
    assert_invalid(with_property("4"), "unsupported");
    assert_invalid(with_property("two"), "number");
}

#[test]
fn a_create_that_does_not_fit_is_refused() {
    assert_invalid(create(|request| request.location.clear()), "location");
    assert_invalid(
        create(|request| {
            request
                .properties
                .insert("uuid".to_string(), "x".to_string());
        }),
        "reserved",
    );
    assert_invalid(
        create(|request| {
            let twice = request.schema.fields[0].clone();
            request.schema.fields.push(twice);
        }),
        "two fields with the name",
    );
    assert_invalid(
        create(|request| request.schema.identifier_field_ids = vec![2]),
        "identifier-field-ids",
    );
    assert_invalid(
        create(|request| request.schema.identifier_field_ids = vec![9]),
        "identifier-field-ids",
    );
    let spec = |value: Value| {
        create(|request| request.partition_spec = serde_json::from_value(value).unwrap())
    };
    assert_invalid(
        spec(json!({"fields": [{"name": "a", "transform": "day", "source-id": 9}]})),
        "source-id",
    );
    assert_invalid(
        spec(json!({"fields": [{"name": "a", "transform": "day", "source-id": 1}]})),
        "transform day",
    );
    assert!(
        spec(json!({"fields": [{"name": "a", "transform": "rainbow", "source-id": 1}]})).is_ok()
    );
}

/// What DuckDB sends for `CREATE TABLE … AS`, in its order.
fn duckdb_updates() -> Value {
    json!([
        {"action": "assign-uuid", "uuid": Uuid::from_u128(9)},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "last-column-id": 3, "schema": small_schema()},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": [
            {"name": "day_month", "transform": "month", "source-id": 2, "field-id": 1000}]}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": "s3://bucket/t"},
        {"action": "set-properties", "updates": {}},
        add(snapshot(1, 0, 1)),
        set_branch("main", 1),
        {"action": "set-current-schema", "schema-id": -1}
    ])
}

#[test]
fn the_updates_of_a_staged_create_make_a_table_in_duckdbs_order() {
    let table = apply(None, &updates(duckdb_updates()), &context()).unwrap();
    assert_eq!(table.uuid(), Uuid::from_u128(9));
    assert_eq!(
        (
            table.current_schema_id(),
            table.default_spec_id(),
            table.default_sort_order_id()
        ),
        (0, 0, 0)
    );
    assert_eq!(
        (table.last_column_id(), table.last_partition_id()),
        (3, 1000)
    );
    assert_eq!(table.current_snapshot_id(), Some(1));
    assert_eq!(table.snapshot_log().len(), 1);
    assert!(table.metadata_log().is_empty());
    assert_eq!(TableMetadata::from_json(&table.to_json()).unwrap(), table);
}

#[test]
fn a_staged_create_may_name_any_version_first() {
    for version in [1, 2, 3] {
        let mut changes = duckdb_updates();
        changes[1]["format-version"] = json!(version);
        let snapshot = &mut changes[9]["snapshot"];
        snapshot["first-row-id"] = json!(0);
        snapshot["added-rows"] = json!(4);
        let table = apply(None, &updates(changes), &context()).unwrap();
        assert_eq!(i64::from(table.format_version()), version);
    }
}

#[test]
fn a_staged_create_binds_the_spec_to_the_schema_that_is_current_in_the_end() {
    let mut changes = duckdb_updates();
    changes[3]["spec"]["fields"][0]["source-id"] = json!(8);
    assert_invalid(apply(None, &updates(changes), &context()), "source-id 8");
}

#[test]
fn a_new_table_needs_an_identity_a_location_and_a_schema_and_nothing_else() {
    let needed = [0, 2, 7];
    let part = ["assign-uuid", "add-schema", "set-location"];
    let all = duckdb_updates();
    let minimal: Vec<Value> = needed.iter().map(|&index| all[index].clone()).collect();
    let table = apply(None, &updates(json!(minimal)), &context()).unwrap();
    assert_eq!(table.partition_specs().len(), 1);
    assert!(table.default_sort_order().unwrap().is_unsorted());
    assert_eq!(TableMetadata::from_json(&table.to_json()).unwrap(), table);
    for (missing, part) in (0..needed.len()).zip(part) {
        let mut fewer = minimal.clone();
        fewer.remove(missing);
        assert_invalid(apply(None, &updates(json!(fewer)), &context()), part);
    }
    let other_uuid = json!({"action": "assign-uuid", "uuid": Uuid::from_u128(1)});
    assert_invalid(
        apply(None, &updates(json!([minimal[0], other_uuid])), &context()),
        "uuid",
    );
}

#[test]
fn a_snapshot_before_any_schema_is_refused() {
    assert_invalid(
        apply(None, &updates(json!([add(snapshot(1, 0, 1))])), &context()),
        "no schema",
    );
}
