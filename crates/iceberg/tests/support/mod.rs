//! What several tests need: small tables, and updates written as JSON.
#![allow(dead_code, missing_docs)]

use anabranch_iceberg::{
    CreateTable, Schema, TableMetadata, TableUpdate, UpdateContext, UpdateError, apply,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

pub const NOW_MS: i64 = 1_700_000_000_000;

pub fn context() -> UpdateContext {
    UpdateContext {
        now_ms: NOW_MS,
        previous_metadata_location: Some("s3://bucket/table/metadata/1.json".to_string()),
    }
}

pub fn schema(value: Value) -> Schema {
    serde_json::from_value(value).unwrap()
}

pub fn small_schema() -> Schema {
    schema(json!({"type": "struct", "fields": [
        {"id": 1, "name": "id", "required": true, "type": "long"},
        {"id": 2, "name": "day", "required": false, "type": "date"},
        {"id": 3, "name": "name", "required": false, "type": "string"}
    ]}))
}

pub fn create_request(format_version: u8) -> CreateTable {
    CreateTable {
        uuid: Uuid::from_u128(7),
        location: "s3://bucket/table".to_string(),
        schema: small_schema(),
        partition_spec: None,
        write_order: None,
        properties: BTreeMap::new(),
        format_version: Some(format_version),
    }
}

pub fn table(format_version: u8) -> TableMetadata {
    TableMetadata::create(create_request(format_version), &context()).unwrap()
}

pub fn updates(values: Value) -> Vec<TableUpdate> {
    serde_json::from_value(values).unwrap()
}

/// Applies updates, written as a JSON list, to a table.
pub fn commit(base: &TableMetadata, values: Value) -> Result<TableMetadata, UpdateError> {
    let metadata = apply(Some(base), &updates(values), &context())?;
    // Whatever a commit makes must be readable again, and the same.
    let reloaded = TableMetadata::from_json(&metadata.to_json()).unwrap();
    assert_eq!(reloaded, metadata);
    Ok(metadata)
}

pub fn document(metadata: &TableMetadata) -> Value {
    serde_json::from_slice(&metadata.to_json()).unwrap()
}

#[track_caller]
pub fn assert_invalid(result: Result<TableMetadata, UpdateError>, part: &str) {
    match result {
        Err(UpdateError::Invalid { message }) => {
            assert!(
                message.contains(part),
                "'{message}' doesn't contain '{part}'"
            );
        }
        other => panic!("expected an invalid update that names '{part}', got {other:?}"),
    }
}

#[track_caller]
pub fn assert_conflict(result: Result<TableMetadata, UpdateError>, part: &str) {
    match result {
        Err(UpdateError::Conflict { message }) => {
            assert!(
                message.contains(part),
                "'{message}' doesn't contain '{part}'"
            );
        }
        other => panic!("expected a conflict that names '{part}', got {other:?}"),
    }
}

/// A snapshot of version 2; `parent` 0 is none.
pub fn snapshot(id: i64, parent: i64, sequence_number: i64) -> Value {
    let mut snapshot = json!({
        "snapshot-id": id,
        "sequence-number": sequence_number,
        "timestamp-ms": NOW_MS + sequence_number,
        "manifest-list": format!("s3://bucket/table/metadata/{id}.avro"),
        "summary": {"operation": "append"},
        "schema-id": 0
    });
    if parent != 0 {
        snapshot["parent-snapshot-id"] = json!(parent);
    }
    snapshot
}

pub fn add(snapshot: Value) -> Value {
    json!({"action": "add-snapshot", "snapshot": snapshot})
}

pub fn set_branch(name: &str, id: i64) -> Value {
    json!({"action": "set-snapshot-ref", "ref-name": name, "type": "branch", "snapshot-id": id})
}

/// A table of version 2 with the snapshots 1 and 2 on `main`, and the tag `one`.
pub fn table_with_two_snapshots() -> TableMetadata {
    let one = commit(
        &table(2),
        json!([add(snapshot(1, 0, 1)), set_branch("main", 1)]),
    )
    .unwrap();
    let tag =
        json!({"action": "set-snapshot-ref", "ref-name": "one", "type": "tag", "snapshot-id": 1});
    commit(
        &one,
        json!([add(snapshot(2, 1, 2)), set_branch("main", 2), tag]),
    )
    .unwrap()
}
