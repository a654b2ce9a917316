//! Tables: create, list, exists, rename, drop.

use serde_json::json;

use crate::server::{Server, schema};

const TABLES: &str = "/v1/lake/namespaces/db/tables";
const RENAME: &str = "/v1/lake/tables/rename";

#[tokio::test]
async fn a_table_is_created_listed_and_dropped() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let body = json!({
        "name": "t",
        "schema": schema(),
        "partition-spec": {"fields": [
            {"source-id": 1, "transform": "bucket[4]", "name": "id_bucket"},
        ]},
        "write-order": null,
        "stage-create": false,
        "properties": {"owner": "ann"},
    });
    let created = server.post(TABLES, body.clone()).await.expect(200);
    let table = created.json();
    assert_eq!(table["config"], json!({}));
    assert_eq!(table["metadata"]["properties"], json!({"owner": "ann"}));
    let location = table["metadata"]["location"].as_str().expect("a location");
    assert!(location.starts_with(&server.warehouse()), "{location}");
    let metadata_location = table["metadata-location"].as_str().expect("a location");
    assert!(metadata_location.starts_with(location));
    created.revision();

    let again = server.post(TABLES, body).await;
    again.refused(409, "AlreadyExistsException");
    let listed = server.get(TABLES).await.expect(200);
    let identifiers = json!([{"namespace": ["db"], "name": "t"}]);
    assert_eq!(
        listed.json(),
        json!({"identifiers": identifiers, "next-page-token": null})
    );
    let head = server.head(&format!("{TABLES}/t")).await.expect(204);
    assert_eq!(head.revision(), listed.revision());

    server.delete(&format!("{TABLES}/t")).await.expect(204);
    server.head(&format!("{TABLES}/t")).await.expect(404);
    let gone = server.delete(&format!("{TABLES}/t")).await;
    gone.refused(404, "NoSuchTableException");
    let gone = server.get(&format!("{TABLES}/t")).await;
    gone.refused(404, "NoSuchTableException");
    server.audited().await;
}

#[tokio::test]
async fn a_drop_keeps_the_files_unless_a_purge_is_asked_for() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    for (query, purges) in [
        ("", false),
        ("?purgeRequested=false", false),
        ("?purgeRequested=True", true),
    ] {
        let table = server.table("db", "t").await;
        let path = format!("{TABLES}/t{query}");
        server.delete(&path).await.expect(204);
        let url = table["metadata-location"].as_str().expect("a location");
        let file = url.strip_prefix("file://").expect("a file");
        // A purge runs later, once nothing can read the table any more.
        assert!(std::path::Path::new(file).exists(), "{query}");
        let violations = server.catalog.doctor(true).await.expect("an audit");
        assert!(violations.is_empty(), "{violations:?}");
        let register = "/v1/lake/namespaces/db/register";
        let body = json!({"name": "back", "metadata-location": url});
        if !purges {
            server.post(register, body).await.expect(200);
            server.delete(&format!("{TABLES}/back")).await.expect(204);
        }
    }
    server.table("db", "t").await;
    let path = format!("{TABLES}/t?purgeRequested=perhaps");
    let odd = server.delete(&path).await;
    odd.refused(400, "BadRequestException");
    server.head(&format!("{TABLES}/t")).await.expect(204);
    server.audited().await;
}

