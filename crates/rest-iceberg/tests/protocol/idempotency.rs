//! Requests that come again under their key.

use http::Method;
use serde_json::json;

use crate::server::{Server, append, schema};

const TABLES: &str = "/v1/lake/namespaces/db/tables";

#[tokio::test]
async fn a_repeated_request_gets_its_first_answer_and_is_applied_once() {
    let server = Server::start().await;
    let namespace = json!({"namespace": ["db"], "properties": {"a": "1"}});
    let namespaces = "/v1/lake/namespaces";
    for _ in 0..2 {
        let answer = server.post_with_key(namespaces, "k-1", &namespace).await;
        assert_eq!(answer.expect(200).json(), namespace);
    }
    let create = json!({"name": "t", "schema": schema()});
    let first = server
        .post_with_key(TABLES, "k-2", &create)
        .await
        .expect(200);
    let again = server
        .post_with_key(TABLES, "k-2", &create)
        .await
        .expect(200);
    assert_eq!(first.json(), again.json());

    let update = json!({"action": "set-properties", "updates": {"b": "2"}});
    let commit = json!({"requirements": [], "updates": [update]});
    let path = format!("{TABLES}/t");
    let first = server
        .post_with_key(&path, "k-3", &commit)
        .await
        .expect(200);
    let again = server
        .post_with_key(&path, "k-3", &commit)
        .await
        .expect(200);
    assert_eq!(first.json(), again.json());

    let key = [("idempotency-key", "k-4")];
    for _ in 0..2 {
        let dropped = server.send(Method::DELETE, &path, &key, "").await;
        dropped.expect(204);
    }
    // The answer may show a newer state: here the table is gone, and made again by someone else.
    server.table("db", "t").await;
    server
        .send(Method::DELETE, &path, &key, "")
        .await
        .expect(204);
    server.head(&path).await.expect(204);
    server.audited().await;
}

#[tokio::test]
async fn a_key_of_another_request_is_unprocessable() {
    let server = Server::start().await;
    let post = |levels: [&str; 1]| {
        let body = json!({"namespace": levels});
        let server = &server;
        async move {
            server
                .post_with_key("/v1/lake/namespaces", "k", &body)
                .await
        }
    };
    post(["a"]).await.expect(200);
    let other = post(["b"]).await;
    other.refused(422, "UnprocessableEntityException");
    server.head("/v1/lake/namespaces/b").await.expect(404);
    let basic = [
        ("idempotency-key", "k"),
        ("authorization", "Basic YW5uOng="),
    ];
    let body = json!({"namespace": ["a"]}).to_string();
    let other = server
        .send(Method::POST, "/v1/lake/namespaces", &basic, body)
        .await;
    other.refused(422, "UnprocessableEntityException");
    server.audited().await;
}

#[tokio::test]
async fn a_final_refusal_is_repeated_although_it_would_pass_now() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let table = server.table("db", "t").await;
    let path = format!("{TABLES}/t");
    let early = append(&table, 8, Some(7), 2);
    let refused = server.post_with_key(&path, "k", &early).await;
    refused.refused(409, "CommitFailedException");
    server
        .post(&path, append(&table, 7, None, 1))
        .await
        .expect(200);
    let refused = server.post_with_key(&path, "k", &early).await;
    refused.refused(409, "CommitFailedException");
    server.post(&path, early).await.expect(200);
    server.audited().await;
}

#[tokio::test]
async fn a_property_change_and_an_unregister_are_repeated_after_their_object_is_gone() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let path = "/v1/lake/namespaces/db/properties";
    let change = json!({"updates": {"a": "1"}});
    let changed = server.post_with_key(path, "k-1", &change).await.expect(200);
    let table = server.table("db", "t").await;
    let unregister = format!("{TABLES}/t/unregister");
    let last = server.post_with_key(&unregister, "k-2", &json!({})).await;
    assert_eq!(last.expect(200).json()["metadata"], table["metadata"]);
    server.delete("/v1/lake/namespaces/db").await.expect(204);

    let again = server.post_with_key(path, "k-1", &change).await.expect(200);
    assert_eq!(again.json(), changed.json());
    let again = server.post_with_key(&unregister, "k-2", &json!({})).await;
    assert_eq!(again.expect(200).json()["metadata"], table["metadata"]);
    server.audited().await;
}

#[tokio::test]
async fn a_key_that_is_none_is_refused() {
    let server = Server::start().await;
    let body = json!({"namespace": ["a"]});
    let answer = server.post_with_key("/v1/lake/namespaces", "two words", &body);
    answer.await.refused(400, "BadRequestException");
    server.audited().await;
}
