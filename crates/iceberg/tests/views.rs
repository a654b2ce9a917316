//! Views: creating, changing, and what survives.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use anabranch_iceberg::{
    CreateView, MetadataError, UpdateError, ViewMetadata, ViewRequirement, ViewUpdate, ViewVersion,
    apply_view,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use support::{NOW_MS, context, schema, small_schema};
use uuid::Uuid;

fn version(sql: &str, dialects: &[&str]) -> Value {
    let representations: Vec<Value> = dialects
        .iter()
        .map(|dialect| json!({"type": "sql", "sql": sql, "dialect": dialect}))
        .collect();
    json!({"version-id": 1, "schema-id": 0, "timestamp-ms": NOW_MS, "summary": {"engine": "test"},
           "representations": representations, "default-namespace": ["a", "b"]})
}

fn create(version: Value) -> Result<ViewMetadata, UpdateError> {
    let version: ViewVersion = serde_json::from_value(version).unwrap();
    let view = CreateView {
        uuid: Uuid::from_u128(3),
        location: "s3://bucket/view".to_string(),
        schema: small_schema(),
        version,
        properties: BTreeMap::new(),
    };
    ViewMetadata::create(view, &context())
}

fn view() -> ViewMetadata {
    create(version("select 1", &["spark"])).unwrap()
}

fn commit(base: &ViewMetadata, updates: Value) -> Result<ViewMetadata, UpdateError> {
    let updates: Vec<ViewUpdate> = serde_json::from_value(updates).unwrap();
    let after = apply_view(base, &updates, &context())?;
    assert_eq!(ViewMetadata::from_json(&after.to_json()).unwrap(), after);
    Ok(after)
}

fn replace(version: Value) -> Value {
    json!([{"action": "add-view-version", "view-version": version},
           {"action": "set-current-view-version", "view-version-id": -1}])
}

#[track_caller]
fn assert_invalid(result: Result<ViewMetadata, UpdateError>, part: &str) {
    match result {
        Err(UpdateError::Invalid { message }) => assert!(message.contains(part), "{message}"),
        other => panic!("expected an invalid update that names '{part}', got {other:?}"),
    }
}

fn version_ids(view: &ViewMetadata) -> Vec<i32> {
    view.versions()
        .iter()
        .map(|version| version.version_id)
        .collect()
}

#[test]
fn a_new_view_has_one_version_one_schema_and_one_log_entry() {
    let mut first = version("select 1", &["spark", "trino"]);
    first["version-id"] = json!(44);
    first["schema-id"] = json!(7);
    let view = create(first).unwrap();
    assert_eq!(
        (view.current_version_id(), view.schemas().len(), view.uuid()),
        (1, 1, Uuid::from_u128(3))
    );
    assert_eq!(view.current_version().unwrap().schema_id, 0);
    let log: Vec<(i32, i64)> = view
        .version_log()
        .iter()
        .map(|entry| (entry.version_id, entry.timestamp_ms))
        .collect();
    assert_eq!(log, [(1, NOW_MS)]);
    assert_eq!(ViewMetadata::from_json(&view.to_json()).unwrap(), view);
}

#[test]
fn a_document_of_another_writer_survives_a_commit() {
    let mut document: Value = serde_json::from_slice(&view().to_json()).unwrap();
    document["x-top"] = json!({"a": [1.5, 18446744073709551615_u64]});
    document["versions"][0]["x-version"] = json!(true);
    document["versions"][0]["representations"][0]["x-representation"] = json!("r");
    let representations = document["versions"][0]["representations"]
        .as_array_mut()
        .unwrap();
    representations.push(json!({"type": "substrait", "plan": "AAAA"}));
    document["version-log"][0]["x-log"] = json!(1);
    document["schemas"][0]["fields"][1]["type"] = json!("interval(day)");
    let loaded = ViewMetadata::from_json(document.to_string().as_bytes()).unwrap();
    let after = commit(
        &loaded,
        json!([{"action": "set-properties", "updates": {"a": "b"}}]),
    )
    .unwrap();
    document["properties"] = json!({"a": "b"});
    assert_eq!(
        serde_json::from_slice::<Value>(&after.to_json()).unwrap(),
        document
    );
}

