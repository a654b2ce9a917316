//! The `iceberg` crate as an oracle for commits to tables.
//!
//! Deliberate differences, each shown by a test below or left out of the comparison:
//!
//! | what | here | `iceberg` 0.10.1 |
//! |---|---|---|
//! | unknown fields, types, transforms | kept | dropped or refused |
//! | updates that change nothing | give back the base | new time and log entry |
//! | a writer's clock that is behind by more than a minute | log entry moves forward | refused |
//! | a snapshot without parent and with an old sequence number | last-sequence-number stays | goes back |
//! | first-row-id above next-row-id | next-row-id counts from it | row ids may be given twice |
//! | removed snapshots | their statistics go too | statistics stay |
//! | removing the current snapshot | takes `main` away, as in Java | refused |
//! | a snapshot that is added and removed in one commit | leaves the log alone | the log before it goes |
//! | partition fields without id in version 1 | count from 1000, as in Java | refused unless it is the first |
//! | another uuid for an existing table | refused | accepted |
//! | `format-version` among the properties | upgrades the table | refused |
//! | `encryption.key-id` of an existing table | can't change | can |
//! | encryption keys below version 3, or in use | refused | accepted |
//! | a partition field with the name of its source and another transform | accepted, as in Java | refused |
//! | adding a spec or order to a staged create before there is a current schema | judged at the end | no way |
//! | the kind of error | by what the caller can do | always `DataInvalid` |
#![allow(clippy::unwrap_used)]

mod support;

use proptest::prelude::*;
use serde_json::{Value, json};
use support::{NOW_MS, PREVIOUS_LOCATION, normalise, ours, theirs};

fn schema(fields: Value) -> Value {
    json!({"type": "struct", "schema-id": 0, "fields": fields})
}

fn columns() -> Value {
    json!([
        {"id": 1, "name": "id", "required": true, "type": "long"},
        {"id": 2, "name": "day", "required": false, "type": "date", "doc": "when"},
        {"id": 3, "name": "name", "required": false, "type": "string"},
        {"id": 4, "name": "inner", "required": false, "type": {"type": "struct", "fields": [
            {"id": 5, "name": "x", "required": false, "type": "int"}]}},
        {"id": 6, "name": "items", "required": false, "type":
            {"type": "list", "element-id": 7, "element": "string", "element-required": false}},
        {"id": 8, "name": "pairs", "required": false, "type":
            {"type": "map", "key-id": 9, "key": "string", "value-id": 10, "value": "decimal(9, 2)",
             "value-required": true}}
    ])
}

