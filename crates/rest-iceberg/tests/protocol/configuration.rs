//! `/v1/config`.

use anabranch_rest_iceberg::endpoints;
use http::Method;
use serde_json::json;

use crate::server::Server;

#[tokio::test]
async fn a_client_learns_the_prefix_and_what_is_served() {
    let server = Server::start().await;
    let answer = server.get("/v1/config?warehouse=lake").await.expect(200);
    let config = answer.json();
    assert_eq!(config["overrides"], json!({"prefix": "lake"}));
    assert_eq!(config["defaults"], json!({}));
    assert_eq!(config["idempotency-key-lifetime"], "PT24H");
    assert_eq!(config["endpoints"], json!(endpoints()));
    let named_in_full = server.get("/v1/config?warehouse=default.lake").await;
    assert_eq!(named_in_full.expect(200).json(), config);
    server.audited().await;
}

#[tokio::test]
async fn who_names_no_warehouse_gets_the_default_one() {
    let server = Server::start().await;
    for path in ["/v1/config", "/v1/config?warehouse="] {
        let config = server.get(path).await.expect(200).json();
        assert_eq!(config["overrides"]["prefix"], "lake", "{path}");
    }
    server.audited().await;
}

#[tokio::test]
async fn a_missing_warehouse_is_not_mistaken_for_a_wrong_address() {
    let server = Server::start().await;
    let config = "/v1/config?warehouse";
    for warehouse in ["nowhere", "other.lake"] {
        let answer = server.get(&format!("{config}={warehouse}")).await;
        answer.refused(404, "NoSuchWarehouseException");
    }
    let odd = server.get(&format!("{config}=s3%3A%2F%2Fx")).await;
    odd.refused(400, "BadRequestException");
    let wrong = server.get("/config?warehouse=lake").await;
    wrong.refused(404, "NoSuchEndpointException");
    let tables = server.get("/v1/nowhere/namespaces").await;
    tables.refused(404, "NoSuchWarehouseException");
    server.audited().await;
}

#[tokio::test]
async fn every_endpoint_that_is_listed_is_routed() {
    let server = Server::start().await;
    for endpoint in endpoints() {
        let (verb, template) = endpoint.split_once(' ').expect("verb and path");
        let path = template
            .replace("{prefix}", "lake")
            .replace("{namespace}", "none")
            .replace("{table}", "none")
            .replace("{view}", "none");
        let method = Method::from_bytes(verb.as_bytes()).expect("a verb");
        let answer = server.send(method, &path, &[], "{}").await;
        assert_ne!(answer.status, 405, "{endpoint}");
        if answer.status == 404 && verb != "HEAD" {
            let kind = answer.json()["error"]["type"].clone();
            assert_ne!(kind, "NoSuchEndpointException", "{endpoint}");
        }
    }
    server.audited().await;
}