#[test]
fn documents_that_are_no_views_are_refused() {
    let document: Value = serde_json::from_slice(&view().to_json()).unwrap();
    let load = |name: &str, value: Value| {
        let mut document = document.clone();
        document[name] = value;
        ViewMetadata::from_json(document.to_string().as_bytes())
    };
    assert!(matches!(
        load("current-version-id", json!(5)),
        Err(MetadataError::Inconsistent { .. })
    ));
    assert!(matches!(
        load("format-version", json!(2)),
        Err(MetadataError::UnsupportedFormatVersion { .. })
    ));
    assert!(matches!(
        load("versions", json!({})),
        Err(MetadataError::Malformed { .. })
    ));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(ViewMetadata::from_json(deep.as_bytes()).is_err());
}

#[test]
fn a_replaced_view_has_a_second_version_and_an_equal_one_is_found_again() {
    let second = commit(&view(), replace(version("select 2", &["spark"]))).unwrap();
    assert_eq!(
        (second.current_version_id(), version_ids(&second)),
        (2, vec![1, 2])
    );
    assert_eq!(second.version_log().len(), 2);
    let mut first_again = version("select 1", &["spark"]);
    first_again["timestamp-ms"] = json!(5);
    let back = commit(&second, replace(first_again)).unwrap();
    assert_eq!(
        (back.current_version_id(), version_ids(&back)),
        (1, vec![1, 2])
    );
    let last = back.version_log().last().unwrap();
    assert_eq!(
        (last.version_id, last.timestamp_ms, back.version_log().len()),
        (1, NOW_MS, 3)
    );
    assert_eq!(
        commit(&back, replace(version("select 1", &["spark"]))).unwrap(),
        back
    );
}

#[test]
fn a_version_may_bring_its_schema_along() {
    let wider = schema(
        json!({"type": "struct", "fields": [{"id": 1, "name": "v", "required": false, "type": "variant"}]}),
    );
    let mut next = version("select v", &["spark"]);
    next["schema-id"] = json!(-1);
    let mut changes = replace(next);
    changes
        .as_array_mut()
        .unwrap()
        .insert(0, json!({"action": "add-schema", "schema": wider}));
    let after = commit(&view(), changes).unwrap();
    assert_eq!(after.current_version().unwrap().schema_id, 1);
    let mut unknown = version("select 3", &["spark"]);
    unknown["schema-id"] = json!(8);
    assert_invalid(commit(&view(), replace(unknown.clone())), "no schema 8");
    unknown["schema-id"] = json!(-1);
    assert_invalid(commit(&view(), replace(unknown)), "-1");
}

#[test]
fn one_dialect_has_one_definition() {
    assert_invalid(
        create(version("select 1", &["spark", "SPARK"])),
        "dialect 'spark'",
    );
    assert_invalid(
        commit(&view(), replace(version("select 1", &["spark", "spark"]))),
        "dialect 'spark'",
    );
}