/// A table with two schemas, two specs, two orders, and the snapshots 1 and 2 on `main`.
fn base(format_version: i64) -> Value {
    let wider = {
        let mut fields = columns();
        fields
            .as_array_mut()
            .unwrap()
            .push(json!({"id": 11, "name": "late", "required": false, "type": "double"}));
        let mut wider = schema(fields);
        wider["schema-id"] = json!(1);
        wider
    };
    let mut document = json!({
        "format-version": format_version,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "s3://bucket/table",
        "last-updated-ms": NOW_MS - 1000,
        "last-column-id": 11,
        "current-schema-id": 1,
        "schemas": [schema(columns()), wider],
        "default-spec-id": 1,
        "partition-specs": [
            {"spec-id": 0, "fields": []},
            {"spec-id": 1, "fields": [{"name": "day_month", "transform": "month", "source-id": 2, "field-id": 1000}]}
        ],
        "last-partition-id": 1000,
        "default-sort-order-id": 1,
        "sort-orders": [
            {"order-id": 0, "fields": []},
            {"order-id": 1, "fields": [
                {"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}]}
        ],
        "properties": {"owner": "someone", "keep": "1"},
        "current-snapshot-id": 2,
        "refs": {
            "main": {"type": "branch", "snapshot-id": 2},
            "tagged": {"type": "tag", "snapshot-id": 1, "max-ref-age-ms": 1000}
        },
        "snapshots": [snapshot(format_version, 1, 0, 1), snapshot(format_version, 2, 1, 2)],
        "snapshot-log": [
            {"snapshot-id": 1, "timestamp-ms": NOW_MS - 10_000 + 1},
            {"snapshot-id": 2, "timestamp-ms": NOW_MS - 10_000 + 2}
        ],
        "metadata-log": [{"metadata-file": "s3://bucket/table/metadata/0.json", "timestamp-ms": NOW_MS - 2000}]
    });
    if format_version == 1 {
        document["refs"].as_object_mut().unwrap().remove("tagged");
        document["schema"] = document["schemas"][1].clone();
        document["partition-spec"] = document["partition-specs"][1]["fields"].clone();
    } else {
        document["last-sequence-number"] = json!(2);
    }
    if format_version == 3 {
        document["next-row-id"] = json!(20);
    }
    document
}

fn snapshot(format_version: i64, id: i64, parent: i64, number: i64) -> Value {
    let mut snapshot = json!({
        "snapshot-id": id,
        "timestamp-ms": NOW_MS - 10_000 + number,
        "manifest-list": format!("s3://bucket/table/metadata/{id}.avro"),
        "summary": {"operation": "append", "added-records": "3"},
        "schema-id": 0
    });
    if parent != 0 {
        snapshot["parent-snapshot-id"] = json!(parent);
    }
    if format_version >= 2 {
        snapshot["sequence-number"] = json!(number);
    }
    if format_version >= 3 {
        snapshot["first-row-id"] = json!((number - 1) * 10);
        snapshot["added-rows"] = json!(10);
    }
    snapshot
}

fn statistics(snapshot_id: i64) -> Value {
    json!({"action": "set-statistics", "snapshot-id": snapshot_id, "statistics": {
        "snapshot-id": snapshot_id, "statistics-path": "s3://s", "file-size-in-bytes": 9, "file-footer-size-in-bytes": 3,
        "blob-metadata": [{"type": "ndv", "snapshot-id": snapshot_id, "sequence-number": 1, "fields": [1],
                           "properties": {"ndv": "5"}}]}})
}

fn partition_statistics(snapshot_id: i64) -> Value {
    json!({"action": "set-partition-statistics", "partition-statistics":
        {"snapshot-id": snapshot_id, "statistics-path": "s3://p", "file-size-in-bytes": 9}})
}

fn set_ref(name: &str, kind: &str, id: i64) -> Value {
    json!({"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": id})
}

fn add_snapshot(format_version: i64, id: i64, parent: i64, number: i64) -> Value {
    json!({"action": "add-snapshot", "snapshot": snapshot(format_version, id, parent, number)})
}

/// What the `iceberg` crate says when the current snapshot is removed: it forgets to take `main` away with it.
const CURRENT_SNAPSHOT_REMOVED: &str = "latest entry is not the current snapshot";

#[track_caller]
fn assert_same(base: &Value, updates: &Value) {
    match (ours(base, updates), theirs(base, updates)) {
        (Ok(ours), Ok(theirs)) => assert_same_document(&ours, &theirs, updates),
        (Err(_), Err(_)) => {}
        (Ok(_), Err(reason)) if reason.contains(CURRENT_SNAPSHOT_REMOVED) => {}
        (ours, theirs) => panic!(
            "after {updates:#}\nours: {:?}\ntheirs: {:?}",
            ours.err(),
            theirs.err()
        ),
    }
}

#[track_caller]
fn assert_same_document(ours: &Value, theirs: &Value, updates: &Value) {
    let names = ours
        .as_object()
        .into_iter()
        .chain(theirs.as_object())
        .flat_map(|fields| fields.keys());
    for name in names {
        assert_eq!(ours.get(name), theirs.get(name), "{name} after {updates:#}");
    }
}

#[track_caller]
fn assert_same_success(base: &Value, updates: &Value) {
    assert_same(base, updates);
    assert!(ours(base, updates).is_ok(), "{:?}", ours(base, updates));
}

#[track_caller]
fn assert_both_refuse(base: &Value, updates: &Value) {
    assert!(ours(base, updates).is_err(), "{updates:#}");
    assert!(theirs(base, updates).is_err(), "{updates:#}");
}

#[test]
fn both_read_the_base_alike() {
    for version in 1..=3 {
        let read = |document: &Value| {
            let text = document.to_string();
            let ours = anabranch_iceberg::TableMetadata::from_json(text.as_bytes()).unwrap();
            let theirs: iceberg::spec::TableMetadata = serde_json::from_str(&text).unwrap();
            let ours: Value = serde_json::from_slice(&ours.to_json()).unwrap();
            (
                normalise(&ours),
                normalise(&serde_json::to_value(&theirs).unwrap()),
            )
        };
        let (ours, theirs) = read(&base(version));
        assert_same_document(&ours, &theirs, &json!("reading"));
    }
}

#[test]
fn every_update_does_the_same() {
    let order = json!({"order-id": 7, "fields": [
        {"transform": "bucket[4]", "source-id": 3, "direction": "desc", "null-order": "nulls-last"}]});
    let new_schema = {
        let mut fields = columns();
        fields
            .as_array_mut()
            .unwrap()
            .push(json!({"id": 12, "name": "new", "required": false, "type": "uuid"}));
        schema(fields)
    };
    for version in 1..=3 {
        let mut cases = vec![
            json!([{"action": "upgrade-format-version", "format-version": version.max(2)},
                   {"action": "set-location", "location": "s3://x"}]),
            json!([{"action": "upgrade-format-version", "format-version": 3},
                   {"action": "set-location", "location": "s3://x/"}]),
            json!([{"action": "add-schema", "schema": new_schema}]),
            json!([{"action": "add-schema", "schema": new_schema}, {"action": "set-current-schema", "schema-id": -1}]),
            json!([{"action": "set-current-schema", "schema-id": 0}]),
            json!([{"action": "add-schema", "schema": schema(columns())},
                   {"action": "set-current-schema", "schema-id": -1}]),
            json!([{"action": "remove-schemas", "schema-ids": [0, 9]}]),
            json!([{"action": "add-spec", "spec": {"spec-id": 9, "fields": [
                {"name": "id", "transform": "identity", "source-id": 1, "field-id": 1000}]}}]),
            json!([{"action": "add-spec", "spec": {"fields": [
                {"name": "day_month", "transform": "month", "source-id": 2}]}},
                {"action": "set-default-spec", "spec-id": -1}, {"action": "set-location", "location": "s3://x"}]),
            json!([{"action": "set-default-spec", "spec-id": 0}]),
            json!([{"action": "set-default-spec", "spec-id": 0},
                   {"action": "remove-partition-specs", "spec-ids": [1, 5]}]),
            json!([{"action": "add-sort-order", "sort-order": order}]),
            json!([{"action": "add-sort-order", "sort-order": order},
                   {"action": "set-default-sort-order", "sort-order-id": -1}]),
            json!([{"action": "set-default-sort-order", "sort-order-id": 0}]),
            json!([{"action": "add-sort-order", "sort-order": {"order-id": 3, "fields": []}},
                   {"action": "set-default-sort-order", "sort-order-id": -1}]),
            json!([add_snapshot(version, 3, 2, 3)]),
            json!([add_snapshot(version, 3, 2, 3), set_ref("main", "branch", 3)]),
            json!([
                add_snapshot(version, 3, 2, 3),
                set_ref("main", "branch", 3),
                add_snapshot(version, 4, 3, 4),
                set_ref("main", "branch", 4)
            ]),
            json!([add_snapshot(version, 3, 1, 3), set_ref("dev", "branch", 3)]),
            json!([set_ref("main", "branch", 1)]),
            json!([set_ref("other", "tag", 1)]),
            json!([{"action": "set-snapshot-ref", "ref-name": "dev", "type": "branch", "snapshot-id": 1,
                    "min-snapshots-to-keep": 3, "max-snapshot-age-ms": 4, "max-ref-age-ms": 5}]),
            json!([{"action": "remove-snapshot-ref", "ref-name": "tagged"},
                   {"action": "set-location", "location": "s3://x"}]),
            json!([{"action": "remove-snapshot-ref", "ref-name": "main"}]),
            json!([{"action": "remove-snapshot-ref", "ref-name": "main"},
                   add_snapshot(version, 3, 0, 3), set_ref("main", "branch", 3)]),
            json!([{"action": "remove-snapshots", "snapshot-ids": [1, 77]}]),
            json!([{"action": "set-location", "location": "s3://bucket/elsewhere//"}]),
            json!([{"action": "set-properties", "updates": {"owner": "me", "new": ""}}]),
            json!([{"action": "remove-properties", "removals": ["owner", "absent"]}]),
            json!([statistics(1), statistics(2), partition_statistics(2)]),
            json!([statistics(1), statistics(1), {"action": "remove-statistics", "snapshot-id": 1},
                   partition_statistics(2), {"action": "remove-partition-statistics", "snapshot-id": 2},
                   {"action": "set-location", "location": "s3://x"}]),
            json!([{"action": "set-properties", "updates": {"write.metadata.previous-versions-max": "1"}}]),
        ];
        if version >= 2 {
            cases.push(json!([{"action": "add-spec", "spec": {"fields": [
                {"name": "id_bucket", "transform": "bucket[8]", "source-id": 1}]}},
                {"action": "set-default-spec", "spec-id": -1}]));
        }
        if version == 3 {
            let key = json!({"key-id": "k", "encrypted-key-metadata": "YWJj", "encrypted-by-id": "other",
                             "properties": {"a": "b"}});
            let add = json!({"action": "add-encryption-key", "encryption-key": key});
            cases.push(json!([add]));
            cases.push(
                json!([add, {"action": "remove-encryption-key", "key-id": "k"},
                              {"action": "set-location", "location": "s3://x"}]),
            );
        }
        for updates in cases {
            assert_same_success(&base(version), &updates);
        }
    }
}

#[test]
fn both_refuse_the_same_updates() {
    for version in 2..=3 {
        let cases = [
            json!([{"action": "upgrade-format-version", "format-version": 1}]),
            json!([{"action": "upgrade-format-version", "format-version": 9}]),
            json!([{"action": "unknown-update"}]),
            json!([{"action": "set-current-schema", "schema-id": 9}]),
            json!([{"action": "set-current-schema", "schema-id": -1}]),
            json!([{"action": "remove-schemas", "schema-ids": [1]}]),
            json!([{"action": "add-spec", "spec": {"fields": [
                {"name": "p", "transform": "identity", "source-id": 99}]}}]),
            json!([{"action": "add-spec", "spec": {"fields": [
                {"name": "p", "transform": "hour", "source-id": 2}]}}]),
            json!([{"action": "add-spec", "spec": {"fields": [
                {"name": "p", "transform": "identity", "source-id": 4}]}}]),
            json!([{"action": "add-spec", "spec": {"fields": [
                {"name": "name", "transform": "identity", "source-id": 1}]}}]),
            json!([{"action": "set-default-spec", "spec-id": 9}]),
            json!([{"action": "set-default-spec", "spec-id": -1}]),
            json!([{"action": "remove-partition-specs", "spec-ids": [1]}]),
            json!([{"action": "add-sort-order", "sort-order": {"order-id": 3, "fields": [
                {"transform": "identity", "source-id": 99, "direction": "asc", "null-order": "nulls-first"}]}}]),
            json!([{"action": "set-default-sort-order", "sort-order-id": 9}]),
            json!([{"action": "set-default-sort-order", "sort-order-id": -1}]),
            json!([add_snapshot(version, 2, 1, 3)]),
            json!([add_snapshot(version, 3, 2, 2)]),
            json!([set_ref("main", "branch", 9)]),
            json!([{"action": "set-properties", "updates": {"current-snapshot-id": "1"}}]),
            json!([{"action": "set-properties", "updates": {"uuid": "1"}}]),
        ];
        for updates in cases {
            assert_both_refuse(&base(version), &updates);
        }
        let mut narrow = columns();
        narrow.as_array_mut().unwrap().remove(1);
        let drops_partition_column = json!([
            {"action": "add-schema", "schema": schema(narrow)}, {"action": "set-current-schema", "schema-id": -1}]);
        assert_both_refuse(&base(version), &drops_partition_column);
    }
    let mut behind = add_snapshot(3, 3, 2, 3);
    behind["snapshot"]["first-row-id"] = json!(19);
    assert_both_refuse(&base(3), &json!([behind]));
    let mut without = add_snapshot(3, 3, 2, 3);
    without["snapshot"]
        .as_object_mut()
        .unwrap()
        .remove("first-row-id");
    assert_both_refuse(&base(3), &json!([without]));
    let unsequential = json!([{"action": "add-spec", "spec": {"fields": [
        {"name": "p", "transform": "identity", "source-id": 1, "field-id": 1007}]}}]);
    assert_both_refuse(&base(1), &unsequential);
}

#[test]
fn both_judge_requirements_alike() {
    use iceberg::TableRequirement as Theirs;
    let uuid = "9c12d441-03fe-4693-9a96-a0705ddf69c1";
    let requirements = [
        json!({"type": "assert-create"}),
        json!({"type": "assert-table-uuid", "uuid": uuid}),
        json!({"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000001"}),
        json!({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 2}),
        json!({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1}),
        json!({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": null}),
        json!({"type": "assert-ref-snapshot-id", "ref": "new", "snapshot-id": null}),
        json!({"type": "assert-ref-snapshot-id", "ref": "new", "snapshot-id": 1}),
        json!({"type": "assert-last-assigned-field-id", "last-assigned-field-id": 11}),
        json!({"type": "assert-last-assigned-field-id", "last-assigned-field-id": 10}),
        json!({"type": "assert-current-schema-id", "current-schema-id": 1}),
        json!({"type": "assert-current-schema-id", "current-schema-id": 0}),
        json!({"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000}),
        json!({"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999}),
        json!({"type": "assert-default-spec-id", "default-spec-id": 1}),
        json!({"type": "assert-default-spec-id", "default-spec-id": 0}),
        json!({"type": "assert-default-sort-order-id", "default-sort-order-id": 1}),
        json!({"type": "assert-default-sort-order-id", "default-sort-order-id": 0}),
    ];
    let text = base(2).to_string();
    let our_table = anabranch_iceberg::TableMetadata::from_json(text.as_bytes()).unwrap();
    let their_table: iceberg::spec::TableMetadata = serde_json::from_str(&text).unwrap();
    for requirement in requirements {
        let ours: anabranch_iceberg::TableRequirement =
            serde_json::from_value(requirement.clone()).unwrap();
        let theirs: Theirs = serde_json::from_value(requirement.clone()).unwrap();
        let (our_result, their_result) = (
            ours.check(Some(&our_table)),
            theirs.check(Some(&their_table)),
        );
        assert_eq!(
            our_result.is_ok(),
            their_result.is_ok(),
            "{requirement}: {our_result:?} {their_result:?}"
        );
        assert_eq!(
            serde_json::to_value(&ours).unwrap(),
            serde_json::to_value(&theirs).unwrap()
        );
        // A table that isn't there: they refuse a reference that must not exist, too, which holds of no table.
        if requirement["snapshot-id"].is_null() && requirement.get("ref").is_some() {
            continue;
        }
        assert_eq!(
            ours.check(None).is_ok(),
            theirs.check(None).is_ok(),
            "{requirement} of no table"
        );
    }
}

#[test]
fn both_make_the_same_new_table() {
    use iceberg::spec::{FormatVersion, TableMetadataBuilder};
    let fields = json!([
        {"id": 50, "name": "a", "required": true, "type": {"type": "struct", "fields": [
            {"id": 60, "name": "deep", "required": true, "type": "string"}]}},
        {"id": 70, "name": "b", "required": false, "type": {"type": "list", "element-id": 71,
            "element-required": true, "element": {"type": "map", "key-id": 72, "key": "string", "value-id": 73,
            "value-required": false, "value": {"type": "struct", "fields": [
                {"id": 74, "name": "c", "required": false, "type": "int"}]}}}},
        {"id": 80, "name": "ts", "required": true, "type": "timestamptz"}
    ]);
    let schema = json!({"type": "struct", "schema-id": 3, "identifier-field-ids": [60, 80], "fields": fields});
    let spec = json!({"fields": [
        {"name": "ts_day", "transform": "day", "source-id": 80},
        {"name": "deep_b", "transform": "bucket[3]", "source-id": 60}]});
    let orders = [
        json!({"order-id": 0, "fields": []}),
        json!({"order-id": 5, "fields": [
            {"transform": "identity", "source-id": 80, "direction": "desc", "null-order": "nulls-last"}]}),
    ];
    let versions = [
        (1, FormatVersion::V1),
        (2, FormatVersion::V2),
        (3, FormatVersion::V3),
    ];
    for (version, their_version) in versions {
        for order in &orders {
            let creation = anabranch_iceberg::CreateTable {
                uuid: uuid::Uuid::from_u128(5),
                location: "s3://bucket/new/".to_string(),
                schema: serde_json::from_value(schema.clone()).unwrap(),
                partition_spec: Some(serde_json::from_value(spec.clone()).unwrap()),
                write_order: Some(serde_json::from_value(order.clone()).unwrap()),
                properties: [("p".to_string(), "q".to_string())].into(),
                format_version: Some(version),
            };
            let context = anabranch_iceberg::UpdateContext {
                now_ms: NOW_MS,
                previous_metadata_location: None,
            };
            let ours = anabranch_iceberg::TableMetadata::create(creation, &context).unwrap();
            let theirs = TableMetadataBuilder::new(
                serde_json::from_value(schema.clone()).unwrap(),
                serde_json::from_value::<iceberg::spec::UnboundPartitionSpec>(spec.clone())
                    .unwrap(),
                serde_json::from_value(order.clone()).unwrap(),
                "s3://bucket/new/".to_string(),
                their_version,
                [("p".to_string(), "q".to_string())].into(),
            )
            .unwrap()
            .assign_uuid(uuid::Uuid::from_u128(5))
            .build()
            .unwrap()
            .metadata;
            let ours: Value = serde_json::from_slice(&ours.to_json()).unwrap();
            let theirs = serde_json::to_value(&theirs).unwrap();
            assert_same_document(&normalise(&ours), &normalise(&theirs), &json!("create"));
        }
    }
}

#[test]
fn where_the_two_differ_it_is_on_purpose() {
    let nothing = json!([{"action": "set-properties", "updates": {"keep": "1"}}]);
    assert_eq!(ours(&base(2), &nothing).unwrap(), normalise(&base(2)));
    let log = theirs(&base(2), &nothing).unwrap()["metadata-log"].clone();
    assert_eq!(log[1]["metadata-file"], json!(PREVIOUS_LOCATION));

    let imported = json!([add_snapshot(2, 3, 0, 1)]);
    assert_eq!(
        ours(&base(2), &imported).unwrap()["last-sequence-number"],
        json!(2)
    );
    assert!(
        theirs(&base(2), &imported).is_err(),
        "it can't read what it built"
    );

    let mut ahead = add_snapshot(3, 3, 2, 3);
    ahead["snapshot"]["first-row-id"] = json!(100);
    let ahead = json!([ahead]);
    assert_eq!(ours(&base(3), &ahead).unwrap()["next-row-id"], json!(110));
    assert_eq!(theirs(&base(3), &ahead).unwrap()["next-row-id"], json!(30));

    let removed = json!([statistics(1), {"action": "remove-snapshots", "snapshot-ids": [1]}]);
    assert_eq!(ours(&base(2), &removed).unwrap().get("statistics"), None);
    assert!(
        theirs(&base(2), &removed)
            .unwrap()
            .get("statistics")
            .is_some()
    );

    let current_removed = json!([{"action": "remove-snapshots", "snapshot-ids": [2]}]);
    assert_eq!(
        ours(&base(2), &current_removed)
            .unwrap()
            .get("current-snapshot-id"),
        None
    );
    assert!(
        theirs(&base(2), &current_removed)
            .unwrap_err()
            .contains(CURRENT_SNAPSHOT_REMOVED)
    );

    let mut late_clock = add_snapshot(2, 3, 2, 3);
    late_clock["snapshot"]["timestamp-ms"] = json!(NOW_MS - 1_000_000);
    let late_clock = json!([late_clock, set_ref("main", "branch", 3)]);
    assert!(ours(&base(2), &late_clock).is_ok() && theirs(&base(2), &late_clock).is_err());

    let accepted_by_them_only = [
        json!([{"action": "assign-uuid", "uuid": "00000000-0000-0000-0000-000000000001"}]),
        json!([{"action": "set-properties", "updates": {"encryption.key-id": "k"}}]),
    ];
    for updates in accepted_by_them_only {
        assert!(
            ours(&base(2), &updates).is_err() && theirs(&base(2), &updates).is_ok(),
            "{updates}"
        );
    }
    let accepted_by_us_only = [
        json!([{"action": "set-properties", "updates": {"format-version": "3"}}]),
        json!([{"action": "add-schema", "schema": schema(json!([
            {"id": 1, "name": "a", "required": false, "type": "interval(day)"}]))}]),
        json!([{"action": "add-spec", "spec": {"fields": [
            {"name": "day", "transform": "month", "source-id": 2}]}}]),
    ];
    for updates in accepted_by_us_only {
        assert!(
            ours(&base(2), &updates).is_ok() && theirs(&base(2), &updates).is_err(),
            "{updates}"
        );
    }
}

/// One update of the kinds that both are meant to treat alike.
fn any_update() -> impl Strategy<Value = Vec<Value>> {
    let id = 1_i64..6;
    let small = -1_i32..4;
    let structure = prop_oneof![
        prop::collection::hash_set(11_i32..15, 0..3).prop_map(|ids| {
            let mut fields = columns();
            for id in ids {
                fields.as_array_mut().unwrap().push(
                    json!({"id": id, "name": format!("f{id}"), "required": false, "type": "date"}));
            }
            json!({"action": "add-schema", "schema": schema(fields)})
        }),
        small.clone().prop_map(|id| json!({"action": "set-current-schema", "schema-id": id})),
        prop::collection::vec(small.clone(), 0..3)
            .prop_map(|ids| json!({"action": "remove-schemas", "schema-ids": ids})),
        (1_i32..4, prop_oneof![Just("bucket[4]"), Just("void")]).prop_map(|(id, transform)| {
            json!({"action": "add-spec", "spec": {"fields": [
                {"name": format!("p_{transform}_{id}"), "transform": transform, "source-id": id}]}})
        }),
        small.clone().prop_map(|id| json!({"action": "set-default-spec", "spec-id": id})),
        prop::collection::vec(small.clone(), 0..3)
            .prop_map(|ids| json!({"action": "remove-partition-specs", "spec-ids": ids})),
        (1_i32..4).prop_map(|id| json!({"action": "add-sort-order", "sort-order": {"order-id": id, "fields": [
            {"transform": "identity", "source-id": id, "direction": "asc", "null-order": "nulls-first"}]}})),
        small.prop_map(|id| json!({"action": "set-default-sort-order", "sort-order-id": id})),
        "[a-c]".prop_map(|name| json!({"action": "set-properties", "updates": {name: "1"}})),
        "[a-c]".prop_map(|name| json!({"action": "remove-properties", "removals": [name]})),
    ];
    // Removing what the same commit adds is among the differences above.
    let snapshots = prop_oneof![
        (id.clone(), 0_i64..4).prop_map(|(number, back)| add_snapshot(
            2,
            number + 2,
            1,
            number + 2 - back
        )),
        id.clone().prop_map(|id| set_ref("dev", "branch", id)),
        id.clone().prop_map(|id| set_ref("t", "tag", id)),
        prop_oneof![Just("main"), Just("dev"), Just("tagged")]
            .prop_map(|name| json!({"action": "remove-snapshot-ref", "ref-name": name})),
        (1_i64..3).prop_map(|id| json!({"action": "remove-snapshots", "snapshot-ids": [id]})),
    ];
    let append = id.prop_map(|number| {
        vec![
            add_snapshot(2, number + 2, 1, number + 2),
            set_ref("main", "branch", number + 2),
        ]
    });
    prop_oneof![
        2 => structure.prop_map(|update| vec![update]),
        1 => snapshots.prop_map(|update| vec![update]),
        1 => append
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_updates_do_the_same(updates in prop::collection::vec(any_update(), 1..5)) {
        // The last update always changes something: see the difference for updates that change nothing.
        let mut updates = updates.concat();
        updates.push(json!({"action": "set-location", "location": "s3://bucket/moved"}));
        assert_same(&base(2), &json!(updates));
    }
}
