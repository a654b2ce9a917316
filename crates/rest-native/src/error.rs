//! Errors in the words of `/v1`, in one place.

use anabranch_catalog::CatalogError;
use anabranch_http::{Fault, FaultKind};
use anabranch_partition::{Reason, Refusal, RunError};
use anabranch_rest_trees::Protocol;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::{Value, json};

/// An error as `/v1` answers it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApiError {
    pub(crate) code: &'static str,
    pub(crate) status: StatusCode,
    /// Known not applied, and the same request may succeed later.
    pub(crate) retryable: bool,
    pub(crate) message: String,
    pub(crate) details: Value,
}

impl ApiError {
    fn new(code: &'static str, status: StatusCode, message: String) -> ApiError {
        ApiError {
            code,
            status,
            retryable: false,
            message,
            details: json!({}),
        }
    }

    fn retryable(self) -> ApiError {
        ApiError {
            retryable: true,
            ..self
        }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> ApiError {
        ApiError::new("NOT_FOUND", StatusCode::NOT_FOUND, message.into())
    }

    pub(crate) fn body(&self) -> Value {
        json!({"error": {
            "code": self.code,
            "message": self.message,
            "retryable": self.retryable,
            "details": self.details,
        }})
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, axum::Json(self.body())).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            let second = http::HeaderValue::from_static("1");
            response
                .headers_mut()
                .insert(http::header::RETRY_AFTER, second);
        }
        response
    }
}

impl From<&Refusal> for ApiError {
    fn from(refusal: &Refusal) -> ApiError {
        let (code, status) = match refusal.reason {
            Reason::InvalidInput => ("INVALID_INPUT", StatusCode::BAD_REQUEST),
            Reason::NotFound(_) => ("NOT_FOUND", StatusCode::NOT_FOUND),
            Reason::AlreadyExists(_) => ("ALREADY_EXISTS", StatusCode::CONFLICT),
            Reason::NotEmpty(_) => ("ILLEGAL_STATE", StatusCode::CONFLICT),
            Reason::Conflict => ("CONFLICT", StatusCode::CONFLICT),
            Reason::KeyReused => ("KEY_REUSED", StatusCode::UNPROCESSABLE_ENTITY),
            Reason::ReadOnly(_) => ("READ_ONLY_REFERENCE", StatusCode::FORBIDDEN),
            Reason::Gone => ("GONE", StatusCode::GONE),
        };
        ApiError {
            details: refusal.details.clone().unwrap_or_else(|| json!({})),
            ..ApiError::new(code, status, refusal.message.clone())
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> ApiError {
        ApiError::from(&refusal)
    }
}

impl From<RunError> for ApiError {
    fn from(error: RunError) -> ApiError {
        let message = error.to_string();
        match error {
            RunError::Refused(refusal) => ApiError::from(&refusal),
            RunError::Stale => {
                ApiError::new("RETRYABLE_CONFLICT", StatusCode::CONFLICT, message).retryable()
            }
            RunError::Overloaded | RunError::Unavailable | RunError::Unwritable => {
                ApiError::new("OVERLOADED", StatusCode::SERVICE_UNAVAILABLE, message).retryable()
            }
            RunError::Unknown => {
                ApiError::new("UNKNOWN_OUTCOME", StatusCode::GATEWAY_TIMEOUT, message)
            }
            RunError::Failed => {
                ApiError::new("INTERNAL", StatusCode::INTERNAL_SERVER_ERROR, message)
            }
        }
    }
}

impl From<CatalogError> for ApiError {
    fn from(error: CatalogError) -> ApiError {
        match error {
            CatalogError::Run(error) => ApiError::from(error),
            CatalogError::Storage { message, .. } => {
                ApiError::new("INTERNAL", StatusCode::INTERNAL_SERVER_ERROR, message)
            }
        }
    }
}

/// The calls on references, as `/v1` answers what can't be done.
pub(crate) struct Errors;

impl Protocol for Errors {
    fn refuse(error: CatalogError, _: &str) -> Response {
        ApiError::from(error).into_response()
    }
}

/// The error body of `/v1` for what goes wrong outside the domain.
pub fn error_shape(fault: &Fault) -> Value {
    let (code, retryable) = match fault.kind {
        FaultKind::InvalidInput | FaultKind::MethodNotAllowed | FaultKind::BodyTooLarge => {
            ("INVALID_INPUT", false)
        }
        FaultKind::BodyTimeout => ("INVALID_INPUT", true),
        FaultKind::Unauthenticated => ("UNAUTHENTICATED", false),
        FaultKind::CrossSite => ("FORBIDDEN", false),
        FaultKind::NoRoute => ("NOT_FOUND", false),
        FaultKind::Internal { .. } => ("INTERNAL", false),
        FaultKind::Overloaded => ("OVERLOADED", true),
        FaultKind::TimedOut { may_be_applied } => ("UNKNOWN_OUTCOME", !may_be_applied),
    };
    let error = ApiError::new(code, fault.kind.status(), fault.message.clone());
    ApiError { retryable, ..error }.body()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_outcome_is_neither_a_conflict_nor_an_invitation_to_try_again() {
        let error = ApiError::from(RunError::Unknown);
        assert_eq!((error.status.as_u16(), error.retryable), (504, false));
        let fault = Fault::new(
            FaultKind::TimedOut {
                may_be_applied: true,
            },
            "late",
        );
        let body = error_shape(&fault);
        assert_eq!(body["error"]["code"], "UNKNOWN_OUTCOME");
        assert_eq!(body["error"]["retryable"], false);
    }

    #[test]
    fn an_overloaded_server_says_when_to_come_back() {
        let response = ApiError::from(RunError::Overloaded).into_response();
        assert_eq!(response.headers()["retry-after"], "1");
    }
}
