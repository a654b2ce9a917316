//! Loads: the stored bytes, tags, snapshots, access to files.

use http::Method;
use serde_json::{Value, json};

use crate::server::{Answer, Server, append};

const TABLE: &str = "/v1/lake/namespaces/db/tables/t";

async fn get_with(server: &Server, path: &str, headers: &[(&str, &str)]) -> Answer {
    server.send(Method::GET, path, headers, "").await
}

#[tokio::test]
async fn a_load_shows_the_document_as_it_lies_in_the_store() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let table = server.table("db", "t").await;
    let answer = server.get(TABLE).await.expect(200);
    assert_eq!(answer.json(), table);
    let url = table["metadata-location"].as_str().expect("a location");
    let file = url.strip_prefix("file://").expect("a file");
    let stored = std::fs::read_to_string(file).expect("the document");
    assert!(answer.text.contains(&format!("\"metadata\":{stored},")));
    let length = answer.header("content-length").expect("a length");
    assert_eq!(length, answer.text.len().to_string());
    server.audited().await;
}

#[tokio::test]
async fn a_client_that_holds_what_stands_gets_304_without_a_body() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let created = server
        .post(
            "/v1/lake/namespaces/db/tables",
            json!({"name": "t", "schema": crate::server::schema()}),
        )
        .await
        .expect(200);
    let tag = created.header("etag").expect("a tag").to_owned();

    let held = get_with(&server, TABLE, &[("if-none-match", &tag)]).await;
    let held = held.expect(304);
    assert_eq!(held.text, "");
    assert_eq!(held.header("etag"), Some(tag.as_str()));
    held.revision();
    assert!(
        held.header("cache-control")
            .is_some_and(|value| value.contains("private"))
    );
    assert!(held.header("vary").is_some());

    let committed = server
        .post(TABLE, append(&created.json(), 7, None, 1))
        .await;
    let committed = committed.expect(200);
    let newer = committed.header("etag").expect("a tag").to_owned();
    assert_ne!(newer, tag);
    let stale = get_with(&server, TABLE, &[("if-none-match", &tag)]).await;
    let stale = stale.expect(200);
    assert_eq!(stale.header("etag"), Some(newer.as_str()));
    assert_eq!(stale.revision(), committed.revision());
    let both = format!("{tag}, {newer}");
    let held = get_with(&server, TABLE, &[("if-none-match", &both)]).await;
    held.expect(304);
    server.audited().await;
}

#[tokio::test]
async fn refs_shows_referenced_snapshots_only_and_has_a_tag_of_its_own() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let table = server.table("db", "t").await;
    for (snapshot, parent) in [(1, None), (2, Some(1)), (3, Some(2))] {
        let commit = append(&table, snapshot, parent, snapshot);
        server.post(TABLE, commit).await.expect(200);
    }
    let ids = |answer: &Answer| -> Vec<Value> {
        let body = answer.json();
        let snapshots = body["metadata"]["snapshots"].as_array().expect("snapshots");
        let mut ids: Vec<_> = snapshots
            .iter()
            .map(|one| one["snapshot-id"].clone())
            .collect();
        ids.sort_by_key(Value::as_i64);
        ids
    };
    let plain = server.get(TABLE).await.expect(200);
    let all = server
        .get(&format!("{TABLE}?snapshots=all"))
        .await
        .expect(200);
    let refs = server
        .get(&format!("{TABLE}?snapshots=refs"))
        .await
        .expect(200);
    assert_eq!(json!(ids(&all)), json!([1, 2, 3]));
    assert_eq!(json!(ids(&refs)), json!([3]));
    assert_eq!(plain.header("etag"), all.header("etag"));
    assert_ne!(all.header("etag"), refs.header("etag"));
    let tag = all.header("etag").expect("a tag");
    let path = format!("{TABLE}?snapshots=refs");
    let other = get_with(&server, &path, &[("if-none-match", tag)]).await;
    other.expect(200);
    let odd = server.get(&format!("{TABLE}?snapshots=some")).await;
    odd.refused(400, "BadRequestException");
    server.audited().await;
}

#[tokio::test]
async fn credentials_are_given_only_to_who_asks_and_only_if_the_catalog_gives_any() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    server.table("db", "t").await;
    let asks = [("x-iceberg-access-delegation", "vended-credentials")];
    let load = get_with(&server, TABLE, &asks).await.expect(200).json();
    assert_eq!(load.get("storage-credentials"), None);
    let path = format!("{TABLE}/credentials");
    let none = server.get(&path).await.expect(200);
    assert_eq!(none.json(), json!({"storage-credentials": []}));
    none.revision();
    let missing = server
        .get("/v1/lake/namespaces/db/tables/x/credentials")
        .await;
    missing.refused(404, "NoSuchTableException");
    server.audited().await;

    let keys = [
        ("s3.endpoint", "http://127.0.0.1:9000"),
        ("s3.access-key-id", "the-key"),
        ("s3.secret-access-key", "the-secret"),
        ("vend-credentials", "true"),
    ];
    let server = Server::with_properties(&keys).await;
    server.namespace(&["db"]).await;
    server.table("db", "t").await;
    let plain = server.get(TABLE).await.expect(200);
    assert!(!plain.text.contains("the-secret"), "{}", plain.text);
    assert_eq!(
        plain.json()["config"]["s3.endpoint"],
        "http://127.0.0.1:9000"
    );
    let vended = get_with(&server, TABLE, &asks).await.expect(200);
    let given = vended.json()["storage-credentials"].clone();
    assert_eq!(given[0]["config"]["s3.secret-access-key"], "the-secret");
    assert_ne!(plain.header("etag"), vended.header("etag"));
    let path = format!("{TABLE}/credentials");
    let credentials = server.get(&path).await.expect(200);
    assert_eq!(credentials.json()["storage-credentials"], given);
    assert_eq!(credentials.header("cache-control"), Some("no-store"));
    server.audited().await;
}
