//! Documents of other writers, with fields and types that nobody here knows, survive a load, a commit and a reload.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use anabranch_iceberg::{MetadataError, TableMetadata, apply};
use serde_json::{Value, json};
use support::{commit, context, document, snapshot, updates};
use uuid::Uuid;

const V1: &str = include_str!("golden/v1_minimal.json");
const V2: &str = include_str!("golden/v2_other_writer.json");
const V3: &str = include_str!("golden/v3_other_writer.json");

fn load(text: &str) -> TableMetadata {
    TableMetadata::from_json(text.as_bytes()).unwrap()
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Every value of `part` is in `whole` at the same place; `whole` may have more fields.
fn assert_contains(whole: &Value, part: &Value, path: &str) {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            for (name, value) in part {
                let path = format!("{path}.{name}");
                assert_contains(
                    whole.get(name).unwrap_or_else(|| panic!("{path} is lost")),
                    value,
                    &path,
                );
            }
        }
        (Value::Array(whole), Value::Array(part)) => {
            assert_eq!(whole.len(), part.len(), "{path}");
            for (index, (whole, part)) in whole.iter().zip(part).enumerate() {
                assert_contains(whole, part, &format!("{path}[{index}]"));
            }
        }
        (whole, part) => assert_eq!(whole, part, "{path}"),
    }
}

#[test]
fn documents_of_versions_2_and_3_come_out_as_they_went_in() {
    for text in [V2, V3] {
        assert_contains(&document(&load(text)), &value(text), "");
    }
}

#[test]
fn a_commit_changes_what_it_says_and_nothing_else() {
    for text in [V1, V2, V3] {
        let before = load(text);
        let after = commit(
            &before,
            json!([{"action": "set-properties", "updates": {"a": "b"}}]),
        )
        .unwrap();
        let mut expected = document(&before);
        expected["properties"]["a"] = json!("b");
        expected["last-updated-ms"] = json!(context().now_ms);
        let log = expected["metadata-log"].as_array_mut().unwrap();
        log.push(json!({
            "timestamp-ms": before.last_updated_ms(),
            "metadata-file": context().previous_metadata_location
        }));
        assert_eq!(document(&after), expected);
    }
}

#[test]
fn numbers_keep_every_digit() {
    let text = String::from_utf8(load(V1).to_json()).unwrap();
    assert!(text.contains("123456789012345678901234567890"));
    let text = String::from_utf8(load(V2).to_json()).unwrap();
    for number in [
        "18446744073709551615",
        "0.30000000000000004",
        "9223372036854775808",
        "\"write-default\":0.1",
    ] {
        assert!(text.contains(number), "{number}");
    }
    let text = String::from_utf8(load(V3).to_json()).unwrap();
    for number in [
        "9223372036854775807",
        "-9223372036854775808",
        "0.30000000000000004",
    ] {
        assert!(text.contains(number), "{number}");
    }
}

#[test]
fn a_version_1_document_without_lists_is_read_as_if_it_had_them() {
    let metadata = load(V1);
    assert_eq!(metadata.current_schema_id(), 0);
    assert_eq!(metadata.schemas().len(), 1);
    assert_eq!(
        metadata.default_spec().unwrap().fields[1].field_id,
        Some(1001)
    );
    assert_eq!(metadata.last_partition_id(), 1001);
    assert!(metadata.default_sort_order().unwrap().is_unsorted());
    assert_eq!(
        metadata.refs()["main"].snapshot_id,
        3_051_729_675_574_597_004
    );
}

#[test]
fn a_version_1_document_keeps_the_fields_that_old_readers_know() {
    let written = document(&load(V1));
    assert_contains(&written["schema"], &value(V1)["schema"], "schema");
    assert_contains(
        &written["partition-spec"],
        &value(V1)["partition-spec"],
        "partition-spec",
    );
    assert_contains(&written["schemas"][0], &value(V1)["schema"], "schemas[0]");
    assert_contains(&written["snapshots"], &value(V1)["snapshots"], "snapshots");
    for field in ["last-sequence-number", "next-row-id"] {
        assert!(written.get(field).is_none(), "{field}");
    }
}

