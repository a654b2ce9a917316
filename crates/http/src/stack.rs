//! Everything around a router: request ids, log, metrics, limits, time, panics, error shapes.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Method, StatusCode};
use metrics::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout_at;
use tokio_util::task::TaskTracker;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};
use tracing::{Instrument, Span};

use crate::body::{self, BodyLimits};
use crate::context::Deadline;
use crate::fault::{Fault, FaultKind, Shapes};
use crate::request_id::{REQUEST_ID, RequestId};

/// The label of requests that no route matches: never their path, which anyone may choose.
const UNMATCHED: &str = "unmatched";
const COMPRESSED_ABOVE_BYTES: u16 = 8 * 1024;

/// Limits on requests.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// From the head of a request to its answer.
    pub timeout: Duration,
    /// The largest body.
    pub body_bytes: usize,
    /// The bodies that are in memory at the same time, in bytes together; what would go beyond is
    /// answered 503.
    pub bodies_bytes: usize,
    /// Requests that run at the same time; one more is answered 503.
    pub in_flight: usize,
    /// Requests that wait for news at the same time, counted apart.
    pub long_polls: usize,
}

/// A body that stands still for longer than this is given up; also after a sixth of the request's
/// time, if that is less. All of it has half of the request's time: the other half is for the
/// request itself.
const LONGEST_STALL: Duration = Duration::from_secs(10);
const LONGEST_BODY: Duration = Duration::from_secs(30);

impl RequestLimits {
    fn body(&self) -> BodyLimits {
        BodyLimits {
            bytes: self.body_bytes,
            stall: LONGEST_STALL.min(self.timeout / 6),
            total: LONGEST_BODY.min(self.timeout / 2),
        }
    }
}

impl Default for RequestLimits {
    fn default() -> RequestLimits {
        RequestLimits {
            timeout: Duration::from_secs(60),
            body_bytes: 32 << 20,
            bodies_bytes: 512 << 20,
            in_flight: 1024,
            long_polls: 1024,
        }
    }
}

/// Looks at a request's headers and its span before anything else happens.
pub type OnRequest = fn(&HeaderMap, &Span);

/// What surrounds the routes of all protocols. Cheap to clone.
#[derive(Clone)]
pub struct Stack {
    shapes: Shapes,
    limits: RequestLimits,
    always_admitted: Vec<&'static str>,
    long_poll: Vec<&'static str>,
    on_request: Option<OnRequest>,
    in_flight: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    body_memory: Arc<Semaphore>,
    running: TaskTracker,
}

impl Stack {
    /// A stack with the protocols' error shapes.
    pub fn new(shapes: Shapes, limits: RequestLimits) -> Stack {
        Stack {
            shapes,
            limits,
            always_admitted: Vec::new(),
            long_poll: Vec::new(),
            on_request: None,
            in_flight: Arc::new(Semaphore::new(limits.in_flight)),
            waiting: Arc::new(Semaphore::new(limits.long_polls)),
            body_memory: Arc::new(Semaphore::new(
                limits.bodies_bytes.min(Semaphore::MAX_PERMITS),
            )),
            running: TaskTracker::new(),
        }
    }

