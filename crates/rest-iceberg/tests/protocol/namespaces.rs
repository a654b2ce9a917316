//! Namespaces.

use serde_json::json;

use crate::server::Server;

const NAMESPACES: &str = "/v1/lake/namespaces";

#[tokio::test]
async fn a_namespace_is_created_shown_changed_and_dropped() {
    let server = Server::start().await;
    let body = json!({"namespace": ["db"], "properties": {"owner": "ann", "old": "x"}});
    let created = server.post(NAMESPACES, body.clone()).await.expect(200);
    assert_eq!(created.json(), body);
    let after_create = created.revision().to_owned();

    let shown = server.get("/v1/lake/namespaces/db").await.expect(200);
    assert_eq!(shown.json(), body);
    let head = server.head("/v1/lake/namespaces/db").await.expect(204);
    assert_eq!(head.revision(), shown.revision());

    let change = json!({"removals": ["old", "none", "old"], "updates": {"owner": "bob"}});
    let path = "/v1/lake/namespaces/db/properties";
    let changed = server.post(path, change).await.expect(200);
    // What `main` shows is as it was: the properties are the catalog's.
    assert_eq!(changed.revision(), after_create);
    assert_eq!(
        changed.json(),
        json!({"updated": ["owner"], "removed": ["old"], "missing": ["none"]})
    );
    let shown = server.get("/v1/lake/namespaces/db").await.expect(200);
    assert_eq!(shown.json()["properties"], json!({"owner": "bob"}));

    let dropped = server.delete("/v1/lake/namespaces/db").await.expect(204);
    dropped.revision();
    let gone = server.get("/v1/lake/namespaces/db").await;
    gone.refused(404, "NoSuchNamespaceException");
    server.head("/v1/lake/namespaces/db").await.expect(404);
    let gone = server.delete("/v1/lake/namespaces/db").await;
    gone.refused(404, "NoSuchNamespaceException");
    server.audited().await;
}

#[tokio::test]
async fn a_namespace_that_cannot_be_made_or_dropped_says_why() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let post = |body| server.post(NAMESPACES, body);
    let again = post(json!({"namespace": ["db"]})).await;
    again.refused(409, "AlreadyExistsException");
    let empty = post(json!({"namespace": []})).await;
    empty.refused(400, "BadRequestException");
    let orphan = post(json!({"namespace": ["none", "child"]})).await;
    let orphan = orphan.refused(400, "BadRequestException");
    assert!(orphan.text.contains("none does not exist; create it first"));
    let odd = post(json!({"namespace": ["db"], "properties": {"a": 1}})).await;
    odd.refused(400, "BadRequestException");
    server.table("db", "t").await;
    let full = server.delete("/v1/lake/namespaces/db").await;
    full.refused(409, "NamespaceNotEmptyException");
    server.audited().await;
}

#[tokio::test]
async fn a_key_to_be_removed_and_set_at_once_is_unprocessable() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let change = json!({"removals": ["a"], "updates": {"a": "1"}});
    let path = "/v1/lake/namespaces/db/properties";
    let answer = server.post(path, change).await;
    answer.refused(422, "UnprocessableEntityException");
    let path = "/v1/lake/namespaces/none/properties";
    let answer = server.post(path, json!({"updates": {"a": "1"}})).await;
    answer.refused(404, "NoSuchNamespaceException");
    server.audited().await;
}

#[tokio::test]
async fn children_are_listed_with_their_full_path_and_an_empty_parent_is_the_top() {
    let server = Server::start().await;
    for levels in [
        &["a"][..],
        &["b"],
        &["a", "x"],
        &["a", "y"],
        &["a", "x", "1"],
    ] {
        server.namespace(levels).await;
    }
    for (query, namespaces) in [
        ("", json!([["a"], ["b"]])),
        ("?parent=", json!([["a"], ["b"]])),
        ("?parent=a", json!([["a", "x"], ["a", "y"]])),
        ("?parent=a%1Fx", json!([["a", "x", "1"]])),
        ("?parent=b", json!([])),
    ] {
        let listed = server
            .get(&format!("{NAMESPACES}{query}"))
            .await
            .expect(200);
        let expected = json!({"namespaces": namespaces, "next-page-token": null});
        assert_eq!(listed.json(), expected, "{query}");
    }
    let missing = server.get(&format!("{NAMESPACES}?parent=none")).await;
    missing.refused(404, "NoSuchNamespaceException");
    let nested = server
        .get("/v1/lake/namespaces/a%1Fx%1F1")
        .await
        .expect(200);
    assert_eq!(nested.json()["namespace"], json!(["a", "x", "1"]));
    server
        .delete("/v1/lake/namespaces/a%1Fx%1F1")
        .await
        .expect(204);
    server.audited().await;
}

#[tokio::test]
async fn pages_are_given_only_if_a_token_is_there_and_none_is_skipped_or_repeated() {
    let server = Server::start().await;
    for name in ["a", "b", "c", "d", "e"] {
        server.namespace(&[name]).await;
    }
    let everything = server.get(&format!("{NAMESPACES}?pageSize=2")).await;
    let everything = everything.expect(200).json();
    assert_eq!(everything["namespaces"].as_array().map(Vec::len), Some(5));
    assert!(everything["next-page-token"].is_null());

    let mut token = String::new();
    let mut seen = Vec::new();
    loop {
        let path = format!("{NAMESPACES}?pageToken={token}&pageSize=2");
        let page = server.get(&path).await.expect(200).json();
        let names = page["namespaces"].as_array().expect("names").clone();
        seen.extend(names.iter().map(|levels| levels[0].clone()));
        // What is dropped or made behind and before the token moves nothing.
        if seen.len() == 2 {
            server.delete("/v1/lake/namespaces/a").await.expect(204);
            server.namespace(&["aa"]).await;
        }
        match page["next-page-token"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(json!(seen), json!(["a", "b", "c", "d", "e"]));
    server.audited().await;
}
