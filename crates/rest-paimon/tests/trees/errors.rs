//! What can't be done, in the protocol's shape: the exact fields of each class.

use http::Method;
use serde_json::{Value, json};

use crate::server::{Server, TREES, branch};

const NONE: Value = Value::Null;

#[tokio::test]
async fn what_is_missing_is_named_with_its_type() {
    let server = Server::start().await;
    server.make("TAG", "v1", "main").await;
    let elsewhere = "/paimon/v1/lake/databases/none/trees";
    let database = (json!("DATABASE"), json!("none"));
    let new = json!({"name": "x", "type": "BRANCH", "source": branch("main")});
    let merge = json!({"source": branch("main")});
    for answer in [
        server.get(elsewhere).await,
        server.get(&format!("{elsewhere}/main")).await,
        server.post(elsewhere, new.clone()).await,
        server.post(&format!("{elsewhere}/main/merge"), merge).await,
        server.delete(&format!("{elsewhere}/x"), "").await,
    ] {
        answer.refused(404, database.0.clone(), database.1.clone());
    }
    let catalog = server.get("/paimon/v1/none/databases/training/trees");
    catalog.await.refused(404, NONE, NONE);
    let deleted = server.delete(&format!("{TREES}/x"), "{}").await;
    deleted.refused_with(
        404,
        json!("BRANCH"),
        json!("x"),
        json!({"missing": "target"}),
    );

    for (kind, name) in [
        ("BRANCH", "x"),
        ("TAG", "x"),
        ("TAG", "main"),
        ("BRANCH", "v1"),
    ] {
        let source = json!({"type": kind, "name": name});
        let body = json!({"name": "new", "type": "TAG", "source": source});
        let created = server.post(TREES, body).await;
        created.refused_with(404, json!(kind), json!(name), json!({"missing": "source"}));
        let merged = server.merge("main", json!({"source": source})).await;
        merged.refused_with(404, json!(kind), json!(name), json!({"missing": "source"}));
    }
    let merged = server.merge("x", json!({"source": branch("main")})).await;
    merged.refused_with(
        404,
        json!("BRANCH"),
        json!("x"),
        json!({"missing": "target"}),
    );
}

#[tokio::test]
async fn what_stands_in_the_way_is_a_409_of_that_reference() {
    let server = Server::start().await;
    server.table("main", "t").await;
    server.make("TAG", "v1", "main").await;
    for kind in ["BRANCH", "TAG"] {
        for (name, taken) in [("main", "BRANCH"), ("v1", "TAG")] {
            let body = json!({"name": name, "type": kind, "source": branch("main")});
            let answer = server.post(TREES, body).await;
            answer.refused(409, json!(taken), json!(name));
        }
    }
    let main = server.delete(&format!("{TREES}/main"), "").await;
    main.refused(409, json!("BRANCH"), json!("main"));
    let wrong = server
        .delete(&format!("{TREES}/v1"), r#"{"type":"BRANCH"}"#)
        .await;
    wrong.refused(409, json!("TAG"), json!("v1"));
    let tag = server.merge("v1", json!({"source": branch("main")})).await;
    tag.refused(409, json!("TAG"), json!("v1"));
}

#[tokio::test]
async fn a_stale_revision_is_a_409_that_names_the_current_one() {
    let server = Server::start().await;
    server.make("BRANCH", "x", "main").await;
    let old = server.get(&format!("{TREES}/main")).await;
    server.table("main", "t").await;
    let now = server.get(&format!("{TREES}/main")).await;
    let stale = json!({"currentRevision": now.revision()});
    let merge = json!({"source": branch("x"), "expectedRevision": old.revision()});
    let merged = server.merge("main", merge).await;
    merged.refused_with(409, json!("BRANCH"), json!("main"), stale.clone());
    let body = json!({
        "name": "y", "type": "TAG", "source": branch("main"), "expectedRevision": old.revision(),
    });
    let made = server.post(TREES, body).await;
    made.refused_with(409, json!("BRANCH"), json!("main"), stale);
    let body = json!({"expectedRevision": now.revision()}).to_string();
    let deleted = server.delete(&format!("{TREES}/x"), &body).await;
    let further = deleted.further(409, json!("BRANCH"), json!("x"));
    assert!(further["currentRevision"].is_string());
    server.get(&format!("{TREES}/x")).await.expect(200);
}

#[tokio::test]
async fn a_request_that_does_not_fit_is_a_400() {
    let server = Server::start().await;
    server.make("BRANCH", "x", "main").await;
    let long = "x".repeat(1_000_000);
    for name in ["", "a b", "-a", "rev-1", &long] {
        let body = json!({"name": name, "type": "TAG", "source": branch("main")});
        server.post(TREES, body).await.refused(400, NONE, NONE);
    }
    for body in [
        json!({"type": "TAG", "source": branch("main")}),
        json!({"name": "y", "type": "tag", "source": branch("main")}),
        json!({"name": "y", "type": "TAG"}),
        json!({"name": "y", "type": "TAG", "source": {"type": "X", "name": "main"}}),
        json!({"name": "y", "type": "TAG", "source": branch(&long)}),
        json!([]),
    ] {
        server.post(TREES, body).await.refused(400, NONE, NONE);
    }
    let one = json!({"table": "t", "mergeMode": "DROP"});
    for (field, value) in [
        ("tableMergeModes", json!([one, one])),
        (
            "tableMergeModes",
            json!([{"table": "t", "mergeMode": "drop"}]),
        ),
        (
            "tableMergeModes",
            json!([{"table": long, "mergeMode": "DROP"}]),
        ),
        ("defaultMergeMode", json!("MAYBE")),
        ("source", branch(&long)),
    ] {
        let mut body = json!({"source": branch("x")});
        body[field] = value;
        let refused = server.merge("main", body).await;
        refused.refused(400, NONE, NONE);
    }
    let mut source = branch("x");
    source["revision"] = json!("no revision");
    let refused = server.merge("main", json!({"source": source})).await;
    refused.refused(400, NONE, NONE);
    // Empty and null modes are none.
    for modes in [json!([]), NONE] {
        let body = json!({"source": branch("x"), "tableMergeModes": modes});
        server.merge("main", body).await.expect(200);
    }
    let selector = "/paimon/v1/lake/databases/training%24branch_x/trees";
    server.get(selector).await.refused(400, NONE, NONE);
    let listed = server.get(TREES).await.expect(200).body;
    assert_eq!(listed["references"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn what_goes_wrong_around_a_call_has_the_protocols_shape() {
    let server = Server::start().await;
    let unreadable = [("authorization", "Basic ???")];
    let create = json!({"name": "x", "type": "TAG", "source": branch("main")});
    let answer = server.send(Method::POST, TREES, &unreadable, create.to_string());
    answer.await.refused(401, NONE, NONE);
    let answer = server.send(Method::PUT, TREES, &[], "").await;
    answer.refused(405, NONE, NONE);
    server.get("/paimon/v2").await.refused(404, NONE, NONE);
    let tables = "/paimon/v1/lake/databases/training/tables";
    for (method, path) in [
        (Method::GET, "/paimon/v1/lake/databases"),
        (Method::GET, tables),
        (Method::POST, tables),
        (Method::POST, "/paimon/v1/lake/tables/rename"),
    ] {
        let answer = server.send(method, path, &[], "").await;
        answer.refused(501, NONE, NONE);
    }
}
