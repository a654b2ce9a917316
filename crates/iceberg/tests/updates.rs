//! Every update: what it does, and when it is refused.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use anabranch_iceberg::{
    TableMetadata, TableUpdate, UpdateContext, UpdateError, apply, created_uuid, snapshot_ids_added,
};
use serde_json::{Value, json};
use support::*;
use uuid::Uuid;

fn statistics(snapshot_id: i64, path: &str) -> Value {
    json!({"snapshot-id": snapshot_id, "statistics-path": path, "file-size-in-bytes": 1,
           "file-footer-size-in-bytes": 1, "blob-metadata": [], "x": 1})
}

fn key(id: &str) -> Value {
    json!({"key-id": id, "encrypted-key-metadata": "YQ=="})
}

fn upgrade(version: i32) -> Value {
    json!({"action": "upgrade-format-version", "format-version": version})
}

#[test]
fn an_unknown_update_or_a_wrong_field_is_named() {
    let cases = [
        (json!({"action": "set-mood"}), "set-mood"),
        (json!({"uuid": "x"}), "action"),
        (json!({"action": "assign-uuid", "uuid": "x"}), "uuid"),
        (
            json!({"action": "set-properties", "updates": {"a": 1}}),
            "updates",
        ),
        (
            json!({"action": "add-snapshot", "snapshot": {"snapshot-id": 1, "timestamp-ms": 1}}),
            "manifest-list",
        ),
        (
            json!({"action": "add-schema", "schema": {"type": "struct", "fields": [{"id": 1}]}}),
            "name",
        ),
        (
            json!({"action": "set-snapshot-ref", "ref-name": "a", "type": "twig", "snapshot-id": 1}),
            "type",
        ),
        (json!([]), "object"),
    ];
    for (value, part) in cases {
        match TableUpdate::from_json_value(value) {
            Err(UpdateError::Invalid { message }) => assert!(message.contains(part), "{message}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_update_is_written_as_it_is_read() {
    let all = json!([
        {"action": "assign-uuid", "uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1"},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": small_schema()},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": [
            {"name": "day", "transform": "month", "source-id": 2, "x": 1}]}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": [
            {"transform": "identity", "source-id": 2, "direction": "asc", "null-order": "nulls-first"}]}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "add-snapshot", "snapshot": snapshot(1, 0, 1)},
        {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 1, "type": "branch",
         "min-snapshots-to-keep": 2, "max-snapshot-age-ms": 3, "max-ref-age-ms": 4},
        {"action": "remove-snapshots", "snapshot-ids": [1]},
        {"action": "remove-snapshot-ref", "ref-name": "main"},
        {"action": "set-location", "location": "s3://a"},
        {"action": "set-properties", "updates": {"a": "b"}},
        {"action": "remove-properties", "removals": ["a"]},
        {"action": "set-statistics", "statistics": statistics(1, "s3://s")},
        {"action": "remove-statistics", "snapshot-id": 1},
        {"action": "set-partition-statistics", "partition-statistics":
            {"snapshot-id": 1, "statistics-path": "p", "file-size-in-bytes": 1}},
        {"action": "remove-partition-statistics", "snapshot-id": 1},
        {"action": "remove-partition-specs", "spec-ids": [1]},
        {"action": "remove-schemas", "schema-ids": [1]},
        {"action": "add-encryption-key", "encryption-key": key("k")},
        {"action": "remove-encryption-key", "key-id": "k"}
    ]);
    let parsed = updates(all.clone());
    assert_eq!(serde_json::to_value(&parsed).unwrap(), all);
    assert_eq!(snapshot_ids_added(&parsed), [1]);
    assert_eq!(
        created_uuid(&parsed).unwrap().to_string(),
        "9c12d441-03fe-4693-9a96-a0705ddf69c1"
    );
}

#[test]
fn the_older_names_of_property_updates_are_understood() {
    let old = json!([
        {"action": "set-properties", "updated": {"a": "b"}},
        {"action": "remove-properties", "removed": ["c"]}
    ]);
    let new = json!([
        {"action": "set-properties", "updates": {"a": "b"}},
        {"action": "remove-properties", "removals": ["c"]}
    ]);
    assert_eq!(updates(old), updates(new));
}

