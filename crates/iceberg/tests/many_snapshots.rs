//! Tables with many snapshots stay workable.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use anabranch_iceberg::TableMetadata;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use support::*;

const COUNT: i64 = 10_000;

fn big_table() -> TableMetadata {
    let mut document = document(&table(2));
    let snapshots: Vec<Value> = (1..=COUNT).map(|id| snapshot(id, id - 1, id)).collect();
    let log: Vec<Value> = (1..=COUNT)
        .map(|id| json!({"snapshot-id": id, "timestamp-ms": NOW_MS + id}))
        .collect();
    document["snapshots"] = json!(snapshots);
    document["snapshot-log"] = json!(log);
    document["current-snapshot-id"] = json!(COUNT);
    document["last-sequence-number"] = json!(COUNT);
    document["last-updated-ms"] = json!(NOW_MS + COUNT);
    document["refs"] = json!({
        "main": {"type": "branch", "snapshot-id": COUNT}, "tag": {"type": "tag", "snapshot-id": 5}});
    TableMetadata::from_json(document.to_string().as_bytes()).unwrap()
}

/// Far above what it takes even in a debug build on a busy machine, far below what quadratic work would take.
fn within_bound<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    let elapsed = start.elapsed();
    println!("{what}: {elapsed:?}");
    assert!(elapsed < Duration::from_secs(10), "{what} took {elapsed:?}");
    result
}

#[test]
fn ten_thousand_snapshots_load_commit_expire_and_store_in_linear_time() {
    let base = big_table();
    let text = within_bound("store", || base.to_json());
    let loaded = within_bound("load", || TableMetadata::from_json(&text).unwrap());
    assert_eq!(loaded, base);
    let added = json!([
        add(snapshot(COUNT + 1, COUNT, COUNT + 1)),
        set_branch("main", COUNT + 1)
    ]);
    let added = within_bound("commit", || {
        anabranch_iceberg::apply(Some(&loaded), &updates(added), &context()).unwrap()
    });
    assert_eq!(added.snapshots().len(), 10_001);
    let one_by_one: Vec<Value> = (1..=9_000)
        .map(|id| json!({"action": "remove-snapshots", "snapshot-ids": [id]}))
        .collect();
    let one_by_one = updates(json!(one_by_one));
    let expired = within_bound("expire", || {
        anabranch_iceberg::apply(Some(&added), &one_by_one, &context()).unwrap()
    });
    assert_eq!(
        (expired.snapshots().len(), expired.snapshot_log().len()),
        (1_001, 1_001)
    );
    assert_eq!(expired.refs().len(), 1);
    assert_eq!(
        expired.snapshot_by_id(9_500).unwrap().parent_snapshot_id(),
        Some(9_499)
    );
}

#[test]
fn only_referenced_snapshots_are_shown_on_request() {
    let base = big_table();
    let shown = base.with_snapshots_refs_only();
    assert_eq!(
        shown
            .snapshots()
            .map(|kept| kept.snapshot_id())
            .collect::<Vec<_>>(),
        [5, COUNT]
    );
    assert_eq!(shown.refs(), base.refs());
    assert!(shown.snapshot_by_id(6).is_none() && base.snapshot_by_id(6).is_some());
    assert_eq!(TableMetadata::from_json(&shown.to_json()).unwrap(), shown);
}
