//! Every call, as clients of the protocol make it.

use http::Method;
use serde_json::{Value, json};

use crate::server::{Server, TREES, branch};

#[tokio::test]
async fn a_client_is_told_the_prefix_of_its_warehouse() {
    let server = Server::start().await;
    let config = json!({"defaults": {}, "overrides": {"prefix": "lake"}});
    for query in [
        "",
        "?warehouse=",
        "?warehouse=lake",
        "?warehouse=default.lake",
        // As the Python client sends it: encoded twice.
        "?warehouse=default%252Elake",
    ] {
        let told = server.get(&format!("/paimon/v1/config{query}")).await;
        assert_eq!(told.expect(200).body, config, "{query}");
    }
    let missing = server.get("/paimon/v1/config?warehouse=nowhere").await;
    missing.refused(404, Value::Null, Value::Null);
    let odd = server.get("/paimon/v1/config?warehouse=a/b").await;
    odd.refused(400, Value::Null, Value::Null);
}

#[tokio::test]
async fn a_reference_is_created_shown_protected_and_deleted() {
    let server = Server::start().await;
    let main = server.get(&format!("{TREES}/main")).await.expect(200);
    let revision = main.reference()["revision"].clone();
    let exact = json!({"type": "BRANCH", "name": "main", "revision": revision, "protected": true});
    assert_eq!(main.body, json!({"reference": exact}));

    let body = json!({"name": "experiment", "type": "BRANCH", "source": branch("main")});
    let basic = [("authorization", "Basic YW5uOng=")];
    let made = server.send(Method::POST, TREES, &basic, body.to_string());
    let made = made.await.expect(200);
    let reference = made.reference();
    assert_eq!(reference["createdBy"], "ann");
    assert!(reference["createdAt"].is_i64());
    assert_eq!(reference["protected"], false);
    let shown = server.get(&format!("{TREES}/experiment")).await.expect(200);
    assert_eq!(shown.body, made.body);
    let native = server
        .get("/v1/catalogs/lake/databases/training/trees/experiment")
        .await;
    assert_eq!(native.revision(), made.revision());
    assert_eq!(native.body, made.body);

    let path = format!("{TREES}/experiment");
    let protect = |protected: bool| {
        let body = json!({"protected": protected}).to_string();
        server.send(Method::PATCH, &path, &[], body)
    };
    let protected = protect(true).await.expect(200);
    assert_eq!(protected.reference()["protected"], true);
    let refused = server.delete(&path, "{}").await;
    refused.refused(409, json!("BRANCH"), json!("experiment"));
    protect(false).await.expect(200);
    let expected = json!({"type": "BRANCH", "expectedRevision": made.revision()});
    let deleted = server.delete(&path, &expected.to_string()).await;
    assert_eq!(deleted.expect(200).body, made.body);
    let gone = server.get(&path).await;
    gone.refused_with(
        404,
        json!("BRANCH"),
        json!("experiment"),
        json!({"missing": "target"}),
    );
}

#[tokio::test]
async fn a_deletion_needs_no_body_and_takes_an_empty_object() {
    let server = Server::start().await;
    for body in ["", "{}", r#"{"type":null}"#, r#"{"type":"TAG"}"#] {
        server.make("TAG", "v1", "main").await;
        let deleted = server.delete(&format!("{TREES}/v1"), body).await;
        assert_eq!(deleted.expect(200).reference()["name"], "v1", "{body}");
    }
    let nonsense = server.delete(&format!("{TREES}/v1"), "[]").await;
    nonsense.refused(400, Value::Null, Value::Null);
}