#[test]
fn an_upgraded_table_has_the_fields_of_its_new_version_and_not_those_of_the_old_one() {
    let upgrade = |to: i32| json!([{"action": "upgrade-format-version", "format-version": to}]);
    let v2 = commit(&load(V1), upgrade(2)).unwrap();
    let written = document(&v2);
    assert_eq!(written["last-sequence-number"], json!(0));
    assert!(written.get("schema").is_none() && written.get("partition-spec").is_none());
    let snapshot = &written["snapshots"][0];
    assert_contains(snapshot, &value(V1)["snapshots"][0], "snapshots[0]");
    assert_eq!(snapshot["sequence-number"], json!(0));
    assert_eq!(snapshot["summary"], json!({"operation": "overwrite"}));
    let written = document(&commit(&v2, upgrade(3)).unwrap());
    assert_eq!(written["next-row-id"], json!(0));
}

#[test]
fn no_current_snapshot_is_minus_one_for_old_readers_and_nothing_for_new_ones() {
    let mut old = value(V2);
    old["current-snapshot-id"] = json!(-1);
    for field in [
        "refs",
        "snapshots",
        "statistics",
        "partition-statistics",
        "snapshot-log",
    ] {
        old.as_object_mut().unwrap().remove(field);
    }
    let metadata = load(&old.to_string());
    assert_eq!(metadata.current_snapshot_id(), None);
    assert!(metadata.refs().is_empty());
    assert_eq!(document(&metadata)["current-snapshot-id"], json!(-1));
    let upgraded = commit(
        &metadata,
        json!([{"action": "upgrade-format-version", "format-version": 3}]),
    )
    .unwrap();
    assert!(document(&upgraded).get("current-snapshot-id").is_none());
}

#[test]
fn a_version_1_document_without_uuid_gets_the_one_that_its_reader_gives() {
    let mut old = value(V1);
    old.as_object_mut().unwrap().remove("table-uuid");
    let text = old.to_string();
    assert_eq!(
        TableMetadata::from_json(text.as_bytes()),
        Err(MetadataError::MissingUuid)
    );
    let uuid = Uuid::from_u128(5);
    let metadata = TableMetadata::from_json_with_uuid(text.as_bytes(), uuid).unwrap();
    assert_eq!(metadata.uuid(), uuid);
    assert_eq!(document(&metadata)["table-uuid"], json!(uuid));
    assert_eq!(
        TableMetadata::from_json_with_uuid(V1.as_bytes(), uuid).unwrap(),
        load(V1)
    );
}

#[test]
fn documents_that_other_readers_would_refuse_are_refused() {
    let broken = |change: &dyn Fn(&mut Value)| {
        let mut document = value(V2);
        change(&mut document);
        TableMetadata::from_json(document.to_string().as_bytes())
    };
    let inconsistent: [&dyn Fn(&mut Value); 7] = [
        &|document| document["current-schema-id"] = json!(9),
        &|document| document["default-spec-id"] = json!(9),
        &|document| document["default-sort-order-id"] = json!(9),
        &|document| document["refs"]["old"]["snapshot-id"] = json!(9),
        &|document| document["current-snapshot-id"] = json!(3_051_729_675_574_597_004_i64),
        &|document| document["schemas"][1]["schema-id"] = json!(0),
        &|document| {
            let twice = document["snapshots"][0].clone();
            document["snapshots"].as_array_mut().unwrap().push(twice);
        },
    ];
    for (index, change) in inconsistent.iter().enumerate() {
        let result = broken(change);
        assert!(
            matches!(result, Err(MetadataError::Inconsistent { .. })),
            "{index}: {result:?}"
        );
    }
    for field in [
        "table-uuid",
        "location",
        "last-sequence-number",
        "schemas",
        "last-partition-id",
    ] {
        let result = broken(&|document| {
            document.as_object_mut().unwrap().remove(field);
        });
        let Err(MetadataError::Malformed { message }) = result else {
            panic!("{field}: {result:?}");
        };
        assert!(message.contains(field), "{message}");
    }
    let newer = broken(&|document| document["format-version"] = json!(4));
    assert_eq!(
        newer,
        Err(MetadataError::UnsupportedFormatVersion {
            found: 4,
            newest: 3
        })
    );
}

