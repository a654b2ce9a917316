//! Tables that are staged first and created by a commit.

use serde_json::{Value, json};

use crate::server::{Server, schema};

const TABLES: &str = "/v1/lake/namespaces/db/tables";
const TABLE: &str = "/v1/lake/namespaces/db/tables/t";

async fn stage(server: &Server) -> Value {
    let body = json!({"name": "t", "schema": schema(), "stage-create": true});
    let staged = server.post(TABLES, body).await.expect(200);
    staged.revision();
    staged.json()
}

/// The updates of a new table in DuckDB's order: the current schema last.
fn create_as_duckdb(staged: &Value) -> Value {
    let metadata = &staged["metadata"];
    json!({
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": metadata["schemas"][0], "last-column-id": 2},
            {"action": "add-spec", "spec": metadata["partition-specs"][0]},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": metadata["location"]},
            {"action": "set-properties", "updates": {"a": "1"}},
            {"action": "set-current-schema", "schema-id": -1},
        ],
    })
}

#[tokio::test]
async fn staging_creates_nothing_and_the_commit_creates_the_table() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let staged = stage(&server).await;
    assert_eq!(staged.get("metadata-location"), None);
    server.head(TABLE).await.expect(404);
    let url = staged["metadata"]["location"].as_str().expect("a location");
    let folder = url.strip_prefix("file://").expect("a folder");
    for name in ["data", "metadata"] {
        assert!(std::path::Path::new(folder).join(name).is_dir(), "{name}");
    }

    let commit = create_as_duckdb(&staged);
    let created = server.post(TABLE, commit.clone()).await.expect(200);
    let metadata = created.json()["metadata"].clone();
    assert_eq!(metadata["table-uuid"], staged["metadata"]["table-uuid"]);
    assert_eq!(metadata["properties"], json!({"a": "1"}));
    assert_eq!(server.load("db", "t").await["metadata"], metadata);
    // Its answer was lost, and it comes again.
    server.post(TABLE, commit).await.expect(200);

    let other = stage_over(&server).await;
    assert_eq!(other, 409);
    server.audited().await;
}

/// Staging under a name that is taken.
async fn stage_over(server: &Server) -> u16 {
    let body = json!({"name": "t", "schema": schema(), "stage-create": true});
    let answer = server.post(TABLES, body).await;
    answer.refused(409, "AlreadyExistsException").status
}

#[tokio::test]
async fn of_two_staged_tables_of_one_name_the_first_commit_wins() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let (one, two) = (stage(&server).await, stage(&server).await);
    server.post(TABLE, create_as_duckdb(&one)).await.expect(200);
    let late = server.post(TABLE, create_as_duckdb(&two)).await;
    late.refused(409, "AlreadyExistsException");
    let table = server.load("db", "t").await;
    assert_eq!(
        table["metadata"]["table-uuid"],
        one["metadata"]["table-uuid"]
    );
    server.audited().await;
}

#[tokio::test]
async fn a_transaction_creates_a_staged_table_with_its_first_snapshot() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let staged = stage(&server).await;
    let mut commit = create_as_duckdb(&staged);
    let append = crate::server::append(&staged, 7, None, 1);
    let updates = commit["updates"].as_array_mut().expect("updates");
    let current_schema = updates.pop().expect("the last");
    updates.extend(append["updates"].as_array().expect("updates").clone());
    updates.push(current_schema);
    let body = json!({"table-changes": [crate::server::change("db", "t", commit)]});
    let path = "/v1/lake/transactions/commit";
    for _ in 0..2 {
        server.post(path, body.clone()).await.expect(204);
        let table = server.load("db", "t").await;
        assert_eq!(table["metadata"]["current-snapshot-id"], 7);
    }
    server.audited().await;
}
