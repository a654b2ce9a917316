//! Errors as this protocol says them: the one place with status codes and type names.
//!
//! What a client does after a commit depends on the status alone, so each is a statement about the
//! table (specification, and the Java, Python, Rust and DuckDB clients):
//!
//! | status | says | clients |
//! |---|---|---|
//! | 409 | not applied, for good | delete what they wrote, read again, build the commit anew |
//! | 503 + `Retry-After` | not applied, for now | send the same again |
//! | 504 `CommitStateUnknownException` | perhaps applied | keep what they wrote, and look |
//! | 500 `InternalServerError` | a defect; not applied | keep what they wrote |
//!
//! Files that can't be read or written are a 503: nothing was published, and the store comes back.
//! A defect isn't, because sending it again doesn't help; and it isn't a 4xx, because clients would
//! delete files on the word of a server that has just shown that it is wrong about something.

use anabranch_catalog::CatalogError;
use anabranch_http::{ErrorShape, Fault, FaultKind};
use anabranch_partition::{Reason, Refusal, RunError, Subject};
use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

const BAD_REQUEST: &str = "BadRequestException";
const COMMIT_STATE_UNKNOWN: &str = "CommitStateUnknownException";
const INTERNAL: &str = "InternalServerError";
const NOT_AUTHORIZED: &str = "NotAuthorizedException";
const SLOW_DOWN: &str = "SlowDownException";
const UNPROCESSABLE: &str = "UnprocessableEntityException";
const UNSUPPORTED: &str = "UnsupportedOperationException";

/// An error as this protocol says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The HTTP status; also the `code` in the body.
    pub status: StatusCode,
    /// The `type` in the body, by which clients choose their exception.
    pub kind: &'static str,
    /// One sentence that names the field or thing and the remedy.
    pub message: String,
    /// Whether the same request may succeed if it is sent again: nothing was changed.
    pub is_for_now: bool,
}

impl Problem {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Problem {
        Problem {
            status,
            kind,
            message: message.into(),
            is_for_now: false,
        }
    }

