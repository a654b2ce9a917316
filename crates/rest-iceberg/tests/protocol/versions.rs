//! Format versions 1 to 3.

use serde_json::json;

use crate::server::{Server, append, schema};

#[tokio::test]
async fn tables_of_every_format_version_are_created_committed_to_and_loaded() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    for version in 1..=3 {
        let name = format!("v{version}");
        let body = json!({
            "name": name,
            "schema": schema(),
            "properties": {"format-version": version.to_string()},
        });
        let tables = "/v1/lake/namespaces/db/tables";
        let table = server.post(tables, body).await.expect(200).json();
        assert_eq!(table["metadata"]["format-version"], version);
        assert_eq!(table["metadata"].get("properties"), Some(&json!({})));
        let mut commit = append(&table, 7, None, 1);
        let snapshot = &mut commit["updates"][0]["snapshot"];
        if version == 1 {
            snapshot
                .as_object_mut()
                .expect("an object")
                .remove("sequence-number");
        }
        if version == 3 {
            snapshot["first-row-id"] = json!(0);
            snapshot["added-rows"] = json!(10);
        }
        snapshot["vendor-note"] = json!({"kept": [1, null]});
        let path = format!("{tables}/{name}");
        server.post(&path, commit.clone()).await.expect(200);
        let metadata = server.load("db", &name).await["metadata"].clone();
        assert_eq!(metadata["format-version"], version);
        let kept = &metadata["snapshots"][0]["vendor-note"];
        assert_eq!(kept, &json!({"kept": [1, null]}), "version {version}");
        if version == 3 {
            assert_eq!(metadata["next-row-id"], 10);
            let mut stale = append(&table, 8, Some(7), 2);
            stale["updates"][0]["snapshot"]["first-row-id"] = json!(0);
            stale["updates"][0]["snapshot"]["added-rows"] = json!(1);
            let stale = server.post(&path, stale).await;
            stale.refused(409, "CommitFailedException");
        }
    }
    let body = json!({
        "name": "v9", "schema": schema(), "properties": {"format-version": "9"},
    });
    let answer = server.post("/v1/lake/namespaces/db/tables", body).await;
    answer.refused(400, "BadRequestException");
    server.audited().await;
}
