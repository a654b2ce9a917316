//! What every protocol gets from the stack, shown with a small protocol of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anabranch_http::{
    Fault, Json, PathNames, RequestContext, RequestLimits, ServeLimits, Shapes, Stack, serve,
};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::routing::{get, post};
use futures::{StreamExt, stream};
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

/// A server whose peers have a fifth of a second for everything.
struct Brief {
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    serving: tokio::task::JoinHandle<bool>,
}

impl Brief {
    async fn serve(connections: usize) -> Brief {
        let endless = get(|| async {
            let piece = Bytes::from_static(&[b'x'; 1 << 16]);
            let pieces = stream::repeat(piece).map(Ok::<_, std::io::Error>);
            Body::from_stream(pieces)
        });
        let routes = echo().route("/endless", endless);
        let router = stack(RequestLimits::default()).around(routes);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let limits = ServeLimits {
            connections,
            idle_timeout: Duration::from_millis(200),
            ..ServeLimits::default()
        };
        let serving = tokio::spawn(serve(listener, router, limits, async {
            stopped.await.unwrap_or_default();
        }));
        Brief {
            address,
            stop,
            serving,
        }
    }

    async fn connect(&self, sent: &[u8]) -> TcpStream {
        let mut client = TcpStream::connect(self.address).await.expect("connected");
        client.write_all(sent).await.expect("sent");
        client
    }
}

const HEALTH: &[u8] = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n";

/// Reads until the answer to [`HEALTH`] is complete.
async fn read_health(client: &mut TcpStream) {
    let mut text = String::new();
    while !text.ends_with("well") {
        let mut buffer = [0; 1024];
        let count = client.read(&mut buffer).await.expect("an answer");
        assert_ne!(count, 0, "closed after {text:?}");
        text += std::str::from_utf8(&buffer[..count]).expect("text");
    }
}

#[tokio::test]
async fn a_peer_that_is_silent_or_stops_half_way_keeps_no_seat() {
    for sent in [
        &b""[..],
        b"PRI * HT",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
        b"GET /health HT",
        b"GET /health HTTP/1.1\r\nhost: x\r\n",
        b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n",
    ] {
        let server = Brief::serve(3).await;
        let mut silent = Vec::new();
        for _ in 0..3 {
            silent.push(server.connect(sent).await);
        }
        let mut client = server.connect(HEALTH).await;
        read_health(&mut client).await;
    }
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_until_another_one_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = stack(RequestLimits::default()).around(echo());
    let limits = ServeLimits {
        connections: 2,
        ..ServeLimits::default()
    };
    tokio::spawn(serve(listener, router, limits, std::future::pending()));
    let mut seated = Vec::new();
    for _ in 0..2 {
        let mut client = TcpStream::connect(address).await.expect("connected");
        client.write_all(HEALTH).await.expect("sent");
        read_health(&mut client).await;
        seated.push(client);
    }
    let mut waiting = TcpStream::connect(address).await.expect("connected");
    waiting.write_all(HEALTH).await.expect("sent");
    let mut answer = tokio::spawn(async move { read_health(&mut waiting).await });
    for client in &mut seated {
        client.write_all(HEALTH).await.expect("sent");
        read_health(client).await;
    }
    let early = tokio::time::timeout(Duration::from_millis(50), &mut answer).await;
    assert!(early.is_err(), "a third connection is served");
    seated.pop();
    answer.await.expect("it is served now");
}

#[tokio::test]
async fn a_connection_that_never_said_anything_does_not_delay_the_stop() {
    let server = Brief::serve(3).await;
    let mut client = server.connect(b"").await;
    let mut other = server.connect(HEALTH).await;
    read_health(&mut other).await;
    server.stop.send(()).expect("it runs");
    assert!(server.serving.await.expect("no panic"));
    let mut rest = Vec::new();
    assert_eq!(client.read_to_end(&mut rest).await.expect("closed"), 0);
}

/// The beginning of a body whose rest never comes.
fn half_sent(path: &str) -> Request<Body> {
    let begun = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"{\"a"))]);
    let body = Body::from_stream(begun.chain(stream::pending()));
    let request = Request::post(path).header("content-length", 100);
    request.body(body).expect("a request")
}

#[tokio::test]
async fn half_sent_bodies_take_no_seat_and_are_known_not_applied() {
    let limits = RequestLimits {
        timeout: Duration::from_secs(1),
        in_flight: 1,
        ..RequestLimits::default()
    };
    let router = stack(limits).around(echo());
    let asking: Vec<_> = (0..20)
        .map(|_| {
            let router = router.clone();
            tokio::spawn(async move { ask(&router, half_sent("/inner/body")).await })
        })
        .collect();
    tokio::task::yield_now().await;
    let other = ask(&router, post_request("/inner/body", r#"{"a":7}"#)).await;
    assert_eq!(other.status, StatusCode::OK, "{}", other.text);
    for answer in asking {
        assert_eq!(
            answer.await.expect("no panic").json(),
            json!({"inner": 408})
        );
    }
}

#[tokio::test]
async fn a_body_that_drips_is_given_up_in_half_of_the_requests_time() {
    let limits = RequestLimits {
        timeout: Duration::from_millis(600),
        ..RequestLimits::default()
    };
    let router = stack(limits).around(echo());
    let drip = stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        Some((Ok::<_, std::io::Error>(Bytes::from_static(b" ")), ()))
    });
    let request = Request::post("/inner/body").body(Body::from_stream(drip));
    let answer = ask(&router, request.expect("a request")).await;
    assert_eq!(answer.json(), json!({"inner": 408}));
}

#[tokio::test]
async fn bodies_have_so_much_memory_together_and_what_is_beyond_comes_back_later() {
    let limits = RequestLimits {
        bodies_bytes: 16,
        ..RequestLimits::default()
    };
    let router = stack(limits).around(echo());
    for _ in 0..3 {
        let small = ask(&router, post_request("/inner/body", r#"{"a":7}"#)).await;
        assert_eq!(small.status, StatusCode::OK);
        let large = ask(&router, post_request("/inner/body", &" ".repeat(17))).await;
        assert_eq!(large.status, StatusCode::SERVICE_UNAVAILABLE);
    }
}

#[tokio::test]
async fn a_large_body_is_decoded_apart_and_its_fault_is_told_as_ever() {
    let router = stack(RequestLimits::default()).around(echo());
    let junk = format!(r#"{{"a":7,"junk":"{}"}}"#, "x".repeat(1 << 17));
    let answer = ask(&router, post_request("/inner/body", &junk)).await;
    assert_eq!(answer.text, "anonymous 7 64");
    let answer = ask(&router, post_request("/inner/body", &junk[1..])).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
}
