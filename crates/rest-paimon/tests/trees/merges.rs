//! Merges, and what they are answered.

use http::Method;
use serde_json::json;

use crate::server::{Server, TREES, branch};

/// `features` and `labels` on `main`, and `experiment` with its own `features`.
async fn two_sides() -> Server {
    let server = Server::start().await;
    for table in ["features", "labels"] {
        server.table("main", table).await;
    }
    server.make("BRANCH", "experiment", "main").await;
    server.write("experiment", "features", "experiment").await;
    server
}

#[tokio::test]
async fn a_merge_answers_the_target_and_what_became_of_each_table() {
    let server = two_sides().await;
    server.write("main", "labels", "main").await;
    let before = server.get(&format!("{TREES}/main")).await;
    let dry = json!({"source": branch("experiment"), "dryRun": true});
    let asked = server.merge("main", dry).await.expect(200);
    assert_eq!(asked.reference(), before.reference());
    let tables = json!([{"table": "features", "outcome": "TAKEN"}]);
    assert_eq!(asked.body["result"]["tables"], tables);
    assert_eq!(server.read("main", "features").await, json!(null));

    let body = json!({"source": branch("experiment"), "expectedRevision": before.revision()});
    let merged = server.merge("main", body).await.expect(200);
    assert_ne!(merged.revision(), before.revision());
    let result = &merged.body["result"];
    assert_eq!(result["revision"], merged.revision());
    assert_eq!(result["fastForward"], false);
    assert_eq!(result["tables"], tables);
    assert_eq!(result["base"].as_array().map(Vec::len), Some(1));
    assert_eq!(merged.reference()["name"], "main");
    assert_eq!(server.read("main", "features").await, "experiment");
    assert_eq!(server.read("main", "labels").await, "main");
}

#[tokio::test]
async fn a_conflict_names_its_tables_and_changes_nothing() {
    let server = two_sides().await;
    server.write("main", "features", "main").await;
    let before = server.get(&format!("{TREES}/main")).await;
    let plain = json!({"source": branch("experiment")});
    let refused = server.merge("main", plain).await;
    let further = refused.further(409, json!("TABLE"), json!("training.features"));
    let conflicts = further["conflicts"].as_array().expect("conflicts");
    assert_eq!(conflicts.len(), 1);
    assert_eq!(conflicts[0]["table"], "features");
    for side in ["base", "source", "target"] {
        assert!(conflicts[0][side]["version"].is_object(), "{side}");
    }
    let after = server.get(&format!("{TREES}/main")).await;
    assert_eq!(after.revision(), before.revision());

    let forced = json!({
        "source": branch("experiment"),
        "defaultMergeMode": "NORMAL",
        "tableMergeModes": [{"table": "features", "mergeMode": "FORCE"}],
    });
    let forced = server.merge("main", forced).await.expect(200);
    let tables = json!([{"table": "features", "outcome": "FORCED"}]);
    assert_eq!(forced.body["result"]["tables"], tables);
    assert_eq!(server.read("main", "features").await, "experiment");
}

#[tokio::test]
async fn exactly_the_named_state_of_the_source_is_merged() {
    let server = two_sides().await;
    let then = server.get(&format!("{TREES}/experiment")).await;
    server.write("experiment", "features", "newer").await;
    let mut source = branch("experiment");
    source["revision"] = json!(then.revision());
    let merged = server.merge("main", json!({"source": source})).await;
    merged.expect(200);
    assert_eq!(server.read("main", "features").await, "experiment");
}

#[tokio::test]
async fn a_repeated_merge_is_answered_as_the_first_though_the_source_has_moved() {
    let server = two_sides().await;
    let body = json!({"source": branch("experiment")}).to_string();
    let path = format!("{TREES}/main/merge");
    let key = [("idempotency-key", "merge-1")];
    let merge = || server.send(Method::POST, &path, &key, body.clone());
    let first = merge().await.expect(200);
    server.write("experiment", "features", "newer").await;
    let again = merge().await.expect(200);
    assert_eq!(again.body, first.body);
    assert_eq!(again.revision(), first.revision());
    assert_eq!(server.read("main", "features").await, "experiment");
    let without = server.send(Method::POST, &path, &[], body.clone());
    without.await.expect(200);
    assert_eq!(server.read("main", "features").await, "newer");
}
