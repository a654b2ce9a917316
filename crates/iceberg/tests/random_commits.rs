//! Whatever commits come, in whatever order: a table stays one that every reader can read.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use anabranch_iceberg::{TableMetadata, TableUpdate, UpdateContext, apply};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use support::*;

/// Any JSON that a writer might put where nobody knows it.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("x-[a-z]{1,4}", inner), 0..4).prop_map(|entries| Value::Object(
                entries.into_iter().collect::<Map<String, Value>>()
            )),
        ]
    })
}

fn any_type() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!("int")),
        Just(json!("long")),
        Just(json!("date")),
        Just(json!("decimal(10, 2)")),
        "[a-z]{3,6}_[a-z]{3}(\\([a-z]{1,4}\\))?".prop_map(Value::from),
        any_json().prop_map(|value| json!({"type": "future", "x-inside": value})),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), any::<bool>()).prop_map(|(element, required)| json!({
                "type": "list", "element-id": 0, "element": element, "element-required": required})),
            (inner.clone(), inner.clone()).prop_map(|(key, value)| json!({
                "type": "map", "key-id": 0, "key": key, "value-id": 0, "value": value, "value-required": false})),
            prop::collection::vec(inner, 1..3).prop_map(|types| {
                let field = |(index, field_type): (usize, Value)| {
                    json!({"id": 0, "name": format!("n{index}"), "required": false, "type": field_type})
                };
                json!({"type": "struct", "fields": types.into_iter().enumerate().map(field).collect::<Vec<_>>()})
            }),
        ]
    })
}

/// One update, or an append to `main`, with small numbers, so that they hit and miss each other.
fn any_updates() -> impl Strategy<Value = Vec<Value>> {
    let id = -1_i64..6;
    let small = -1_i32..4;
    let name = prop_oneof![4 => Just("main"), 1 => Just("dev"), 1 => Just("tag")];
    let snapshots = prop_oneof![
        (id.clone(), id.clone(), 0_i64..12, -30_i64..60, any_json()).prop_map(|(id, parent, number, skew_ms, unknown)| {
            let mut snapshot = snapshot(id, parent.max(0), number);
            snapshot["timestamp-ms"] = json!(NOW_MS + skew_ms);
            snapshot["x-unknown"] = unknown;
            snapshot["first-row-id"] = json!(number * 10);
            snapshot["added-rows"] = json!(number);
            add(snapshot)
        }),
        (name.clone(), id.clone()).prop_map(|(name, id)| set_branch(name, id)),
        id.clone().prop_map(
            |id| json!({"action": "set-snapshot-ref", "ref-name": "tag", "type": "tag", "snapshot-id": id})
        ),
        name.prop_map(|name| json!({"action": "remove-snapshot-ref", "ref-name": name})),
        prop::collection::vec(id.clone(), 0..3)
            .prop_map(|ids| json!({"action": "remove-snapshots", "snapshot-ids": ids})),
    ];
    let others = prop_oneof![
        (prop::collection::vec(1_i32..5, 1..4), any_json()).prop_map(|(ids, unknown)| {
            let ids: HashSet<i32> = ids.into_iter().collect();
            let field = |id: &i32| json!({"id": id, "name": format!("f{id}"), "required": false, "type": "date"});
            let fields: Vec<Value> = ids.iter().map(field).collect();
            json!({"action": "add-schema", "schema": {"type": "struct", "fields": fields, "x-schema": unknown}})
        }),
        small.clone().prop_map(|id| json!({"action": "set-current-schema", "schema-id": id})),
        prop::collection::vec(small.clone(), 0..3)
            .prop_map(|ids| json!({"action": "remove-schemas", "schema-ids": ids})),
        (1_i32..5, prop_oneof![Just("day"), Just("void"), Just("bucket[4]"), Just("future[1]")]).prop_map(
            |(id, transform)| json!({"action": "add-spec", "spec": {"fields": [
                {"name": format!("p{id}"), "transform": transform, "source-id": id}]}})
        ),
        small.clone().prop_map(|id| json!({"action": "set-default-spec", "spec-id": id})),
        prop::collection::vec(small.clone(), 0..3)
            .prop_map(|ids| json!({"action": "remove-partition-specs", "spec-ids": ids})),
        (0_i32..5).prop_map(|id| json!({"action": "add-sort-order", "sort-order": {"order-id": id, "fields": [
            {"transform": "identity", "source-id": id, "direction": "asc", "null-order": "nulls-first"}]}})),
        small.clone().prop_map(|id| json!({"action": "set-default-sort-order", "sort-order-id": id})),
        small.prop_map(|version| json!({"action": "upgrade-format-version", "format-version": version})),
        "[a-c]".prop_map(|name| json!({"action": "set-properties", "updates": {name: "1"}})),
        "[a-c]".prop_map(|name| json!({"action": "remove-properties", "removals": [name]})),
        (id.clone(), any_json()).prop_map(|(id, unknown)| json!({"action": "set-statistics", "statistics": {
            "snapshot-id": id, "statistics-path": "s", "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1,
            "blob-metadata": [], "x-unknown": unknown}})),
        id.prop_map(|id| json!({"action": "remove-statistics", "snapshot-id": id})),
    ];
    let append = (0_i64..12, 0_i64..40, -30_i64..60).prop_map(|(id, number, skew_ms)| {
        let mut snapshot = snapshot(id, 0, number);
        snapshot["timestamp-ms"] = json!(NOW_MS + skew_ms);
        snapshot["first-row-id"] = json!(number * 10);
        snapshot["added-rows"] = json!(number);
        vec![add(snapshot), set_branch("main", id)]
    });
    prop_oneof![
        append,
        snapshots.prop_map(|update| vec![update]),
        others.prop_map(|update| vec![update])
    ]
}

