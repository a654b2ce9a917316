//! What every protocol gets from the stack, shown with a small protocol of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anabranch_http::{
    Fault, Json, PathNames, RequestContext, RequestLimits, ServeLimits, Shapes, Stack, serve,
};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::routing::{get, post};
use http::{Request, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tower::ServiceExt;

fn shapes() -> Shapes {
    let base = |fault: &Fault| json!({"base": fault.message});
    let inner = |fault: &Fault| json!({"inner": fault.kind.status().as_u16()});
    Shapes::new(base).under("/inner", inner)
}

fn stack(limits: RequestLimits) -> Stack {
    Stack::new(shapes(), limits).always_admit(&["/health"])
}

fn echo() -> Router {
    let names = |PathNames([one, two]): PathNames<2>| async move { format!("{one}|{two}") };
    let body = |context: RequestContext, Json { value, raw }: Json<Value>| async move {
        let length = context.fingerprint(&raw).len();
        format!("{} {} {length}", context.principal, value["a"])
    };
    let inner = Router::new()
        .route("/{one}/x/{two}", get(names))
        .route("/body", post(body));
    Router::new()
        .nest("/inner", inner)
        .route("/panic", get(|| async { panic_now() }))
        .route("/health", get(|| async { "well" }))
        .route("/large", get(|| async { "large ".repeat(4096) }))
}

fn panic_now() -> &'static str {
    panic!("for the test")
}

fn get_request(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).expect("a request")
}

fn post_request(path: &str, body: &str) -> Request<Body> {
    let body = Body::from(body.to_owned());
    Request::post(path).body(body).expect("a request")
}

struct Answer {
    status: StatusCode,
    headers: http::HeaderMap,
    text: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).expect("a JSON body")
    }
}

async fn ask(router: &Router, request: Request<Body>) -> Answer {
    let response = router.clone().oneshot(request).await.expect("an answer");
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.expect("a body");
    Answer {
        status: parts.status,
        headers: parts.headers,
        text: String::from_utf8_lossy(&bytes).into_owned(),
    }
}

#[tokio::test]
async fn names_reach_a_nested_route_decoded_once() {
    let router = stack(RequestLimits::default()).around(echo());
    let answer = ask(
        &router,
        get_request("/inner/a+b%2Bc/x/%F0%9F%98%80%2F%2520"),
    )
    .await;
    assert_eq!(answer.text, "a b+c|😀/%20");
}

#[tokio::test]
async fn every_answer_carries_a_request_id_the_callers_if_it_has_one() {
    let router = stack(RequestLimits::default()).around(echo());
    let mut request = get_request("/nowhere");
    let id = "job-7".parse().expect("a header");
    request.headers_mut().insert("x-request-id", id);
    let answer = ask(&router, request).await;
    assert_eq!(answer.headers["x-request-id"], "job-7");
    let answer = ask(&router, get_request("/health")).await;
    assert_eq!(answer.headers["x-request-id"].len(), 36);
}

#[tokio::test]
async fn a_fault_has_the_shape_of_its_protocol() {
    let router = stack(RequestLimits::default()).around(echo());
    let answer = ask(&router, get_request("/nowhere")).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert!(answer.json()["base"].is_string());
    let answer = ask(&router, get_request("/inner/nowhere")).await;
    assert_eq!(answer.json(), json!({"inner": 404}));
    assert_eq!(answer.headers["content-type"], "application/json");
    let answer = ask(&router, get_request("/inner/body")).await;
    assert_eq!(answer.json(), json!({"inner": 405}));
    assert_eq!(answer.headers["allow"], "POST");
    let answer = ask(&router, get_request("/inner/%zz/x/y")).await;
    assert_eq!(answer.json(), json!({"inner": 400}));
    let answer = ask(&router, post_request("/inner/body", "{")).await;
    assert_eq!(answer.json(), json!({"inner": 400}));
}

