//! Tables that come and go with their metadata.

use serde_json::{Value, json};

use crate::server::{Server, append};

const REGISTER: &str = "/v1/lake/namespaces/db/register";
const TABLE: &str = "/v1/lake/namespaces/db/tables/t";

fn register(name: &str, table: &Value) -> Value {
    json!({"name": name, "metadata-location": table["metadata-location"]})
}

#[tokio::test]
async fn an_unregistered_table_answers_its_last_metadata_and_comes_back_as_it_was() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let table = server.table("db", "t").await;
    server
        .post(TABLE, append(&table, 7, None, 1))
        .await
        .expect(200);
    let current = server.load("db", "t").await;
    let path = format!("{TABLE}/unregister");
    let last = server.post(&path, json!(null)).await.expect(200);
    last.revision();
    assert_eq!(last.json()["metadata"], current["metadata"]);
    assert_eq!(
        last.json()["metadata-location"],
        current["metadata-location"]
    );
    // What is committed after it finds no table.
    let late = server.post(TABLE, append(&table, 8, Some(7), 2)).await;
    late.refused(404, "NoSuchTableException");
    let again = server.post(&path, json!(null)).await;
    again.refused(404, "NoSuchTableException");

    let back = server
        .post(REGISTER, register("t", &current))
        .await
        .expect(200);
    assert_eq!(back.json(), current);
    assert!(back.header("etag").is_some());
    server
        .post(TABLE, append(&table, 8, Some(7), 2))
        .await
        .expect(200);
    server.audited().await;
}

#[tokio::test]
async fn a_name_that_is_taken_is_registered_over_only_if_that_is_said() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let old = server.table("db", "t").await;
    server
        .post(TABLE, append(&old, 7, None, 1))
        .await
        .expect(200);
    let body = register("t", &old);
    let taken = server.post(REGISTER, body.clone()).await;
    taken.refused(409, "AlreadyExistsException");
    let mut over = body;
    over["overwrite"] = json!(true);
    let back = server.post(REGISTER, over).await.expect(200);
    assert_eq!(back.json()["metadata"], old["metadata"]);
    assert_eq!(server.load("db", "t").await, old);
    server.audited().await;
}

#[tokio::test]
async fn what_cannot_be_registered_says_why() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let inside = format!("{}/db/none.metadata.json", server.warehouse());
    for location in ["file:///etc/passwd", inside.as_str(), "nonsense", ""] {
        let body = json!({"name": "t", "metadata-location": location});
        let answer = server.post(REGISTER, body).await;
        answer.refused(400, "BadRequestException");
    }
    let table = server.table("db", "t").await;
    let nowhere = "/v1/lake/namespaces/none/register";
    let answer = server.post(nowhere, register("t", &table)).await;
    answer.refused(404, "NoSuchNamespaceException");
    server.audited().await;
}