    /// Routes that are answered however much runs, and logged only for debugging: health, metrics.
    pub fn always_admit(mut self, routes: &[&'static str]) -> Stack {
        self.always_admitted.extend(routes);
        self
    }

    /// Routes whose requests mostly wait for news, and are counted apart from the others. They
    /// change nothing, whatever their method.
    pub fn long_poll(mut self, routes: &[&'static str]) -> Stack {
        self.long_poll.extend(routes);
        self
    }

    /// Calls this for every request: where its span gets the caller's as its parent.
    pub fn on_request(mut self, hook: OnRequest) -> Stack {
        self.on_request = Some(hook);
        self
    }

    /// Puts the stack around a router that has all its routes.
    pub fn around(&self, router: Router) -> Router {
        let is_worth_it = SizeAbove::new(COMPRESSED_ABOVE_BYTES)
            .and(NotForContentType::IMAGES)
            .and(NotForContentType::SSE);
        let compression = CompressionLayer::new()
            .quality(CompressionLevel::Fastest)
            .compress_when(is_worth_it);
        router
            .fallback(no_route)
            .method_not_allowed_fallback(method_not_allowed)
            .layer(DefaultBodyLimit::disable())
            .layer(from_fn_with_state(Arc::new(self.clone()), converse))
            .layer(compression)
    }

    /// Waits until every mutation that was begun has ended, also those whose callers left.
    pub async fn drained(&self) {
        self.running.close();
        self.running.wait().await;
    }

    /// The right to run.
    fn admit(&self, route: &str) -> Result<Admission, Fault> {
        if self.always_admitted.contains(&route) {
            return Ok(Admission::new(route, None));
        }
        let seats = if self.long_poll.contains(&route) {
            &self.waiting
        } else {
            &self.in_flight
        };
        match seats.clone().try_acquire_owned() {
            Ok(seat) => Ok(Admission::new(route, Some(seat))),
            Err(_) => {
                metrics::counter!("http_requests_refused_total").increment(1);
                let message = "the server is busy; nothing was done, try again";
                Err(Fault::new(FaultKind::Overloaded, message))
            }
        }
    }

    /// The request with its whole body in memory, and that memory.
    async fn receive(
        &self,
        request: Request,
        route: &str,
    ) -> Result<(Request, Option<OwnedSemaphorePermit>), Fault> {
        if request.method().is_safe() || route == UNMATCHED {
            return Ok((request, None));
        }
        let (mut parts, body) = request.into_parts();
        let limits = self.limits.body();
        let received = body::receive(&parts.headers, body, limits, &self.body_memory).await?;
        parts.extensions.insert(received.digest);
        let request = Request::from_parts(parts, Body::from(received.bytes));
        Ok((request, Some(received.memory)))
    }

    async fn answer(
        &self,
        request: Request,
        next: Next,
        route: &str,
        deadline: Instant,
    ) -> Result<Response, Fault> {
        refuse_other_sites(request.method(), request.headers())?;
        // First the body: whoever sends half of one takes no seat, and nothing was begun for it.
        let (request, body_memory) = self.receive(request, route).await?;
        let admission = self.admit(route)?;
        let is_mutation = !request.method().is_safe() && !self.long_poll.contains(&route);
        let run = async move {
            let _held = (admission, body_memory);
            AssertUnwindSafe(next.run(request)).catch_unwind().await
        };
        let ended = if is_mutation {
            // What was begun is brought to its end, also if the caller leaves or isn't told in
            // time; else a cancelled request could stop between its steps.
            let task = self.running.spawn(run.in_current_span());
            in_time(task, deadline).await.map(|joined| match joined {
                Ok(ended) => ended,
                Err(error) => Err(Box::new(error) as Box<dyn Any + Send>),
            })
        } else {
            in_time(run, deadline).await
        };
        match ended {
            Some(Ok(response)) => Ok(response),
            Some(Err(panic)) => Err(panicked(panic.as_ref(), is_mutation)),
            None => Err(timed_out(is_mutation)),
        }
    }
}

/// A request that runs; given back when it ends, in whatever way.
struct Admission {
    in_flight: Gauge,
    _seat: Option<OwnedSemaphorePermit>,
}

impl Admission {
    fn new(route: &str, seat: Option<OwnedSemaphorePermit>) -> Admission {
        let in_flight = metrics::gauge!("http_requests_in_flight", "route" => route.to_owned());
        in_flight.increment(1);
        Admission {
            in_flight,
            _seat: seat,
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.in_flight.decrement(1);
    }
}

async fn in_time<F: Future>(run: F, deadline: Instant) -> Option<F::Output> {
    timeout_at(deadline.into(), run).await.ok()
}

async fn converse(State(stack): State<Arc<Stack>>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let deadline = started + stack.limits.timeout;
    let request_id = RequestId::of(request.headers());
    let method = known_method(request.method());
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or(UNMATCHED, MatchedPath::as_str);
    let path = request.uri().path().to_owned();
    request.extensions_mut().insert(request_id.clone());
    request.extensions_mut().insert(Deadline(deadline));

    // The path is left out on purpose: it may carry a transaction's token.
    let span = tracing::info_span!(
        "request",
        request_id = request_id.as_str(),
        method,
        route,
        otel.kind = "server",
        otel.name = format!("{method} {route}"),
        http.response.status_code = tracing::field::Empty,
    );
    if let Some(hook) = stack.on_request {
        hook(request.headers(), &span);
    }
    let answer = stack.answer(request, next, route, deadline);
    let answer = answer.instrument(span.clone()).await;
    let mut response = answer.unwrap_or_else(Fault::into_response);
    if let Some(value) = request_id.header() {
        response.headers_mut().insert(REQUEST_ID, value);
    }

    let status = response.status();
    let elapsed = started.elapsed();
    span.in_scope(|| {
        let fault = response.extensions().get::<Fault>();
        let reason = fault.map(|fault| fault.message.as_str());
        let latency_ms = elapsed.as_micros() as f64 / 1000.0;
        let status = status.as_u16();
        if stack.always_admitted.contains(&route) {
            tracing::debug!(status, latency_ms, reason, "answered");
        } else {
            tracing::info!(status, latency_ms, reason, "answered");
        }
    });
    span.record("http.response.status_code", status.as_u16());
    observe(route, method, status, elapsed);
    stack.shapes.write(&path, response)
}

fn observe(route: &str, method: &'static str, status: StatusCode, elapsed: Duration) {
    let route = route.to_owned();
    let status = status.as_str().to_owned();
    metrics::counter!(
        "http_requests_total",
        "route" => route.clone(), "method" => method, "status" => status
    )
    .increment(1);
    metrics::histogram!(
        "http_request_duration_seconds",
        "route" => route, "method" => method
    )
    .record(elapsed.as_secs_f64());
}

/// The method as a label; anyone may invent methods.
fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "OTHER",
    }
}

/// A browser names the site on whose behalf it sends. Without this, any web page could change the
/// catalog of whoever reads it while a server without authentication listens on loopback.
fn refuse_other_sites(method: &Method, headers: &HeaderMap) -> Result<(), Fault> {
    let Some(origin) = headers.get(ORIGIN).filter(|_| !method.is_safe()) else {
        return Ok(());
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let origin = origin.to_str().unwrap_or_default();
    let site = origin.split_once("://").map(|(_, site)| site);
    if site.is_some() && site == host {
        return Ok(());
    }
    let message = "a browser sent this on behalf of another site; call the server directly";
    Err(Fault::new(FaultKind::CrossSite, message))
}

fn panicked(panic: &(dyn Any + Send), may_be_applied: bool) -> Fault {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let panic = text.unwrap_or("without a text");
    tracing::error!(panic, "a request panicked");
    let message =
        "the server has a defect; its log has the detail under this answer's x-request-id";
    Fault::new(FaultKind::Internal { may_be_applied }, message)
}

fn timed_out(may_be_applied: bool) -> Fault {
    let message = if may_be_applied {
        "the answer did not come in time; the request goes on, whether it is applied is not known yet"
    } else {
        "the answer did not come in time"
    };
    Fault::new(FaultKind::TimedOut { may_be_applied }, message)
}

async fn no_route() -> Fault {
    Fault::new(
        FaultKind::NoRoute,
        "there is no such path; see /openapi.json",
    )
}

async fn method_not_allowed() -> Fault {
    let message = "this path takes other methods; see the Allow header and /openapi.json";
    Fault::new(FaultKind::MethodNotAllowed, message)
}