#[test]
fn metadata_is_part_of_larger_values_as_well_as_a_document_of_its_own() {
    for text in [V1, V2, V3] {
        let metadata = load(text);
        let whole = serde_json::to_value(&metadata).unwrap();
        assert_eq!(whole, document(&metadata));
        // Inside a value, integers beyond 64 bits are no longer exact; everything else is.
        let again: TableMetadata = serde_json::from_value(whole).unwrap();
        assert_eq!(document(&again), document(&metadata));
    }
}

#[test]
fn a_default_order_of_0_that_is_not_listed_is_the_unsorted_one() {
    let mut unlisted = value(V2);
    unlisted["default-sort-order-id"] = json!(0);
    let metadata = load(&unlisted.to_string());
    assert!(metadata.default_sort_order().unwrap().is_unsorted());
    assert_eq!(metadata.sort_orders().len(), 2);
}

#[test]
fn deep_nesting_is_refused_wherever_it_is_and_never_overflows_the_stack() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let places = [
        V2.replace("\"x-vendor\"", &format!("\"x-deep\": {deep}, \"x-vendor\"")),
        V2.replace(
            "\"x-id\": 18446744073709551615",
            &format!("\"x-id\": {deep}"),
        ),
        V2.replace("\"x-schema\": \"kept\"", &format!("\"x-schema\": {deep}")),
        V2.replace("\"x-statistics\": []", &format!("\"x-statistics\": {deep}")),
        V2.replace("\"x-log\": \"kept\"", &format!("\"x-log\": {deep}")),
        V2.replace("\"interval(day)\"", &deep),
    ];
    for (index, text) in places.iter().enumerate() {
        assert_ne!(text, V2, "{index}");
        assert!(
            TableMetadata::from_json(text.as_bytes()).is_err(),
            "{index}"
        );
    }
}

#[test]
fn a_version_3_table_of_unknown_types_takes_snapshots_and_counts_row_ids() {
    let mut next = snapshot(2, 638_933_773_299_822_130, 2);
    next["first-row-id"] = json!(100);
    next["added-rows"] = json!(11);
    next["x-new"] = json!([1]);
    let changes = json!([support::add(next.clone()), support::set_branch("main", 2)]);
    let after = commit(&load(V3), changes).unwrap();
    assert_eq!(after.next_row_id(), 111);
    let written = document(&after);
    assert_eq!(written["snapshots"][1], next);
    assert_contains(&written["schemas"], &value(V3)["schemas"], "schemas");
    assert_contains(
        &written["encryption-keys"],
        &value(V3)["encryption-keys"],
        "encryption-keys",
    );
}

#[test]
fn updates_that_change_nothing_give_back_the_base() {
    let base = load(V2);
    let nothing = json!([
        {"action": "assign-uuid", "uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1"},
        {"action": "set-properties", "updates": {"commit.retry.num-retries": "1"}},
        {"action": "remove-properties", "removals": ["absent"]},
        {"action": "remove-snapshots", "snapshot-ids": [1]},
        {"action": "remove-snapshot-ref", "ref-name": "absent"},
        {"action": "set-current-schema", "schema-id": 1}
    ]);
    assert_eq!(
        apply(Some(&base), &updates(nothing), &context()).unwrap(),
        base
    );
}