#[tokio::test]
async fn what_stands_in_a_missing_namespace_is_missing_in_the_words_of_the_call() {
    let server = Server::start().await;
    let tables = "/v1/lake/namespaces/none/tables";
    let body = json!({"name": "t", "schema": schema()});
    let create = server.post(tables, body).await;
    create.refused(404, "NoSuchNamespaceException");
    let list = server.get(tables).await;
    list.refused(404, "NoSuchNamespaceException");
    let kinds = [
        ("tables/t", "NoSuchTableException"),
        ("views/v", "NoSuchViewException"),
    ];
    for (rest, kind) in kinds {
        let path = format!("/v1/lake/namespaces/none/{rest}");
        server.get(&path).await.refused(404, kind);
        server.head(&path).await.expect(404);
        server.delete(&path).await.refused(404, kind);
        let commit = json!({"requirements": [], "updates": []});
        server.post(&path, commit).await.refused(404, kind);
    }
    let path = "/v1/lake/namespaces/none/tables/t";
    for rest in ["credentials", "unregister"] {
        let path = format!("{path}/{rest}");
        let answer = if rest == "unregister" {
            server.post(&path, json!({})).await
        } else {
            server.get(&path).await
        };
        answer.refused(404, "NoSuchTableException");
    }
    let uuid = json!({"action": "assign-uuid", "uuid": "00000000-0000-7000-8000-000000000001"});
    let create = json!({"requirements": [{"type": "assert-create"}], "updates": [uuid]});
    let create = server.post(path, create).await;
    create.refused(404, "NoSuchNamespaceException");
    server.audited().await;
}

#[tokio::test]
async fn a_rename_moves_a_table_also_into_another_namespace() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    server.namespace(&["other"]).await;
    let table = server.table("db", "t").await;
    let name = |namespace: &str, name: &str| json!({"namespace": [namespace], "name": name});
    let rename = |from, to| server.post(RENAME, json!({"source": from, "destination": to}));
    let renamed = rename(name("db", "t"), name("other", "u"))
        .await
        .expect(204);
    renamed.revision();
    server.head(&format!("{TABLES}/t")).await.expect(404);
    assert_eq!(server.load("other", "u").await, table);

    let missing = rename(name("db", "t"), name("db", "x")).await;
    missing.refused(404, "NoSuchTableException");
    let nowhere = rename(name("other", "u"), name("none", "x")).await;
    nowhere.refused(404, "NoSuchNamespaceException");
    server.table("db", "taken").await;
    let taken = rename(name("other", "u"), name("db", "taken")).await;
    taken.refused(409, "AlreadyExistsException");
    let half = server
        .post(RENAME, json!({"source": name("db", "t")}))
        .await;
    half.refused(400, "BadRequestException");
    server.audited().await;
}

#[tokio::test]
async fn pages_of_tables_neither_skip_nor_repeat_while_tables_come_and_go() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    for name in ["b", "c", "d", "e"] {
        server.table("db", name).await;
    }
    let first = server.get(&format!("{TABLES}?pageToken=&pageSize=2")).await;
    let first = first.expect(200).json();
    server.table("db", "a").await;
    server.delete(&format!("{TABLES}/b")).await.expect(204);
    let token = first["next-page-token"].as_str().expect("a token");
    let path = format!("{TABLES}?pageToken={token}&pageSize=100");
    let rest = server.get(&path).await.expect(200).json();
    assert!(rest["next-page-token"].is_null());
    let names: Vec<_> = [&first, &rest]
        .iter()
        .flat_map(|page| page["identifiers"].as_array().expect("identifiers"))
        .map(|identifier| identifier["name"].clone())
        .collect();
    assert_eq!(json!(names), json!(["b", "c", "d", "e"]));
    server.audited().await;
}

#[tokio::test]
async fn metrics_reports_are_taken_and_nonsense_refused() {
    let server = Server::start().await;
    let path = format!("{TABLES}/t/metrics");
    let report = json!({"report-type": "commit-report", "table-name": "t", "metrics": {}});
    server.post(&path, report).await.expect(204);
    let nonsense = server.post(&path, json!({})).await;
    nonsense.refused(400, "BadRequestException");
    server.audited().await;
}

#[tokio::test]
async fn locations_outside_the_warehouse_and_relative_ones_are_refused() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    for location in ["file:///etc/x", "spark-warehouse/t", "s3://bucket/t"] {
        let body = json!({"name": "t", "schema": schema(), "location": location});
        let answer = server.post(TABLES, body).await;
        answer.refused(400, "BadRequestException");
    }
    server.audited().await;
}