    fn for_now(kind: &'static str, message: impl Into<String>) -> Problem {
        Problem {
            is_for_now: true,
            ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, kind, message)
        }
    }

    /// The request has to be mended.
    pub(crate) fn invalid(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, BAD_REQUEST, message)
    }

    /// The request contradicts itself.
    pub(crate) fn contradiction(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, UNPROCESSABLE, message)
    }

    /// This server doesn't do that.
    pub(crate) fn unsupported(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_ACCEPTABLE, UNSUPPORTED, message)
    }

    /// The JSON body.
    pub fn body(&self) -> Value {
        json!({
            "error": {
                "message": self.message,
                "type": self.kind,
                "code": self.status.as_u16(),
            }
        })
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        tracing::debug!(kind = self.kind, message = self.message, "refused");
        let mut response = (self.status, Json(self.body())).into_response();
        if self.is_for_now {
            let headers = response.headers_mut();
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl From<CatalogError> for Problem {
    fn from(error: CatalogError) -> Problem {
        match error {
            CatalogError::Run(error) => error.into(),
            CatalogError::Storage {
                message,
                may_pass: true,
            } => Problem::for_now("ServiceUnavailableException", message),
            CatalogError::Storage { message, .. } => Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "InternalServerError",
                message,
            ),
        }
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Problem {
        let message = error.to_string();
        match error {
            RunError::Refused(refusal) => refusal.into(),
            RunError::Stale | RunError::Overloaded => Problem::for_now(SLOW_DOWN, message),
            RunError::Unavailable | RunError::Unwritable => {
                Problem::for_now("ServiceUnavailableException", message)
            }
            RunError::Unknown => {
                Problem::new(StatusCode::GATEWAY_TIMEOUT, COMMIT_STATE_UNKNOWN, message)
            }
            RunError::Failed => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL, message),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let (status, kind) = match refusal.reason {
            Reason::InvalidInput => (StatusCode::BAD_REQUEST, BAD_REQUEST),
            Reason::NotFound(subject) => (StatusCode::NOT_FOUND, no_such(subject)),
            Reason::AlreadyExists(_) => (StatusCode::CONFLICT, "AlreadyExistsException"),
            Reason::NotEmpty(_) => (StatusCode::CONFLICT, "NamespaceNotEmptyException"),
            Reason::Conflict => (StatusCode::CONFLICT, "CommitFailedException"),
            Reason::KeyReused => (StatusCode::UNPROCESSABLE_ENTITY, UNPROCESSABLE),
            Reason::ReadOnly(_) => (StatusCode::FORBIDDEN, "ForbiddenException"),
            Reason::Gone => (StatusCode::GONE, "NoSuchRevisionException"),
        };
        Problem::new(status, kind, refusal.message)
    }
}

fn no_such(subject: Subject) -> &'static str {
    match subject {
        Subject::Metalake | Subject::Catalog => "NoSuchWarehouseException",
        Subject::Namespace => "NoSuchNamespaceException",
        Subject::Table => "NoSuchTableException",
        Subject::View => "NoSuchViewException",
        Subject::Branch | Subject::Tag => "NoSuchReferenceException",
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Problem {
        Problem::of_fault(&fault)
    }
}

impl Problem {
    fn of_fault(fault: &Fault) -> Problem {
        let kind = match fault.kind {
            FaultKind::InvalidInput => BAD_REQUEST,
            FaultKind::Unauthenticated | FaultKind::CrossSite => NOT_AUTHORIZED,
            FaultKind::NoRoute => "NoSuchEndpointException",
            FaultKind::MethodNotAllowed => UNSUPPORTED,
            FaultKind::BodyTimeout => "RequestTimeoutException",
            FaultKind::BodyTooLarge => "RequestTooLargeException",
            FaultKind::Overloaded => SLOW_DOWN,
            FaultKind::Internal { may_be_applied } | FaultKind::TimedOut { may_be_applied } => {
                if may_be_applied {
                    COMMIT_STATE_UNKNOWN
                } else {
                    INTERNAL
                }
            }
        };
        Problem {
            is_for_now: fault.kind == FaultKind::Overloaded,
            ..Problem::new(fault.kind.status(), kind, fault.message.clone())
        }
    }
}

/// This protocol's words for what goes wrong outside of a handler.
#[derive(Clone, Copy, Debug, Default)]
pub struct Errors;

impl ErrorShape for Errors {
    fn body(&self, fault: &Fault) -> Value {
        Problem::of_fault(fault).body()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status_and_kind(error: impl Into<CatalogError>) -> (u16, &'static str) {
        let problem = Problem::from(error.into());
        assert_eq!(problem.body()["error"]["code"], problem.status.as_u16());
        (problem.status.as_u16(), problem.kind)
    }

    #[test]
    fn every_reason_has_the_status_and_type_that_clients_expect() {
        use Subject::*;
        let expected = [
            (Reason::InvalidInput, (400, "BadRequestException")),
            (
                Reason::NotFound(Metalake),
                (404, "NoSuchWarehouseException"),
            ),
            (Reason::NotFound(Catalog), (404, "NoSuchWarehouseException")),
            (
                Reason::NotFound(Namespace),
                (404, "NoSuchNamespaceException"),
            ),
            (Reason::NotFound(Table), (404, "NoSuchTableException")),
            (Reason::NotFound(View), (404, "NoSuchViewException")),
            (
                Reason::AlreadyExists(Table),
                (409, "AlreadyExistsException"),
            ),
            (Reason::AlreadyExists(View), (409, "AlreadyExistsException")),
            (
                Reason::AlreadyExists(Namespace),
                (409, "AlreadyExistsException"),
            ),
            (
                Reason::NotEmpty(Namespace),
                (409, "NamespaceNotEmptyException"),
            ),
            (Reason::Conflict, (409, "CommitFailedException")),
            (Reason::KeyReused, (422, "UnprocessableEntityException")),
            (Reason::Gone, (410, "NoSuchRevisionException")),
        ];
        for (reason, answer) in expected {
            assert_eq!(status_and_kind(Refusal::new(reason, "why")), answer);
        }
    }

    #[test]
    fn only_what_is_known_not_applied_may_be_sent_again_and_unsure_is_never_a_conflict() {
        let storage = CatalogError::Storage {
            message: "no".to_owned(),
            may_pass: true,
        };
        let for_now = [
            CatalogError::Run(RunError::Overloaded),
            CatalogError::Run(RunError::Stale),
            CatalogError::Run(RunError::Unavailable),
            CatalogError::Run(RunError::Unwritable),
            storage,
        ];
        for error in for_now {
            let response = Problem::from(error.clone()).into_response();
            assert_eq!(response.status(), 503, "{error:?}");
            assert!(response.headers().contains_key(RETRY_AFTER), "{error:?}");
        }
        let unknown = Problem::from(CatalogError::Run(RunError::Unknown));
        assert_eq!(unknown.status, 504);
        assert_eq!(unknown.kind, "CommitStateUnknownException");
        let response = unknown.into_response();
        assert!(!response.headers().contains_key(RETRY_AFTER));
        let failed = status_and_kind(RunError::Failed);
        assert_eq!(failed, (500, "InternalServerError"));
    }

    #[test]
    fn every_fault_has_its_status_in_the_body() {
        let kinds = [
            (FaultKind::InvalidInput, "BadRequestException"),
            (FaultKind::Unauthenticated, "NotAuthorizedException"),
            (FaultKind::CrossSite, "NotAuthorizedException"),
            (FaultKind::NoRoute, "NoSuchEndpointException"),
            (FaultKind::MethodNotAllowed, "UnsupportedOperationException"),
            (FaultKind::BodyTimeout, "RequestTimeoutException"),
            (FaultKind::BodyTooLarge, "RequestTooLargeException"),
            (FaultKind::Overloaded, "SlowDownException"),
            (
                FaultKind::Internal {
                    may_be_applied: false,
                },
                "InternalServerError",
            ),
            (
                FaultKind::Internal {
                    may_be_applied: true,
                },
                "CommitStateUnknownException",
            ),
            (
                FaultKind::TimedOut {
                    may_be_applied: false,
                },
                "InternalServerError",
            ),
            (
                FaultKind::TimedOut {
                    may_be_applied: true,
                },
                "CommitStateUnknownException",
            ),
        ];
        for (kind, name) in kinds {
            let body = Errors.body(&Fault::new(kind, "why"));
            assert_eq!(body["error"]["type"], name, "{kind:?}");
            assert_eq!(body["error"]["code"], kind.status().as_u16(), "{kind:?}");
            assert_eq!(body["error"]["message"], "why");
        }
    }
}
