//! Commits to one table, and commits that are sent again.

use serde_json::json;

use crate::server::{Server, append};

const TABLE: &str = "/v1/lake/namespaces/db/tables/t";

#[tokio::test]
async fn a_commit_answers_the_new_metadata_and_a_broken_requirement_is_a_conflict() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let table = server.table("db", "t").await;
    let committed = server.post(TABLE, append(&table, 7, None, 1)).await;
    let committed = committed.expect(200);
    let body = committed.json();
    assert_eq!(body["metadata"]["current-snapshot-id"], 7);
    assert_ne!(body["metadata-location"], table["metadata-location"]);
    assert_eq!(body.get("config"), None);
    assert_eq!(server.load("db", "t").await["metadata"], body["metadata"]);

    let stale = server.post(TABLE, append(&table, 8, None, 2)).await;
    stale.refused(409, "CommitFailedException");
    let mut other = append(&table, 8, Some(7), 2);
    other["requirements"][0]["uuid"] = json!("00000000-0000-0000-0000-000000000000");
    let other = server.post(TABLE, other).await;
    other.refused(409, "CommitFailedException");
    server.audited().await;
}

#[tokio::test]
async fn a_stale_sequence_number_is_a_conflict_that_may_be_retried() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let table = server.table("db", "t").await;
    server
        .post(TABLE, append(&table, 7, None, 5))
        .await
        .expect(200);
    let behind = server.post(TABLE, append(&table, 8, Some(7), 5)).await;
    behind.refused(409, "CommitFailedException");
    server.audited().await;
}

#[tokio::test]
async fn a_commit_that_is_sent_again_is_applied_once_also_after_others_came_in_between() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let table = server.table("db", "t").await;
    let first = append(&table, 7, None, 1);
    server.post(TABLE, first.clone()).await.expect(200);
    let again = server.post(TABLE, first.clone()).await.expect(200);
    assert_eq!(again.json()["metadata"]["current-snapshot-id"], 7);

    server
        .post(TABLE, append(&table, 8, Some(7), 2))
        .await
        .expect(200);
    let again = server.post(TABLE, first).await.expect(200);
    let metadata = again.json()["metadata"].clone();
    assert_eq!(metadata["current-snapshot-id"], 8);
    assert_eq!(metadata["snapshots"].as_array().map(Vec::len), Some(2));

    let mut other = append(&table, 7, None, 1);
    other["updates"][0]["snapshot"]["summary"]["operation"] = json!("overwrite");
    let other = server.post(TABLE, other).await;
    other.refused(409, "CommitFailedException");
    server.audited().await;
}

#[tokio::test]
async fn unknown_updates_and_requirements_are_refused_before_anything_happens() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let table = server.table("db", "t").await;
    let known = json!({"action": "set-properties", "updates": {"a": "1"}});
    for (commit, field) in [
        (
            json!({"requirements": [], "updates": [known, {"action": "make-coffee"}]}),
            "updates[1]",
        ),
        (
            json!({"requirements": [{"type": "assert-moon"}], "updates": [known]}),
            "requirements[0]",
        ),
        (json!({"updates": [known]}), "requirements"),
        (json!({"requirements": []}), "updates"),
    ] {
        let answer = server.post(TABLE, commit).await;
        let answer = answer.refused(400, "BadRequestException");
        assert!(answer.text.contains(field), "{}", answer.text);
    }
    assert_eq!(server.load("db", "t").await, table);
    server.audited().await;
}

#[tokio::test]
async fn a_commit_without_requirements_is_applied_to_what_stands() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    server.table("db", "t").await;
    for (key, value) in [("a", "1"), ("b", "2")] {
        let update = json!({"action": "set-properties", "updates": {key: value}});
        let commit = json!({"requirements": [], "updates": [update]});
        server.post(TABLE, commit).await.expect(200);
    }
    let properties = server.load("db", "t").await["metadata"]["properties"].clone();
    assert_eq!(properties, json!({"a": "1", "b": "2"}));
    server.audited().await;
}

#[tokio::test]
async fn a_commit_to_a_missing_table_or_under_another_name_is_refused() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let table = server.table("db", "t").await;
    let missing = "/v1/lake/namespaces/db/tables/none";
    let missing = server.post(missing, append(&table, 7, None, 1)).await;
    missing.refused(404, "NoSuchTableException");
    let mut other = append(&table, 7, None, 1);
    other["identifier"] = json!({"namespace": ["db"], "name": "u"});
    let other = server.post(TABLE, other).await;
    other.refused(400, "BadRequestException");
    server.audited().await;
}
