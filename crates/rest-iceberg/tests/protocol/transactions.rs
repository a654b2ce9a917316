//! Commits to several tables at once.

use serde_json::{Value, json};

use crate::server::{Server, append, change};

const COMMIT: &str = "/v1/lake/transactions/commit";

async fn two_tables() -> (Server, Value, Value) {
    let server = Server::start().await;
    server.namespace(&["one"]).await;
    server.namespace(&["two"]).await;
    let left = server.table("one", "t").await;
    let right = server.table("two", "t").await;
    (server, left, right)
}

#[tokio::test]
async fn a_transaction_changes_both_tables_or_none() {
    let (server, left, right) = two_tables().await;
    let both = json!({"table-changes": [
        change("one", "t", append(&left, 7, None, 1)),
        change("two", "t", append(&right, 8, None, 1)),
    ]});
    let applied = server.post(COMMIT, both.clone()).await.expect(204);
    assert_eq!(applied.text, "");
    applied.revision();
    let current = async |namespace: &str| {
        let table = server.load(namespace, "t").await;
        table["metadata"]["current-snapshot-id"].clone()
    };
    assert_eq!(current("one").await, 7);
    assert_eq!(current("two").await, 8);

    let half_stale = json!({"table-changes": [
        change("one", "t", append(&left, 17, Some(7), 2)),
        change("two", "t", append(&right, 18, None, 2)),
    ]});
    let refused = server.post(COMMIT, half_stale).await;
    refused.refused(409, "CommitFailedException");
    assert_eq!(current("one").await, 7);

    server
        .post(
            "/v1/lake/namespaces/one/tables/t",
            append(&left, 9, Some(7), 2),
        )
        .await
        .expect(200);
    // The answer of the first was lost; it comes again, byte by byte.
    server.post(COMMIT, both).await.expect(204);
    assert_eq!(current("one").await, 9);
    assert_eq!(current("two").await, 8);
    server.audited().await;
}

#[tokio::test]
async fn a_change_that_only_states_requirements_takes_part_in_the_check() {
    let (server, left, right) = two_tables().await;
    let watch = |snapshot: Value| {
        let requirement =
            json!({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": snapshot});
        change(
            "two",
            "t",
            json!({"requirements": [requirement], "updates": []}),
        )
    };
    let ok = json!({"table-changes": [
        change("one", "t", append(&left, 7, None, 1)),
        watch(Value::Null),
    ]});
    server.post(COMMIT, ok).await.expect(204);
    let before = server.load("two", "t").await;
    assert_eq!(before, right);
    let stale = json!({"table-changes": [
        change("one", "t", append(&left, 9, Some(7), 2)),
        watch(json!(8)),
    ]});
    let stale = server.post(COMMIT, stale).await;
    stale.refused(409, "CommitFailedException");
    let table = server.load("one", "t").await;
    assert_eq!(table["metadata"]["current-snapshot-id"], 7);
    server.audited().await;
}

#[tokio::test]
async fn a_transaction_that_does_not_fit_is_refused_as_a_whole() {
    let (server, left, right) = two_tables().await;
    let good = change("one", "t", append(&left, 7, None, 1));
    let mut unnamed = append(&right, 8, None, 1);
    let mut unknown = change("two", "t", unnamed.clone());
    unknown["updates"][0]["action"] = json!("make-coffee");
    unnamed["requirements"] = json!([]);
    for (changes, what) in [
        (json!([good, unnamed]), "table-changes[1]"),
        (json!([good, unknown]), "table-changes[1].updates[0]"),
        (json!([good, good]), "twice"),
        (json!([]), "table-changes"),
    ] {
        let answer = server.post(COMMIT, json!({"table-changes": changes})).await;
        let answer = answer.refused(400, "BadRequestException");
        assert!(answer.text.contains(what), "{what}: {}", answer.text);
    }
    let missing = change("two", "none", append(&right, 8, None, 1));
    let answer = server.post(COMMIT, json!({"table-changes": [good, missing]}));
    answer.await.refused(404, "NoSuchTableException");
    assert_eq!(server.load("one", "t").await, left);
    server.audited().await;
}