#[tokio::test]
async fn a_body_needs_no_content_type_and_has_a_largest_size() {
    let limits = RequestLimits {
        body_bytes: 16,
        ..RequestLimits::default()
    };
    let router = stack(limits).around(echo());
    let answer = ask(&router, post_request("/inner/body", r#"{"a":7}"#)).await;
    assert_eq!(answer.text, "anonymous 7 64");
    let answer = ask(&router, post_request("/inner/body", &" ".repeat(17))).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_panic_is_answered_and_the_server_goes_on() {
    let router = stack(RequestLimits::default()).around(echo());
    let answer = ask(&router, get_request("/panic")).await;
    assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(!answer.text.contains("for the test"));
    assert_eq!(ask(&router, get_request("/health")).await.text, "well");
}

#[tokio::test]
async fn one_request_too_many_is_told_to_come_back_and_health_still_answers() {
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (inside, outside) = (entered.clone(), leave.clone());
    let slow = get(move || async move {
        inside.notify_one();
        outside.notified().await;
        "done"
    });
    let limits = RequestLimits {
        in_flight: 1,
        ..RequestLimits::default()
    };
    let router = stack(limits).around(echo().route("/slow", slow));
    let asking = router.clone();
    let first = tokio::spawn(async move { ask(&asking, get_request("/slow")).await });
    entered.notified().await;
    let second = ask(&router, get_request("/large")).await;
    assert_eq!(second.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(second.headers["retry-after"], "1");
    assert_eq!(ask(&router, get_request("/health")).await.text, "well");
    leave.notify_one();
    assert_eq!(first.await.expect("no panic").text, "done");
    assert_eq!(
        ask(&router, get_request("/large")).await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_mutation_that_is_too_slow_is_unknown_and_goes_on() {
    let (go_on, applied) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let (wait, apply) = (go_on.clone(), applied.clone());
    let slow = post(move || async move {
        wait.notified().await;
        apply.store(true, Ordering::SeqCst);
    });
    let limits = RequestLimits {
        timeout: Duration::ZERO,
        ..RequestLimits::default()
    };
    let stack = stack(limits);
    let router = stack.around(Router::new().route("/slow", slow));
    let answer = ask(&router, post_request("/slow", "")).await;
    assert_eq!(answer.status, StatusCode::GATEWAY_TIMEOUT);
    assert!(!applied.load(Ordering::SeqCst));
    go_on.notify_one();
    stack.drained().await;
    assert!(applied.load(Ordering::SeqCst));
}

#[tokio::test]
async fn another_site_cannot_use_the_readers_browser() {
    let router = stack(RequestLimits::default()).around(echo());
    let from = |origin: &str| {
        let mut request = post_request("/inner/body", r#"{"a":7}"#);
        let headers = request.headers_mut();
        headers.insert("host", "127.0.0.1:8181".parse().expect("a header"));
        headers.insert("origin", origin.parse().expect("a header"));
        request
    };
    let own = ask(&router, from("http://127.0.0.1:8181")).await;
    assert_eq!(own.status, StatusCode::OK);
    for origin in ["http://elsewhere.example", "null"] {
        let other = ask(&router, from(origin)).await;
        assert_eq!(other.json(), json!({"inner": 403}), "{origin}");
    }
}

#[tokio::test]
async fn only_large_bodies_are_compressed() {
    let router = stack(RequestLimits::default()).around(echo());
    let accepting = |path: &str| {
        let mut request = get_request(path);
        let gzip = "gzip".parse().expect("a header");
        request.headers_mut().insert("accept-encoding", gzip);
        request
    };
    let large = ask(&router, accepting("/large")).await;
    assert_eq!(large.headers["content-encoding"], "gzip");
    let small = ask(&router, accepting("/health")).await;
    assert!(!small.headers.contains_key("content-encoding"));
}

#[tokio::test]
async fn a_stop_lets_the_running_request_end_and_takes_no_other() {
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (inside, outside) = (entered.clone(), leave.clone());
    let slow = get(move || async move {
        inside.notify_one();
        outside.notified().await;
        "done"
    });
    let router = stack(RequestLimits::default()).around(Router::new().route("/slow", slow));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(serve(listener, router, ServeLimits::default(), async {
        stopped.await.unwrap_or_default();
    }));

    let mut client = TcpStream::connect(address).await.expect("a connection");
    let request = b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n";
    client.write_all(request).await.expect("sent");
    entered.notified().await;
    stop.send(()).expect("the server runs");
    leave.notify_one();
    let mut text = String::new();
    client.read_to_string(&mut text).await.expect("an answer");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert!(
        server.await.expect("no panic"),
        "all requests ended in time"
    );
    assert!(TcpStream::connect(address).await.is_err());
}