#[test]
fn a_table_keeps_its_uuid() {
    let base = table(2);
    let same = json!([{"action": "assign-uuid", "uuid": base.uuid()}]);
    assert_eq!(commit(&base, same).unwrap(), base);
    let other = json!([{"action": "assign-uuid", "uuid": Uuid::from_u128(8)}]);
    assert_invalid(commit(&base, other), "uuid");
}

#[test]
fn the_format_version_only_rises_and_only_to_versions_that_exist() {
    assert_eq!(
        commit(&table(1), json!([upgrade(3)]))
            .unwrap()
            .format_version(),
        3
    );
    assert_invalid(commit(&table(2), json!([upgrade(1)])), "can't be lowered");
    assert_invalid(commit(&table(2), json!([upgrade(4)])), "unsupported");
}

#[test]
fn an_upgrade_from_version_1_counts_on_from_sequence_numbers_that_are_there() {
    let base = commit(
        &table(1),
        json!([add(snapshot(1, 0, 9)), set_branch("main", 1)]),
    )
    .unwrap();
    assert_eq!(base.last_sequence_number(), 0);
    let upgraded = commit(&base, json!([upgrade(2)])).unwrap();
    assert_eq!(upgraded.last_sequence_number(), 9);
}

#[test]
fn an_added_schema_gets_the_next_id_and_raises_last_column_id() {
    let new = json!({"type": "struct", "schema-id": 77, "fields": [
        {"id": 1, "name": "id", "required": true, "type": "long"},
        {"id": 9, "name": "new", "required": false, "type": "string"}
    ]});
    let changes = json!([
        {"action": "add-schema", "schema": new, "last-column-id": 1},
        {"action": "set-current-schema", "schema-id": -1}
    ]);
    let after = commit(&table(2), changes).unwrap();
    assert_eq!(
        (
            after.current_schema_id(),
            after.last_column_id(),
            after.schemas().len()
        ),
        (1, 9, 2)
    );
}

#[test]
fn an_equal_schema_is_found_instead_of_added() {
    let mut equal = serde_json::to_value(small_schema()).unwrap();
    equal["schema-id"] = json!(5);
    let changes = json!([
        {"action": "add-schema", "schema": equal},
        {"action": "set-current-schema", "schema-id": -1}
    ]);
    let base = table(2);
    assert_eq!(commit(&base, changes).unwrap(), base);
}

#[test]
fn a_schema_that_the_table_cannot_have_is_refused() {
    let add_type = |name: &str| {
        json!([{"action": "add-schema", "schema": {"type": "struct", "fields": [
            {"id": 1, "name": "a", "required": false, "type": name}]}}])
    };
    assert_invalid(commit(&table(2), add_type("variant")), "format-version 3");
    assert!(commit(&table(3), add_type("variant")).is_ok());
    assert!(commit(&table(2), add_type("interval")).is_ok());
    assert_invalid(
        commit(
            &table(2),
            json!([{"action": "set-current-schema", "schema-id": 4}]),
        ),
        "no schema 4",
    );
    assert_invalid(
        commit(
            &table(2),
            json!([{"action": "set-current-schema", "schema-id": -1}]),
        ),
        "-1",
    );
}

