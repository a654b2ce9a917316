//! What goes wrong before, around or after a handler, and how a protocol says it.

use std::fmt;
use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde_json::Value;

/// What went wrong, by what the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Mend the request (400).
    InvalidInput,
    /// Mend the credentials (401).
    Unauthenticated,
    /// A browser sent it on behalf of another site (403).
    CrossSite,
    /// No route has this path (404).
    NoRoute,
    /// The path takes other methods (405).
    MethodNotAllowed,
    /// The body didn't arrive in time; nothing was done (408).
    BodyTimeout,
    /// The body is larger than the server takes (413).
    BodyTooLarge,
    /// A defect; the log has the detail under the request's id (500). With `may_be_applied` the
    /// request was one that changes something, and how far it came isn't known.
    Internal {
        /// Whether the effect may have been applied.
        may_be_applied: bool,
    },
    /// Too much is asked at once; nothing was done (503 with `Retry-After`).
    Overloaded,
    /// The answer didn't come in time (504). With `may_be_applied` the request goes on.
    TimedOut {
        /// Whether the effect may have been, or may yet be, applied.
        may_be_applied: bool,
    },
}

impl FaultKind {
    /// The HTTP status, the same on every protocol.
    pub fn status(self) -> StatusCode {
        match self {
            FaultKind::InvalidInput => StatusCode::BAD_REQUEST,
            FaultKind::Unauthenticated => StatusCode::UNAUTHORIZED,
            FaultKind::CrossSite => StatusCode::FORBIDDEN,
            FaultKind::NoRoute => StatusCode::NOT_FOUND,
            FaultKind::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            FaultKind::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            FaultKind::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            FaultKind::Internal { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            FaultKind::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            FaultKind::TimedOut { .. } => StatusCode::GATEWAY_TIMEOUT,
        }
    }
}

/// Something that went wrong outside the domain. As a response it has no body yet: the [`Shapes`]
/// of the surrounding [`crate::Stack`] write it in the protocol's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// One sentence for the caller that names the field or thing and the remedy.
    pub message: String,
}

impl Fault {
    /// A fault with its message.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Fault {
        Fault {
            kind,
            message: message.into(),
        }
    }

    /// The request has to be mended.
    pub fn invalid(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::InvalidInput, message)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let mut response = self.kind.status().into_response();
        let headers = response.headers_mut();
        match self.kind {
            FaultKind::Overloaded => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            FaultKind::Unauthenticated => {
                let challenge = HeaderValue::from_static("Basic realm=\"anabranch\"");
                headers.insert(WWW_AUTHENTICATE, challenge);
            }
            _ => {}
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// How a protocol writes an error body.
pub trait ErrorShape: Send + Sync + 'static {
    /// The JSON body of a fault.
    fn body(&self, fault: &Fault) -> Value;
}

impl<F> ErrorShape for F
where
    F: Fn(&Fault) -> Value + Send + Sync + 'static,
{
    fn body(&self, fault: &Fault) -> Value {
        self(fault)
    }
}

/// Which protocol's error shape counts under which path.
#[derive(Clone)]
pub struct Shapes {
    base: Arc<dyn ErrorShape>,
    under: Vec<(&'static str, Arc<dyn ErrorShape>)>,
}

impl Shapes {
    /// One shape for every path.
    pub fn new(base: impl ErrorShape) -> Shapes {
        Shapes {
            base: Arc::new(base),
            under: Vec::new(),
        }
    }

    /// Another shape for a path prefix, such as `/iceberg`, and everything below it.
    pub fn under(mut self, prefix: &'static str, shape: impl ErrorShape) -> Shapes {
        self.under.push((prefix, Arc::new(shape)));
        self
    }

    fn of(&self, path: &str) -> &dyn ErrorShape {
        let is_below = |prefix: &str| {
            path.strip_prefix(prefix)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let found = self.under.iter().find(|(prefix, _)| is_below(prefix));
        found.map_or(self.base.as_ref(), |(_, shape)| shape.as_ref())
    }

    /// Writes the body of a response that carries a [`Fault`]; leaves any other as it is.
    pub(crate) fn write(&self, path: &str, mut response: Response) -> Response {
        let Some(fault) = response.extensions_mut().remove::<Fault>() else {
            return response;
        };
        let body = self.of(path).body(&fault).to_string();
        *response.body_mut() = body.into();
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        response
    }
}
