//! Traces reach the collector before the server has ended, as part of the caller's trace.

mod support;

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use support::Place;
use tokio::net::TcpListener;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_a_span_of_the_callers_trace() {
    let collected = Arc::new(Mutex::new(Vec::new()));
    let collector = collected.clone();
    let collect = post(move |body: Bytes| async move {
        collector.lock().expect("no panic").extend_from_slice(&body);
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let router = Router::new().route("/v1/traces", collect);
    tokio::spawn(async move { axum::serve(listener, router).await });

    let place = Place::new();
    let server = place.serve(&["--otlp-endpoint", &endpoint]);
    let answer = reqwest::Client::new()
        .get(format!("{}/v1/catalogs/lake", server.url))
        .header("traceparent", format!("00-{TRACE}-b7ad6b7169203331-01"))
        .send()
        .await;
    assert!(answer.expect("an answer").status().is_success());
    server.stop();

    let bytes = collected.lock().expect("no panic").clone();
    let holds = |wanted: &[u8]| bytes.windows(wanted.len()).any(|window| window == wanted);
    let trace = u128::from_str_radix(TRACE, 16).expect("an id");
    assert!(holds(&trace.to_be_bytes()));
    assert!(holds(b"GET /v1/catalogs/{catalog}"));
}
