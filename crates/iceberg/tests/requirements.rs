//! Every requirement, held and broken.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use anabranch_iceberg::{TableRequirement, UpdateError};
use serde_json::{Value, json};
use support::{table, table_with_two_snapshots};
use uuid::Uuid;

fn requirement(value: Value) -> TableRequirement {
    serde_json::from_value(value).unwrap()
}

#[test]
fn every_requirement_holds_of_the_table_that_it_describes_and_fails_of_another() {
    let table = table_with_two_snapshots();
    let cases = [
        (
            "assert-table-uuid",
            "uuid",
            json!(table.uuid()),
            json!(Uuid::from_u128(8)),
        ),
        (
            "assert-last-assigned-field-id",
            "last-assigned-field-id",
            json!(3),
            json!(4),
        ),
        (
            "assert-current-schema-id",
            "current-schema-id",
            json!(0),
            json!(1),
        ),
        (
            "assert-last-assigned-partition-id",
            "last-assigned-partition-id",
            json!(999),
            json!(1000),
        ),
        (
            "assert-default-spec-id",
            "default-spec-id",
            json!(0),
            json!(1),
        ),
        (
            "assert-default-sort-order-id",
            "default-sort-order-id",
            json!(0),
            json!(1),
        ),
    ];
    for (name, field, right, wrong) in cases {
        let held = requirement(json!({"type": name, (field): right}));
        assert_eq!(held.check(Some(&table)), Ok(()), "{name}");
        let broken = requirement(json!({"type": name, (field): wrong}));
        let result = broken.check(Some(&table));
        assert!(
            matches!(result, Err(UpdateError::RequirementFailed { .. })),
            "{name}: {result:?}"
        );
        let result = held.check(None);
        assert!(
            matches!(result, Err(UpdateError::NotFound { .. })),
            "{name}: {result:?}"
        );
        assert_eq!(requirement(serde_json::to_value(&held).unwrap()), held);
    }
}

#[test]
fn a_reference_is_required_at_a_snapshot_or_not_at_all() {
    let table = table_with_two_snapshots();
    let check = |name: &str, snapshot_id: Value| {
        let value =
            json!({"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": snapshot_id});
        requirement(value).check(Some(&table))
    };
    assert_eq!(check("main", json!(2)), Ok(()));
    assert_eq!(check("one", json!(1)), Ok(()));
    assert_eq!(check("new", Value::Null), Ok(()));
    for (name, id) in [("main", json!(1)), ("main", Value::Null), ("new", json!(1))] {
        let result = check(name, id);
        assert!(
            matches!(result, Err(UpdateError::RequirementFailed { .. })),
            "{name}: {result:?}"
        );
    }
}

#[test]
fn a_reference_requirement_without_snapshot_means_that_it_must_not_exist() {
    let absent = requirement(json!({"type": "assert-ref-snapshot-id", "ref": "main"}));
    assert_eq!(
        absent,
        TableRequirement::AssertRefSnapshotId {
            ref_name: "main".into(),
            snapshot_id: None
        }
    );
    assert_eq!(absent.check(Some(&table(2))), Ok(()));
    assert_eq!(absent.check(None), Ok(()));
}

#[test]
fn a_table_is_created_once() {
    let create = requirement(json!({"type": "assert-create"}));
    assert_eq!(create.check(None), Ok(()));
    let result = create.check(Some(&table(2)));
    assert!(
        matches!(result, Err(UpdateError::AlreadyExists { .. })),
        "{result:?}"
    );
}

#[test]
fn an_unknown_requirement_or_a_wrong_field_is_named() {
    let cases = [
        (json!({"type": "assert-moon-phase"}), "assert-moon-phase"),
        (json!({"type": "assert-default-spec-id"}), "default-spec-id"),
        (json!({"type": "assert-table-uuid", "uuid": "x"}), "uuid"),
        (json!({}), "type"),
        (json!("x"), "object"),
    ];
    for (value, part) in cases {
        match TableRequirement::from_json_value(value.clone()) {
            Err(UpdateError::Invalid { message }) => assert!(message.contains(part), "{message}"),
            other => panic!("{other:?}"),
        }
        let error = serde_json::from_value::<TableRequirement>(value).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}