#[tokio::test]
async fn pages_hold_every_reference_once_in_order_and_filters_apply() {
    let server = Server::start().await;
    for name in ["a", "b", "zz"] {
        server.make("BRANCH", name, "main").await;
    }
    for name in ["m", "n", "1"] {
        server.make("TAG", name, "main").await;
    }
    let everything = ["1", "a", "b", "m", "main", "n", "zz"];
    for (filter, wanted) in [
        ("", &everything[..]),
        ("&type=", &everything),
        ("&type=branch", &["a", "b", "main", "zz"]),
        ("&type=tag", &["1", "m", "n"]),
    ] {
        for size in ["0", "1", "2", "3", "100", "5000000000"] {
            let mut names = Vec::new();
            let mut token = String::new();
            loop {
                let path = format!("{TREES}?maxResults={size}&pageToken={token}{filter}");
                let page = server.get(&path).await.expect(200).body;
                let references = page["references"].as_array().expect("a list");
                names.extend(references.iter().map(|one| one["name"].clone()));
                match page.get("nextPageToken") {
                    Some(next) => token = next.as_str().expect("a token").to_owned(),
                    None => break,
                }
            }
            assert_eq!(json!(names), json!(wanted), "{filter} {size}");
        }
    }
    for odd in [
        "type=BRANCH",
        "maxResults=-1",
        "maxResults=x",
        "pageToken=x",
    ] {
        let refused = server.get(&format!("{TREES}?{odd}")).await;
        refused.refused(400, Value::Null, Value::Null);
    }
}

#[tokio::test]
async fn names_in_paths_are_form_decoded_once() {
    let server = Server::start().await;
    let body = json!({"namespace": ["my db+1%"]});
    server
        .post("/iceberg/v1/lake/namespaces", body)
        .await
        .expect(200);
    for database in ["my+db%2B1%25", "my%20db%2B1%25"] {
        let trees = format!("/paimon/v1/lake/databases/{database}/trees");
        server.get(&format!("{trees}/main")).await.expect(200);
    }
    let trees = "/paimon/v1/default.lake/databases/my%2Bdb/trees";
    let missing = server.get(trees).await;
    missing.refused(404, json!("DATABASE"), json!("my+db"));
}

#[tokio::test]
async fn a_repeated_request_is_answered_as_the_first_one_was() {
    let server = Server::start().await;
    server.table("main", "features").await;
    let body = json!({"name": "x", "type": "BRANCH", "source": branch("main")});
    let key = [("idempotency-key", "make-x")];
    let make = || server.send(Method::POST, TREES, &key, body.to_string());
    let first = make().await.expect(200);
    server.write("main", "features", "later").await;
    let again = make().await.expect(200);
    assert_eq!(again.body, first.body);
    assert_eq!(again.revision(), first.revision());
    let other = json!({"name": "y", "type": "BRANCH", "source": branch("main")});
    let other = server.send(Method::POST, TREES, &key, other.to_string());
    other.await.refused(422, Value::Null, Value::Null);
}

#[tokio::test]
async fn the_document_describes_these_calls_for_both_protocols() {
    let server = Server::start().await;
    let document = server.get("/openapi.json").await.expect(200).body;
    let v1 = "/v1/catalogs/{catalog}/databases/{database}/trees";
    let paimon = "/paimon/v1/{prefix}/databases/{database}/trees";
    for (base, error) in [(v1, "ErrorAnswer"), (paimon, "ErrorResponse")] {
        for (rest, method) in [
            ("", "get"),
            ("", "post"),
            ("/{name}", "get"),
            ("/{name}", "patch"),
            ("/{name}", "delete"),
            ("/{name}/merge", "post"),
        ] {
            let path = format!("{base}{rest}");
            let item = &document["paths"][path.as_str()];
            let schema = &item[method]["responses"]["default"]["content"]["application/json"];
            let wanted = format!("#/components/schemas/{error}");
            assert_eq!(schema["schema"]["$ref"], wanted, "{method} {path}");
            assert_eq!(item["parameters"][1]["name"], "database");
        }
        assert!(document["components"]["schemas"][error].is_object());
    }
    let referred = document.to_string();
    for name in referred.split("#/components/schemas/").skip(1) {
        let name = name.split('"').next().expect("a name");
        assert!(
            document["components"]["schemas"][name].is_object(),
            "{name}"
        );
    }
}