fn assert_invariants(before: &TableMetadata, after: &TableMetadata) {
    assert_eq!(&TableMetadata::from_json(&after.to_json()).unwrap(), after);
    assert!(after.current_schema().is_some());
    assert!(after.default_spec().is_some());
    assert!(after.default_sort_order().is_some());
    for reference in after.refs().values() {
        assert!(after.snapshot_by_id(reference.snapshot_id).is_some());
    }
    assert_eq!(
        after.current_snapshot_id(),
        after.refs().get("main").map(|main| main.snapshot_id)
    );
    if let Some(id) = after.current_snapshot_id() {
        assert_eq!(
            after.snapshot_log().last().map(|entry| entry.snapshot_id),
            Some(id)
        );
    }
    assert!(
        after
            .snapshot_log()
            .is_sorted_by_key(|entry| entry.timestamp_ms)
    );
    assert!(
        after
            .metadata_log()
            .is_sorted_by_key(|entry| entry.timestamp_ms)
    );
    let last_logged = after
        .snapshot_log()
        .last()
        .map_or(0, |entry| entry.timestamp_ms);
    assert!(after.last_updated_ms() >= last_logged.max(before.last_updated_ms()));
    assert!(after.format_version() >= before.format_version());
    assert!(after.last_column_id() >= before.last_column_id());
    assert!(after.last_partition_id() >= before.last_partition_id());
    assert!(after.last_sequence_number() >= before.last_sequence_number());
    assert!(after.next_row_id() >= before.next_row_id());
    let highest_column = after
        .schemas()
        .map(|schema| schema.highest_field_id())
        .max()
        .unwrap();
    assert!(after.last_column_id() >= highest_column);
    if after.format_version() >= 2 {
        let numbers = after
            .snapshots()
            .filter_map(|snapshot| snapshot.sequence_number());
        assert!(numbers.max().unwrap_or(0) <= after.last_sequence_number());
    }
    let files: HashSet<i64> = after
        .statistics()
        .iter()
        .map(|file| file.snapshot_id())
        .collect();
    assert_eq!(files.len(), after.statistics().len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn commits_keep_a_table_readable(
        version in 1_u8..4,
        commits in prop::collection::vec(prop::collection::vec(any_updates(), 1..6), 1..12),
    ) {
        let mut metadata = table(version);
        for (round, changes) in (1_i64..).zip(commits) {
            let context = UpdateContext {
                // A clock that jumps back now and then.
                now_ms: NOW_MS + round * 10 - (round % 3) * 25,
                previous_metadata_location: Some(format!("s3://m/{round}")),
            };
            // Updates that would make the commit fail are left out, so that most commits do something.
            let mut accepted: Vec<TableUpdate> = Vec::new();
            for update in updates(json!(changes.concat())) {
                accepted.push(update);
                match apply(Some(&metadata), &accepted, &context) {
                    Ok(after) => assert_invariants(&metadata, &after),
                    Err(_) => drop(accepted.pop()),
                }
            }
            metadata = apply(Some(&metadata), &accepted, &context).unwrap();
        }
    }

    #[test]
    fn a_document_with_unknown_fields_everywhere_comes_out_as_it_went_in(
        types in prop::collection::vec(any_type(), 1..4),
        unknown in any_json(),
        version in 1_u8..4,
    ) {
        let fields: Vec<Value> = types.into_iter().enumerate().map(|(index, field_type)| {
            json!({"id": 0, "name": format!("c{index}"), "required": false, "type": field_type, "x-field": unknown})
        }).collect();
        let mut request = create_request(version);
        request.schema = schema(json!({"type": "struct", "fields": fields, "x-schema": unknown}));
        let table = TableMetadata::create(request, &context()).unwrap();
        let mut snapshot = snapshot(1, 0, 1);
        snapshot["first-row-id"] = json!(0);
        snapshot["added-rows"] = json!(0);
        snapshot["x-snapshot"] = unknown.clone();
        let table = commit(&table, json!([add(snapshot), set_branch("main", 1)])).unwrap();
        let mut written = document(&table);
        for place in ["x-top", "x-other"] {
            written[place] = unknown.clone();
        }
        written["refs"]["main"]["x-ref"] = unknown.clone();
        written["snapshot-log"][0]["x-log"] = unknown.clone();
        written["partition-specs"][0]["x-spec"] = unknown.clone();
        written["sort-orders"][0]["x-order"] = unknown;
        let loaded = TableMetadata::from_json(written.to_string().as_bytes()).unwrap();
        prop_assert_eq!(document(&loaded), written.clone());
        let pretty = serde_json::to_string_pretty(&written).unwrap();
        prop_assert_eq!(TableMetadata::from_json(pretty.as_bytes()).unwrap(), loaded);
    }
}
