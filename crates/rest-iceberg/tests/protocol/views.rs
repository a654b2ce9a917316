//! Views.

use serde_json::{Value, json};

use crate::server::{Server, schema};

const VIEWS: &str = "/v1/lake/namespaces/db/views";
const VIEW: &str = "/v1/lake/namespaces/db/views/v";

fn version(sql: &str) -> Value {
    json!({
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 1_700_000_000_000_i64,
        "summary": {"engine-name": "test"},
        "default-namespace": ["db"],
        "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
    })
}

async fn create(server: &Server, name: &str) -> Value {
    let body = json!({
        "name": name,
        "schema": schema(),
        "view-version": version("SELECT 1"),
        "properties": {"comment": "c"},
    });
    server.post(VIEWS, body).await.expect(200).json()
}

#[tokio::test]
async fn a_view_is_created_shown_replaced_and_dropped() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let created = create(&server, "v").await;
    assert_eq!(created["config"], json!({}));
    assert_eq!(created["metadata"]["properties"], json!({"comment": "c"}));
    let shown = server.get(VIEW).await.expect(200);
    assert_eq!(shown.json(), created);
    server.head(VIEW).await.expect(204).revision();
    let listed = server.get(VIEWS).await.expect(200).json();
    assert_eq!(
        listed["identifiers"],
        json!([{"namespace": ["db"], "name": "v"}])
    );

    let replace = json!({
        "requirements": [{"type": "assert-view-uuid", "uuid": created["metadata"]["view-uuid"]}],
        "updates": [
            {"action": "add-schema", "schema": schema(), "last-column-id": 2},
            {"action": "add-view-version", "view-version": {
                "version-id": 2,
                "schema-id": -1,
                "timestamp-ms": 1_700_000_000_001_i64,
                "summary": {},
                "default-namespace": ["db"],
                "representations": [{"type": "sql", "sql": "SELECT 2", "dialect": "spark"}],
            }},
            {"action": "set-current-view-version", "view-version-id": -1},
        ],
    });
    let replaced = server.post(VIEW, replace).await.expect(200);
    assert_ne!(replaced.revision(), shown.revision());
    assert_eq!(replaced.json()["metadata"]["current-version-id"], 2);
    assert_eq!(server.get(VIEW).await.expect(200).json(), replaced.json());

    server.delete(VIEW).await.expect(204);
    server.head(VIEW).await.expect(404);
    let gone = server.get(VIEW).await;
    gone.refused(404, "NoSuchViewException");
    let gone = server.delete(VIEW).await;
    gone.refused(404, "NoSuchViewException");
    server.audited().await;
}

#[tokio::test]
async fn what_a_view_commit_gets_wrong_is_told_by_its_status() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    create(&server, "v").await;
    let set = json!({"action": "set-properties", "updates": {"a": "1"}});
    let other = json!({"type": "assert-view-uuid", "uuid": "00000000-0000-0000-0000-000000000000"});
    let conflict = json!({"requirements": [other], "updates": [set]});
    let conflict = server.post(VIEW, conflict).await;
    conflict.refused(409, "CommitFailedException");
    let unknown = json!({"updates": [{"action": "make-coffee"}]});
    let unknown = server.post(VIEW, unknown).await;
    unknown.refused(400, "BadRequestException");
    let path = format!("{VIEWS}/none");
    let missing = server.post(&path, json!({"updates": [set]})).await;
    missing.refused(404, "NoSuchViewException");
    server
        .post(VIEW, json!({"updates": [set]}))
        .await
        .expect(200);
    server.audited().await;
}

#[tokio::test]
async fn tables_and_views_share_their_names_and_not_their_routes() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    create(&server, "v").await;
    server.table("db", "t").await;
    let tables = "/v1/lake/namespaces/db/tables";
    let body = json!({"name": "v", "schema": schema()});
    let taken = server.post(tables, body).await;
    taken.refused(409, "AlreadyExistsException");
    let body = json!({
        "name": "t", "schema": schema(), "view-version": version("SELECT 1"), "properties": {},
    });
    let taken = server.post(VIEWS, body).await;
    taken.refused(409, "AlreadyExistsException");
    let no_table = server.get(&format!("{tables}/v")).await;
    no_table.refused(404, "NoSuchTableException");
    let no_view = server.get(&format!("{VIEWS}/t")).await;
    no_view.refused(404, "NoSuchViewException");
    let no_view = server.delete(&format!("{VIEWS}/t")).await;
    no_view.refused(404, "NoSuchViewException");

    let name = |name: &str| json!({"namespace": ["db"], "name": name});
    let rename = json!({"source": name("v"), "destination": name("t")});
    let taken = server.post("/v1/lake/views/rename", rename).await;
    taken.refused(409, "AlreadyExistsException");
    let rename = json!({"source": name("t"), "destination": name("w")});
    let no_view = server.post("/v1/lake/views/rename", rename).await;
    no_view.refused(404, "NoSuchViewException");
    let rename = json!({"source": name("v"), "destination": name("w")});
    server
        .post("/v1/lake/views/rename", rename)
        .await
        .expect(204);
    server.head(&format!("{VIEWS}/w")).await.expect(204);
    server.audited().await;
}

#[tokio::test]
async fn a_view_is_registered_with_its_metadata() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let created = create(&server, "v").await;
    server.delete(VIEW).await.expect(204);
    let path = "/v1/lake/namespaces/db/register-view";
    let body = json!({"name": "v", "metadata-location": created["metadata-location"]});
    let back = server.post(path, body.clone()).await.expect(200);
    assert_eq!(back.json(), created);
    let taken = server.post(path, body.clone()).await;
    taken.refused(409, "AlreadyExistsException");
    let as_table = server.post("/v1/lake/namespaces/db/register", {
        let mut body = body;
        body["name"] = json!("as_table");
        body
    });
    as_table.await.refused(400, "BadRequestException");
    server.audited().await;
}