#[test]
fn a_dialect_is_dropped_only_where_that_is_allowed() {
    let both = create(version("select 1", &["spark", "trino"])).unwrap();
    assert_invalid(
        commit(&both, replace(version("select 2", &["Spark"]))),
        "dialect 'trino'",
    );
    let allow =
        json!([{"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "true"}}]);
    let allowed = commit(&both, allow).unwrap();
    assert!(commit(&allowed, replace(version("select 2", &["Spark"]))).is_ok());
}

#[test]
fn old_versions_and_the_log_before_them_expire() {
    let bound =
        json!([{"action": "set-properties", "updates": {"version.history.num-entries": "2"}}]);
    let mut view = commit(&view(), bound).unwrap();
    for round in 2..6 {
        view = commit(
            &view,
            replace(version(&format!("select {round}"), &["spark"])),
        )
        .unwrap();
    }
    assert_eq!(version_ids(&view), [4, 5]);
    assert_eq!(
        view.version_log()
            .iter()
            .map(|entry| entry.version_id)
            .collect::<Vec<_>>(),
        [4, 5]
    );
    let zero =
        json!([{"action": "set-properties", "updates": {"version.history.num-entries": "0"}}]);
    assert_invalid(commit(&view, zero), "above 0");
}

#[test]
fn by_default_ten_versions_are_kept() {
    let mut view = view();
    for round in 2..15 {
        view = commit(
            &view,
            replace(version(&format!("select {round}"), &["spark"])),
        )
        .unwrap();
    }
    assert_eq!(version_ids(&view), (5..=14).collect::<Vec<i32>>());
}

#[test]
fn the_current_version_is_kept_however_old_it_is() {
    let mut changes = Vec::new();
    for round in 2..14 {
        changes.push(json!({"action": "add-view-version",
            "view-version": version(&format!("select {round}"), &["spark"])}));
    }
    let after = commit(&view(), json!(changes)).unwrap();
    assert_eq!(
        (after.current_version_id(), after.versions().len()),
        (1, 12)
    );
    assert!(version_ids(&after).contains(&1));
}

#[test]
fn identity_and_format_stay() {
    let base = view();
    let same = json!([{"action": "assign-uuid", "uuid": base.uuid()},
        {"action": "upgrade-format-version", "format-version": 1}]);
    assert_eq!(commit(&base, same).unwrap(), base);
    assert_invalid(
        commit(
            &base,
            json!([{"action": "assign-uuid", "uuid": Uuid::from_u128(8)}]),
        ),
        "uuid",
    );
    let newer = json!([{"action": "upgrade-format-version", "format-version": 2}]);
    assert_invalid(commit(&base, newer), "format-version 2");
    assert_invalid(
        commit(
            &base,
            json!([{"action": "set-current-view-version", "view-version-id": 9}]),
        ),
        "no version 9",
    );
    assert_invalid(
        commit(
            &base,
            json!([{"action": "set-current-view-version", "view-version-id": -1}]),
        ),
        "-1",
    );
    assert_invalid(
        commit(&base, json!([{"action": "set-location", "location": ""}])),
        "location",
    );
}

#[test]
fn properties_and_location_change() {
    let changes = json!([
        {"action": "set-properties", "updates": {"a": "1", "b": "2"}},
        {"action": "remove-properties", "removals": ["a"]},
        {"action": "set-location", "location": "s3://elsewhere"}
    ]);
    let after = commit(&view(), changes.clone()).unwrap();
    assert_eq!(after.properties().keys().collect::<Vec<_>>(), ["b"]);
    assert_eq!(after.location(), "s3://elsewhere");
    let parsed: Vec<ViewUpdate> = serde_json::from_value(changes.clone()).unwrap();
    assert_eq!(serde_json::to_value(&parsed).unwrap(), changes);
}

#[test]
fn a_view_is_required_to_be_the_same_one() {
    let requirement = |uuid: Uuid| -> ViewRequirement {
        serde_json::from_value(json!({"type": "assert-view-uuid", "uuid": uuid})).unwrap()
    };
    let right = requirement(Uuid::from_u128(3));
    assert_eq!(right.check(Some(&view())), Ok(()));
    assert!(matches!(
        right.check(None),
        Err(UpdateError::NotFound { .. })
    ));
    let wrong = requirement(Uuid::from_u128(4)).check(Some(&view()));
    assert!(matches!(wrong, Err(UpdateError::RequirementFailed { .. })));
    assert_eq!(
        serde_json::to_value(&right).unwrap()["type"],
        json!("assert-view-uuid")
    );
}

#[test]
fn what_is_unknown_or_wrong_is_named() {
    let cases = [
        (json!({"action": "set-mood"}), "set-mood"),
        (
            json!({"action": "add-view-version", "view-version": {"version-id": 1}}),
            "representations",
        ),
        (
            json!({"action": "add-view-version", "view-version": {"representations": [{"type": "sql", "sql": "x"}]}}),
            "dialect",
        ),
        (
            json!({"action": "add-view-version", "view-version": {"representations": [{}]}}),
            "type",
        ),
    ];
    for (value, part) in cases {
        match ViewUpdate::from_json_value(value) {
            Err(UpdateError::Invalid { message }) => assert!(message.contains(part), "{message}"),
            other => panic!("{other:?}"),
        }
    }
    match ViewRequirement::from_json_value(json!({"type": "assert-mood"})) {
        Err(UpdateError::Invalid { message }) => {
            assert!(message.contains("assert-mood"), "{message}")
        }
        other => panic!("{other:?}"),
    }
}