#[test]
fn a_column_that_partitions_or_sorts_the_table_cannot_be_dropped() {
    let spec = json!({"fields": [{"name": "day", "transform": "identity", "source-id": 2}]});
    let order = json!({"order-id": 1, "fields": [
        {"transform": "identity", "source-id": 3, "direction": "asc", "null-order": "nulls-first"}]});
    let base = commit(&table(2), json!([
        {"action": "add-spec", "spec": spec}, {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": order}, {"action": "set-default-sort-order", "sort-order-id": -1}
    ]))
    .unwrap();
    let keep = |ids: &[i32]| {
        let mut schema = small_schema();
        schema.fields.retain(|field| ids.contains(&field.id));
        json!([{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}])
    };
    assert_invalid(commit(&base, keep(&[1, 3])), "source-id 2");
    assert_invalid(commit(&base, keep(&[1, 2])), "source-id 3");
    assert!(commit(&base, keep(&[2, 3])).is_ok());
}

#[test]
fn a_table_that_was_damaged_before_can_still_be_changed() {
    let mut damaged = document(&table(2));
    damaged["partition-specs"] = json!([{"spec-id": 0, "fields": [
        {"name": "lost", "transform": "day", "source-id": 44, "field-id": 1000}]}]);
    let damaged = TableMetadata::from_json(damaged.to_string().as_bytes()).unwrap();
    let mut wider = small_schema();
    wider.fields[2].doc = Some("described".to_string());
    let changes = json!([{"action": "add-schema", "schema": wider},
        {"action": "set-current-schema", "schema-id": -1}]);
    assert!(commit(&damaged, changes).is_ok());
    let spec = json!([{"action": "add-spec", "spec": {"fields": [
        {"name": "lost", "transform": "month", "source-id": 44}]}}]);
    assert_invalid(commit(&damaged, spec), "source-id 44");
}

#[test]
fn schemas_are_removed_but_not_the_current_one() {
    let mut wider = small_schema();
    wider.fields.pop();
    let base = commit(
        &table(2),
        json!([{"action": "add-schema", "schema": wider}]),
    )
    .unwrap();
    let after = commit(
        &base,
        json!([{"action": "remove-schemas", "schema-ids": [1, 8]}]),
    )
    .unwrap();
    assert_eq!(after.schemas().len(), 1);
    assert_invalid(
        commit(
            &base,
            json!([{"action": "remove-schemas", "schema-ids": [0]}]),
        ),
        "current",
    );
}

#[test]
fn partition_fields_without_ids_get_those_of_equal_fields_or_new_ones() {
    let spec = |fields: Value| json!({"action": "add-spec", "spec": {"fields": fields}});
    let bucket = json!({"name": "b", "transform": "bucket[4]", "source-id": 1});
    let month = json!({"name": "m", "transform": "month", "source-id": 2});
    let changes = json!([spec(json!([bucket])), spec(json!([month, bucket])),
        {"action": "set-default-spec", "spec-id": -1}]);
    let after = commit(&table(2), changes).unwrap();
    let ids: Vec<Option<i32>> = after
        .default_spec()
        .unwrap()
        .fields
        .iter()
        .map(|field| field.field_id)
        .collect();
    assert_eq!(ids, [Some(1001), Some(1000)]);
    assert_eq!(
        (after.default_spec_id(), after.last_partition_id()),
        (2, 1001)
    );
    let again = commit(
        &after,
        json!([spec(json!([bucket])), {"action": "set-default-spec", "spec-id": -1}]),
    );
    assert_eq!(again.unwrap().default_spec_id(), 1);
}

#[test]
fn version_1_partition_fields_count_from_1000() {
    let spec = |id: Value| {
        json!([{"action": "add-spec", "spec": {"fields": [
            {"name": "b", "transform": "bucket[4]", "source-id": 1, "field-id": id}]}}])
    };
    assert!(commit(&table(1), spec(Value::Null)).is_ok());
    assert!(commit(&table(1), spec(json!(1000))).is_ok());
    assert_invalid(commit(&table(1), spec(json!(1005))), "format-version 1");
    assert!(commit(&table(2), spec(json!(1005))).is_ok());
}

#[test]
fn a_spec_that_does_not_fit_is_refused() {
    let spec = |fields: Value| json!([{"action": "add-spec", "spec": {"fields": fields}}]);
    let cases = [
        (
            json!([{"name": "a", "transform": "identity", "source-id": 9}]),
            "source-id 9",
        ),
        (
            json!([{"name": "a", "transform": "hour", "source-id": 2}]),
            "hour",
        ),
        (
            json!([{"name": "id", "transform": "bucket[4]", "source-id": 2}]),
            "another column",
        ),
        (
            json!([{"name": "a", "transform": "identity", "source-id": 1},
                   {"name": "a", "transform": "identity", "source-id": 2}]),
            "two fields with the name",
        ),
        (
            json!([{"name": "a", "transform": "identity", "source-id": 1, "field-id": 1000},
                   {"name": "b", "transform": "identity", "source-id": 2, "field-id": 1000}]),
            "two fields with the field-id",
        ),
    ];
    for (fields, part) in cases {
        assert_invalid(commit(&table(2), spec(fields)), part);
    }
    let kept = json!([{"name": "gone", "transform": "void", "source-id": 9},
                      {"name": "z", "transform": "zorder", "source-id": 1}]);
    assert!(commit(&table(2), spec(kept)).is_ok());
    assert_invalid(
        commit(
            &table(2),
            json!([{"action": "set-default-spec", "spec-id": 4}]),
        ),
        "no partition spec 4",
    );
}

#[test]
fn specs_are_removed_but_not_the_default_one() {
    let base = commit(
        &table(2),
        json!([{"action": "add-spec", "spec": {"fields": [{"name": "b", "transform": "bucket[4]", "source-id": 1}]}}]),
    )
    .unwrap();
    let after = commit(
        &base,
        json!([{"action": "remove-partition-specs", "spec-ids": [1, 5]}]),
    )
    .unwrap();
    assert_eq!(after.partition_specs().len(), 1);
    assert_eq!(after.last_partition_id(), 1000);
    assert_invalid(
        commit(
            &base,
            json!([{"action": "remove-partition-specs", "spec-ids": [0]}]),
        ),
        "default",
    );
}

#[test]
fn sort_orders_are_numbered_from_1_and_found_again() {
    let order = json!({"order-id": 9, "fields": [
        {"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-last"}]});
    let sort = json!([{"action": "add-sort-order", "sort-order": order},
        {"action": "set-default-sort-order", "sort-order-id": -1}]);
    let sorted = commit(&table(2), sort.clone()).unwrap();
    assert_eq!(sorted.default_sort_order_id(), 1);
    assert_eq!(commit(&sorted, sort).unwrap(), sorted);
    let unsort = json!([{"action": "add-sort-order", "sort-order": {"order-id": 4, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1}]);
    assert_eq!(commit(&sorted, unsort).unwrap().default_sort_order_id(), 0);
    let unfit = json!([{"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": [
        {"transform": "identity", "source-id": 8, "direction": "asc", "null-order": "nulls-last"}]}}]);
    assert_invalid(commit(&table(2), unfit), "source-id 8");
    let unknown = json!([{"action": "set-default-sort-order", "sort-order-id": 3}]);
    assert_invalid(commit(&table(2), unknown), "no sort order 3");
}

#[test]
fn main_moves_the_current_snapshot_and_the_log() {
    let table = table_with_two_snapshots();
    assert_eq!(table.current_snapshot_id(), Some(2));
    assert_eq!(table.last_sequence_number(), 2);
    let log: Vec<(i64, i64)> = table
        .snapshot_log()
        .iter()
        .map(|entry| (entry.snapshot_id, entry.timestamp_ms))
        .collect();
    assert_eq!(log, [(1, NOW_MS + 1), (2, NOW_MS + 2)]);
    let back = commit(&table, json!([set_branch("main", 1)])).unwrap();
    assert_eq!(back.current_snapshot_id(), Some(1));
    assert_eq!(back.snapshot_log().last().unwrap().snapshot_id, 1);
    assert!(back.snapshot_log().last().unwrap().timestamp_ms >= NOW_MS + 2);
    let none = commit(
        &table,
        json!([{"action": "remove-snapshot-ref", "ref-name": "main"}]),
    )
    .unwrap();
    assert_eq!(none.current_snapshot_id(), None);
    assert_eq!(none.snapshot_log(), table.snapshot_log());
}

#[test]
fn a_snapshot_on_a_branch_leaves_main_alone() {
    let base = table_with_two_snapshots();
    let after = commit(&base, json!([add(snapshot(3, 1, 3)), set_branch("dev", 3)])).unwrap();
    assert_eq!(after.current_snapshot_id(), Some(2));
    assert_eq!(after.snapshot_log(), base.snapshot_log());
    assert_eq!(after.refs()["dev"].snapshot_id, 3);
}

#[test]
fn what_was_current_only_in_the_middle_of_a_commit_is_not_logged() {
    let changes = json!([
        add(snapshot(1, 0, 1)),
        set_branch("main", 1),
        add(snapshot(2, 1, 2)),
        set_branch("main", 2)
    ]);
    let log: Vec<i64> = commit(&table(2), changes)
        .unwrap()
        .snapshot_log()
        .iter()
        .map(|entry| entry.snapshot_id)
        .collect();
    assert_eq!(log, [2]);
}

#[test]
fn a_stale_sequence_number_is_a_conflict_that_can_be_retried() {
    let base = table_with_two_snapshots();
    assert_conflict(
        commit(&base, json!([add(snapshot(3, 1, 2))])),
        "sequence-number 2",
    );
    let imported = commit(&base, json!([add(snapshot(3, 0, 1))])).unwrap();
    assert_eq!(imported.last_sequence_number(), 2);
    let mut without = snapshot(3, 2, 3);
    without.as_object_mut().unwrap().remove("sequence-number");
    assert_invalid(
        commit(&base, json!([add(without.clone())])),
        "sequence-number",
    );
    assert!(commit(&table(1), json!([add(without)])).is_ok());
}

#[test]
fn a_snapshot_id_that_is_taken_is_a_conflict() {
    let base = table_with_two_snapshots();
    assert_conflict(commit(&base, json!([add(snapshot(2, 1, 3))])), "snapshot 2");
    assert_invalid(commit(&base, json!([add(snapshot(-1, 1, 3))])), "-1");
}

#[test]
fn row_ids_are_given_once() {
    let rows = |id: i64, first: Value, added: Value| {
        let mut snapshot = snapshot(id, 0, id);
        snapshot["first-row-id"] = first;
        snapshot["added-rows"] = added;
        json!([add(snapshot)])
    };
    let base = commit(&table(3), rows(1, json!(0), json!(10))).unwrap();
    assert_eq!(base.next_row_id(), 10);
    assert_conflict(commit(&base, rows(2, json!(9), json!(1))), "first-row-id 9");
    assert_eq!(
        commit(&base, rows(2, json!(15), json!(5)))
            .unwrap()
            .next_row_id(),
        20
    );
    assert_invalid(
        commit(&base, rows(2, Value::Null, json!(1))),
        "first-row-id",
    );
    assert_invalid(commit(&base, rows(2, json!(10), json!(-1))), "added-rows");
    assert_invalid(commit(&base, rows(2, json!(i64::MAX), json!(1))), "64 bits");
}

#[test]
fn a_reference_needs_a_snapshot_and_retention_that_makes_sense() {
    let base = table_with_two_snapshots();
    let set = |name: &str, kind: &str, more: Value| {
        let mut update =
            json!({"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": 1});
        update
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        commit(&base, json!([update]))
    };
    assert_invalid(commit(&base, json!([set_branch("dev", 9)])), "snapshot 9");
    assert_invalid(set("main", "tag", json!({})), "must be a branch");
    assert_invalid(
        set("t", "tag", json!({"min-snapshots-to-keep": 1})),
        "is a tag",
    );
    assert_invalid(
        set("b", "branch", json!({"min-snapshots-to-keep": 0})),
        "min-snapshots-to-keep",
    );
    assert_invalid(
        set("b", "branch", json!({"max-snapshot-age-ms": 0})),
        "max-snapshot-age-ms",
    );
    assert_invalid(
        set("b", "branch", json!({"max-ref-age-ms": -1})),
        "max-ref-age-ms",
    );
    assert_invalid(set("", "branch", json!({})), "no name");
    let kept = set(
        "b",
        "branch",
        json!({"min-snapshots-to-keep": 2, "x-ref": [1]}),
    )
    .unwrap();
    assert_eq!(document(&kept)["refs"]["b"]["x-ref"], json!([1]));
}

#[test]
fn retention_of_main_changes_without_a_new_log_entry() {
    let base = table_with_two_snapshots();
    let mut update = set_branch("main", 2);
    update["min-snapshots-to-keep"] = json!(3);
    let after = commit(&base, json!([update])).unwrap();
    assert_eq!(after.snapshot_log(), base.snapshot_log());
    assert_eq!(after.refs()["main"].min_snapshots_to_keep, Some(3));
}

#[test]
fn removed_snapshots_take_along_what_points_at_them() {
    let partition_statistics = |id: i64| {
        json!({"action": "set-partition-statistics", "partition-statistics":
            {"snapshot-id": id, "statistics-path": "p", "file-size-in-bytes": 1}})
    };
    let base = commit(
        &table_with_two_snapshots(),
        json!([
            {"action": "set-statistics", "statistics": statistics(1, "s3://one")},
            {"action": "set-statistics", "statistics": statistics(2, "s3://two")},
            partition_statistics(1), partition_statistics(2)
        ]),
    )
    .unwrap();
    let after = commit(
        &base,
        json!([{"action": "remove-snapshots", "snapshot-ids": [1]}]),
    )
    .unwrap();
    assert_eq!(
        after
            .snapshots()
            .map(|kept| kept.snapshot_id())
            .collect::<Vec<_>>(),
        [2]
    );
    assert_eq!(after.refs().keys().collect::<Vec<_>>(), ["main"]);
    assert_eq!(
        after
            .statistics()
            .iter()
            .map(|kept| kept.snapshot_id())
            .collect::<Vec<_>>(),
        [2]
    );
    assert_eq!(
        after
            .partition_statistics()
            .iter()
            .map(|kept| kept.snapshot_id())
            .collect::<Vec<_>>(),
        [2]
    );
    assert_eq!(
        after
            .snapshot_log()
            .iter()
            .map(|kept| kept.snapshot_id)
            .collect::<Vec<_>>(),
        [2]
    );
    let empty = commit(
        &base,
        json!([{"action": "remove-snapshots", "snapshot-ids": [1, 2]}]),
    )
    .unwrap();
    assert_eq!(
        (
            empty.current_snapshot_id(),
            empty.refs().len(),
            empty.snapshot_log().len()
        ),
        (None, 0, 0)
    );
    let dangling =
        json!([{"action": "remove-snapshots", "snapshot-ids": [1]}, set_branch("dev", 1)]);
    assert_invalid(commit(&base, dangling), "snapshot 1");
}

#[test]
fn a_log_begins_after_its_last_gap() {
    let three = commit(&table_with_two_snapshots(), json!([set_branch("main", 1)])).unwrap();
    let four = commit(
        &three,
        json!([add(snapshot(3, 1, 3)), set_branch("main", 3)]),
    )
    .unwrap();
    let after = commit(
        &four,
        json!([{"action": "remove-snapshots", "snapshot-ids": [2]}]),
    )
    .unwrap();
    assert_eq!(
        after
            .snapshot_log()
            .iter()
            .map(|kept| kept.snapshot_id)
            .collect::<Vec<_>>(),
        [1, 3]
    );
}

#[test]
fn statistics_are_one_file_for_each_snapshot() {
    let base = table_with_two_snapshots();
    let set = |path: &str| json!({"action": "set-statistics", "snapshot-id": 5, "statistics": statistics(1, path)});
    let after = commit(&base, json!([set("s3://old"), set("s3://new")])).unwrap();
    assert_eq!(
        document(&after)["statistics"],
        json!([statistics(1, "s3://new")])
    );
    let gone = commit(
        &after,
        json!([{"action": "remove-statistics", "snapshot-id": 1}]),
    )
    .unwrap();
    assert!(gone.statistics().is_empty());
    let partition = json!({"snapshot-id": 1, "statistics-path": "p", "file-size-in-bytes": 1});
    let set = json!([{"action": "set-partition-statistics", "partition-statistics": partition}]);
    let after = commit(&base, set).unwrap();
    assert_eq!(document(&after)["partition-statistics"], json!([partition]));
    let gone = commit(
        &after,
        json!([{"action": "remove-partition-statistics", "snapshot-id": 1}]),
    )
    .unwrap();
    assert!(gone.partition_statistics().is_empty());
}

#[test]
fn properties_and_location_change() {
    let after = commit(
        &table(2),
        json!([
            {"action": "set-properties", "updates": {"a": "1", "b": "2"}},
            {"action": "remove-properties", "removals": ["a", "absent"]},
            {"action": "set-location", "location": "s3://elsewhere"}
        ]),
    )
    .unwrap();
    assert_eq!(document(&after)["properties"], json!({"b": "2"}));
    assert_eq!(after.location(), "s3://elsewhere");
    let slash = json!([{"action": "set-location", "location": "s3://elsewhere/t//"}]);
    assert_eq!(
        commit(&table(2), slash).unwrap().location(),
        "s3://elsewhere/t"
    );
    assert_invalid(
        commit(
            &table(2),
            json!([{"action": "set-location", "location": ""}]),
        ),
        "location",
    );
}

#[test]
fn properties_that_name_the_tables_own_state_are_refused_or_do_what_they_say() {
    let set =
        |name: &str, value: &str| json!([{"action": "set-properties", "updates": {name: value}}]);
    assert_invalid(
        commit(&table(2), set("current-snapshot-id", "3")),
        "reserved",
    );
    let upgraded = commit(&table(2), set("format-version", "3")).unwrap();
    assert_eq!(
        (upgraded.format_version(), upgraded.properties().len()),
        (3, 0)
    );
    assert_invalid(
        commit(&table(2), set("format-version", "1")),
        "can't be lowered",
    );
    assert_invalid(commit(&table(2), set("format-version", "x")), "number");
}

#[test]
fn the_key_of_an_encrypted_table_cannot_change() {
    let set = |value: &str| json!([{"action": "set-properties", "updates": {"encryption.key-id": value}}]);
    let mut request = create_request(3);
    request
        .properties
        .insert("encryption.key-id".to_string(), "k1".to_string());
    let encrypted = TableMetadata::create(request, &context()).unwrap();
    assert_eq!(commit(&encrypted, set("k1")).unwrap(), encrypted);
    assert_invalid(commit(&encrypted, set("k2")), "encryption.key-id");
    let remove = json!([{"action": "remove-properties", "removals": ["encryption.key-id"]}]);
    assert_invalid(commit(&encrypted, remove.clone()), "encryption.key-id");
    assert_invalid(commit(&table(3), set("k1")), "encryption.key-id");
    assert_eq!(commit(&table(3), remove).unwrap(), table(3));
}

#[test]
fn encryption_keys_come_and_go_but_not_while_they_are_used() {
    let add_key = |key: Value| json!({"action": "add-encryption-key", "encryption-key": key});
    let remove = |id: &str| json!([{"action": "remove-encryption-key", "key-id": id}]);
    assert_invalid(
        commit(&table(2), json!([add_key(key("a"))])),
        "format-version 3",
    );
    let mut wrapped = key("b");
    wrapped["encrypted-by-id"] = json!("a");
    let mut encrypted = snapshot(1, 0, 1);
    encrypted["first-row-id"] = json!(0);
    encrypted["added-rows"] = json!(0);
    encrypted["key-id"] = json!("b");
    let base = commit(
        &table(3),
        json!([
            add_key(key("a")),
            add_key(wrapped),
            add_key(key("c")),
            add(encrypted)
        ]),
    )
    .unwrap();
    assert_eq!(commit(&base, json!([add_key(key("a"))])).unwrap(), base);
    let mut other = key("a");
    other["encrypted-key-metadata"] = json!("Yg==");
    assert_invalid(commit(&base, json!([add_key(other)])), "another key");
    assert_invalid(commit(&base, remove("a")), "in use");
    assert_invalid(commit(&base, remove("b")), "in use");
    let after = commit(&base, remove("c")).unwrap();
    assert_eq!(after.encryption_keys().len(), 2);
    assert_eq!(commit(&after, remove("c")).unwrap(), after);
    let all = json!([{"action": "remove-snapshots", "snapshot-ids": [1]}, remove("a")[0], remove("b")[0]]);
    assert!(commit(&base, all).unwrap().encryption_keys().len() == 1);
}

#[test]
fn the_metadata_log_grows_to_its_bound() {
    let bound = json!([{"action": "set-properties", "updates": {"write.metadata.previous-versions-max": "2"}}]);
    let mut metadata = commit(&table(2), bound).unwrap();
    for round in 0..4 {
        let changes =
            updates(json!([{"action": "set-properties", "updates": {"round": round.to_string()}}]));
        let context = UpdateContext {
            now_ms: NOW_MS + round,
            previous_metadata_location: Some(format!("s3://m/{round}")),
        };
        metadata = apply(Some(&metadata), &changes, &context).unwrap();
    }
    let files: Vec<&str> = metadata
        .metadata_log()
        .iter()
        .map(|entry| entry.metadata_file.as_str())
        .collect();
    assert_eq!(files, ["s3://m/2", "s3://m/3"]);
    assert_eq!(metadata.metadata_log()[1].timestamp_ms, NOW_MS + 2);
    assert_eq!(metadata.last_updated_ms(), NOW_MS + 3);
}

#[test]
fn time_never_goes_back_whatever_the_clocks_say() {
    let base = table_with_two_snapshots();
    let early = UpdateContext {
        now_ms: 5,
        previous_metadata_location: None,
    };
    let changes = updates(json!([{"action": "set-location", "location": "s3://x"}]));
    assert_eq!(
        apply(Some(&base), &changes, &early)
            .unwrap()
            .last_updated_ms(),
        base.last_updated_ms()
    );
    let mut late_clock = snapshot(3, 2, 3);
    late_clock["timestamp-ms"] = json!(NOW_MS - 1_000_000);
    let after = commit(&base, json!([add(late_clock), set_branch("main", 3)])).unwrap();
    assert_eq!(
        after.snapshot_log().last().unwrap().timestamp_ms,
        NOW_MS + 2
    );
    let mut early_clock = snapshot(3, 2, 3);
    early_clock["timestamp-ms"] = json!(NOW_MS + 1_000_000);
    let after = commit(&base, json!([add(early_clock), set_branch("main", 3)])).unwrap();
    assert_eq!(after.last_updated_ms(), NOW_MS + 1_000_000);
}
