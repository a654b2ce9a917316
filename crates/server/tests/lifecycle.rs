//! A server from its first start to its end, whatever the end is.

mod support;

use reqwest::Method;
use serde_json::{Value, json};
use support::Place;

const FIELD: &str = r#"{"id":1,"name":"km","required":false,"type":"int"}"#;

#[tokio::test]
async fn the_first_start_makes_the_lake_and_prints_what_a_newcomer_needs() {
    let place = Place::new();
    let server = place.serve(&[]);
    let catalogs = server.get("/v1/catalogs").await;
    let folder = place.path().canonicalize().expect("a folder");
    let warehouse = format!("file://{}/anabranch-data/warehouse", folder.display());
    assert_eq!(catalogs["catalogs"][0]["name"], "lake");
    assert_eq!(catalogs["catalogs"][0]["location"], warehouse);
    assert_eq!(server.get("/health/ready").await["status"], "ready");
    assert_eq!(
        server.get("/version").await["version"],
        env!("CARGO_PKG_VERSION")
    );
    let config = server.get("/iceberg/v1/config?warehouse=lake").await;
    assert_eq!(config["overrides"]["prefix"], "lake");
    let url = server.url.clone();
    let printed = server.stop_and_read();
    assert!(printed.contains(&format!("ENDPOINT '{url}/iceberg'")));
    assert!(printed.contains(&format!("uri=\"{url}/iceberg\", warehouse=\"lake\"")));
}

#[test]
fn a_second_server_on_one_embedded_store_is_refused() {
    let place = Place::new();
    let server = place.serve(&[]);
    let second = place.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.status, 2);
    assert!(
        second
            .err
            .lines()
            .last()
            .is_some_and(|line| line.contains("catalog.db"))
    );
    server.stop();
    place.serve(&[]).stop();
}

#[test]
fn the_lake_stays_where_its_first_start_put_it() {
    let place = Place::new();
    let first = format!("file://{}/first", place.path().display());
    let other = format!("file://{}/other", place.path().display());
    place.serve(&["--warehouse", &first]).stop();
    place.serve(&["--warehouse", &first]).stop();
    place.serve(&[]).stop();
    let ended = place.run(&["serve", "--listen", "127.0.0.1:0", "--warehouse", &other]);
    assert_eq!(ended.status, 2);
    let line = ended.err.lines().last().expect("a line");
    assert!(line.contains(&first) && line.contains(&other), "{line}");
}

#[tokio::test]
async fn a_lake_that_was_renamed_does_not_come_back() {
    let place = Place::new();
    let server = place.serve(&[]);
    let renamed = json!({"name": "sea"});
    let answer = server.call(Method::PATCH, "/v1/catalogs/lake", Some(renamed));
    assert_eq!(answer.await.0, 204);
    server.stop();
    let server = place.serve(&[]);
    let catalogs = server.get("/v1/catalogs").await["catalogs"].clone();
    assert_eq!(catalogs.as_array().map(Vec::len), Some(1));
    assert_eq!(catalogs[0]["name"], "sea");
    assert!(server.stop_and_read().contains("anabranch catalog list"));
}

#[tokio::test]
async fn a_stop_answers_who_waits_for_news_and_ends_well() {
    let place = Place::new();
    let mut server = place.serve(&[]);
    let next = server.get("/v1/changes").await["next"].clone();
    let url = format!(
        "{}/v1/changes?wait=30000&after={}",
        server.url,
        next.as_str().expect("a cursor")
    );
    let waiting = tokio::spawn(async move {
        let response = reqwest::get(url).await.expect("an answer");
        response.json::<Value>().await.expect("JSON")
    });
    // The server has taken the call when it counts it.
    server
        .until_measured("http_requests_in_flight{route=\"/v1/changes\"} 1")
        .await;
    server.signal("TERM");
    assert_eq!(waiting.await.expect("no panic")["changes"], json!([]));
    assert_eq!(server.wait().code(), Some(0));
}

#[tokio::test]
async fn after_a_crash_the_next_start_needs_no_repair() {
    let place = Place::new();
    let server = place.serve(&[]);
    let namespace = json!({"namespace": ["demo"]});
    server.post("/iceberg/v1/lake/namespaces", namespace).await;
    server.crash();
    let server = place.serve(&[]);
    server.get("/iceberg/v1/lake/namespaces/demo").await;
    server.stop();
    let doctor = place.run(&["doctor"]);
    assert_eq!(
        (doctor.status, doctor.out.as_str()),
        (0, "every invariant holds\n")
    );
}

#[tokio::test]
async fn the_doctor_names_what_is_broken_while_the_server_runs() {
    let place = Place::new();
    let server = place.serve(&[]);
    let namespace = json!({"namespace": ["demo"]});
    server.post("/iceberg/v1/lake/namespaces", namespace).await;
    let field: Value = serde_json::from_str(FIELD).expect("a field");
    let schema = json!({"type": "struct", "schema-id": 0, "fields": [field]});
    let table = json!({"name": "rivers", "schema": schema});
    let created = server
        .post("/iceberg/v1/lake/namespaces/demo/tables", table)
        .await;
    let location = created["metadata-location"].as_str().expect("a location");
    let file = location.strip_prefix("file://").expect("a file");
    assert_eq!(place.run(&["doctor"]).status, 0);

    std::fs::remove_file(file).expect("removed");
    let doctor = place.run(&["doctor"]);
    assert_eq!(doctor.status, 1, "{doctor:?}");
    assert!(
        doctor.out.contains("metadata-document-is-readable"),
        "{doctor:?}"
    );
    let doctor = place.run(&["doctor", "--json"]);
    let report: Value = serde_json::from_str(&doctor.out).expect("JSON");
    assert_eq!(report["violations"].as_array().map(Vec::len), Some(1));
    assert_eq!(place.run(&["doctor", "--skip-files"]).status, 0);
    server.stop();
}

#[tokio::test]
async fn a_backup_of_a_store_in_use_is_a_store() {
    let place = Place::new();
    let server = place.serve(&[]);
    let namespace = json!({"namespace": ["demo"]});
    server.post("/iceberg/v1/lake/namespaces", namespace).await;
    assert_eq!(place.run(&["backup", "copy.db"]).status, 0);
    let again = place.run(&["backup", "copy.db"]);
    assert_eq!(again.status, 2);
    assert!(again.line().contains("copy.db"));
    server.stop();
    let restored = place.serve(&["--store", "sqlite:copy.db"]);
    restored.get("/iceberg/v1/lake/namespaces/demo").await;
    restored.stop();
}

#[tokio::test]
async fn the_log_has_request_ids_and_neither_credentials_nor_tokens() {
    let place = Place::new();
    let server = place.serve(&["--log-format", "json"]);
    let path = "/iceberg/v1/lake%24txn_hush1/namespaces?pageToken=hush2";
    let response = reqwest::Client::new()
        .request(Method::GET, format!("{}{path}", server.url))
        .basic_auth("ann", Some("hush3"))
        .header("anabranch-transaction", "hush4")
        .header("x-request-id", "job-7")
        .send()
        .await
        .expect("an answer");
    assert_eq!(response.headers()["x-request-id"], "job-7");
    server.stop();
    let log = place.log();
    assert!(!log.contains("hush"), "{log}");
    let lines = log.lines().map(serde_json::from_str::<Value>);
    let lines: Vec<Value> = lines.collect::<Result<_, _>>().expect("JSON lines");
    assert!(
        lines
            .iter()
            .any(|line| line["span"]["request_id"] == "job-7")
    );
}
