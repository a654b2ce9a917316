//! Whatever is sent, errors have the protocol's shape.

use anabranch_files::{Fault, FaultCall, FileErrorKind};
use http::Method;
use serde_json::json;

use crate::server::{Server, append, schema};

#[tokio::test]
async fn unknown_paths_and_methods_are_errors_of_the_protocol() {
    let server = Server::start().await;
    let wrong = server.get("/v1/lake/tablespaces").await;
    wrong.refused(404, "NoSuchEndpointException");
    let functions = server.get("/v1/lake/namespaces/db/functions").await;
    functions.refused(404, "NoSuchEndpointException");
    let put = server
        .send(Method::PUT, "/v1/lake/namespaces", &[], "{}")
        .await;
    put.refused(405, "UnsupportedOperationException");
    let plan = "/v1/lake/namespaces/db/tables/t/plan";
    let plan = server.post(plan, json!({})).await;
    plan.refused(406, "UnsupportedOperationException");
    server.audited().await;
}

#[tokio::test]
async fn bodies_and_parameters_that_do_not_fit_are_400_and_name_the_field() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let tables = "/v1/lake/namespaces/db/tables";
    for (body, field) in [
        ("", "body"),
        ("{", "JSON"),
        ("[]", "body"),
        (r#"{"name":1}"#, "name"),
        (r#"{"name":"t"}"#, "schema"),
        (r#"{"name":"t","schema":{"type":"struct"}}"#, "schema"),
    ] {
        let answer = server.send(Method::POST, tables, &[], body).await;
        let answer = answer.refused(400, "BadRequestException");
        assert!(answer.text.contains(field), "{body}: {}", answer.text);
    }
    for query in ["pageSize=x", "pageToken=&pageSize=0", "pageToken=42"] {
        let answer = server.get(&format!("{tables}?{query}")).await;
        answer.refused(400, "BadRequestException");
    }
    let garbled = server.get("/v1/lake/namespaces/100%/tables").await;
    garbled.refused(400, "BadRequestException");
    server.audited().await;
}

#[tokio::test]
async fn tokens_are_refused_in_the_words_of_oauth() {
    let server = Server::start().await;
    let form = "grant_type=client_credentials&client_id=a&client_secret=b";
    let answer = server
        .send(Method::POST, "/v1/oauth/tokens", &[], form)
        .await
        .expect(400);
    assert_eq!(answer.json()["error"], "unsupported_grant_type");
    server.audited().await;
}

#[tokio::test]
async fn a_commit_whose_file_cannot_be_stored_changes_nothing_and_may_be_sent_again() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let table = server.table("db", "t").await;
    let path = "/v1/lake/namespaces/db/tables/t";
    let body = append(&table, 7, None, 1);
    let fault = Fault::FailBefore(FileErrorKind::Unavailable);
    server.faults.on_next(FaultCall::PutNew, fault);
    let answer = server.post(path, body.clone()).await;
    let answer = answer.refused(503, "ServiceUnavailableException");
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(server.load("db", "t").await, table);
    server.post(path, body).await.expect(200);
    server.audited().await;
}

#[tokio::test]
async fn a_bearer_token_is_ignored_and_basic_names_the_caller() {
    let server = Server::start().await;
    let answer = server
        .send(
            Method::GET,
            "/v1/lake/namespaces",
            &[("authorization", "Bearer None")],
            "",
        )
        .await;
    answer.expect(200);
    let unreadable = [("authorization", "Basic ???")];
    let body = json!({"name": "t", "schema": schema()}).to_string();
    let create = "/v1/lake/namespaces/db/tables";
    let answer = server.send(Method::POST, create, &unreadable, body).await;
    answer.refused(401, "NotAuthorizedException");
    server.audited().await;
}
