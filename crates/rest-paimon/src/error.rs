//! Errors as this protocol says them: the one place with status codes and types of resources.
//!
//! Clients choose their exception by `code` and `resourceType`: 404 of a BRANCH is another one than
//! 404 of a DATABASE. What they can't name is told in fields beside the protocol's own, which they
//! skip: `conflicts`, `currentRevision`, `missing`.

use anabranch_catalog::CatalogError;
use anabranch_http::{ErrorShape, Fault};
use anabranch_partition::{Reason, Refusal, RunError, Subject};
use anabranch_rest_trees::Protocol;
use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// The kind of thing that an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum ResourceType {
    Database,
    Table,
    View,
    Branch,
    Tag,
}

/// An error.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ErrorResponse {
    /// One sentence that names the field or thing and the remedy.
    message: String,
    /// What the error is about; null if it is about nothing that has a name.
    resource_type: Option<ResourceType>,
    resource_name: Option<String>,
    /// The HTTP status.
    code: u16,
    /// Of a merge: the tables that both sides changed, and what each has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    conflicts: Option<Value>,
    /// What the reference shows, where another revision was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    current_revision: Option<String>,
    /// Which reference isn't there: `source` or `target`.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
    /// Known not applied, and the same request may succeed later.
    #[serde(skip)]
    is_for_now: bool,
}

impl ErrorResponse {
    fn new(status: StatusCode, message: impl Into<String>) -> ErrorResponse {
        ErrorResponse {
            message: message.into(),
            resource_type: None,
            resource_name: None,
            code: status.as_u16(),
            conflicts: None,
            current_revision: None,
            missing: None,
            is_for_now: false,
        }
    }

    fn for_now(message: impl Into<String>) -> ErrorResponse {
        ErrorResponse {
            is_for_now: true,
            ..ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, message)
        }
    }

    pub(crate) fn unserved() -> ErrorResponse {
        let message = "this server does not serve this call of the Paimon protocol; it serves \
                       /v1/config and /v1/{prefix}/databases/{database}/trees";
        ErrorResponse::new(StatusCode::NOT_IMPLEMENTED, message)
    }

    /// The error of a call on a database, or of one on none.
    pub(crate) fn of(error: CatalogError, database: Option<&str>) -> ErrorResponse {
        match error {
            CatalogError::Run(error) => of_run(error, database),
            CatalogError::Storage {
                message,
                may_pass: true,
            } => ErrorResponse::for_now(message),
            CatalogError::Storage { message, .. } => {
                ErrorResponse::new(StatusCode::INTERNAL_SERVER_ERROR, message)
            }
        }
    }

    fn about(self, (kind, name): (ResourceType, String)) -> ErrorResponse {
        ErrorResponse {
            resource_type: Some(kind),
            resource_name: Some(name),
            ..self
        }
    }
}

fn of_run(error: RunError, database: Option<&str>) -> ErrorResponse {
    let message = error.to_string();
    match error {
        RunError::Refused(refusal) => of_refusal(refusal, database),
        RunError::Stale | RunError::Overloaded | RunError::Unavailable | RunError::Unwritable => {
            ErrorResponse::for_now(message)
        }
        RunError::Unknown => ErrorResponse::new(StatusCode::GATEWAY_TIMEOUT, message),
        RunError::Failed => ErrorResponse::new(StatusCode::INTERNAL_SERVER_ERROR, message),
    }
}

fn of_refusal(refusal: Refusal, database: Option<&str>) -> ErrorResponse {
    let status = match refusal.reason {
        Reason::InvalidInput => StatusCode::BAD_REQUEST,
        Reason::NotFound(_) => StatusCode::NOT_FOUND,
        Reason::AlreadyExists(_) | Reason::NotEmpty(_) | Reason::Conflict => StatusCode::CONFLICT,
        Reason::ReadOnly(_) => StatusCode::FORBIDDEN,
        Reason::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
        Reason::Gone => StatusCode::GONE,
    };
    let resource = resource(&refusal, database);
    let mut error = ErrorResponse::new(status, refusal.message);
    if let Some(Value::Object(mut details)) = refusal.details {
        let text = |value: Value| value.as_str().map(str::to_owned);
        error.conflicts = details.shift_remove("conflicts");
        error.current_revision = details.shift_remove("currentRevision").and_then(text);
        error.missing = details.shift_remove("missing").and_then(text);
    }
    match resource {
        Some(resource) => error.about(resource),
        None => error,
    }
}

/// What a refusal is about.
fn resource(refusal: &Refusal, database: Option<&str>) -> Option<(ResourceType, String)> {
    let details = refusal.details.as_ref().unwrap_or(&Value::Null);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(name) = text(&details["reference"]["name"]) {
        let kind = match details["reference"]["type"].as_str() {
            Some("TAG") => ResourceType::Tag,
            _ => ResourceType::Branch,
        };
        return Some((kind, name));
    }
    let database = database?.to_owned();
    if let Some(table) = text(&details["conflicts"][0]["table"]) {
        return Some((ResourceType::Table, format!("{database}.{table}")));
    }
    let subject = match refusal.reason {
        Reason::NotFound(subject) | Reason::AlreadyExists(subject) => subject,
        _ => return None,
    };
    match subject {
        Subject::Namespace => Some((ResourceType::Database, database)),
        Subject::Table | Subject::View => {
            let table = text(&details["table"])?;
            let kind = match subject {
                Subject::View => ResourceType::View,
                _ => ResourceType::Table,
            };
            Some((kind, format!("{database}.{table}")))
        }
        _ => None,
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        tracing::debug!(code = self.code, message = self.message, "refused");
        let status = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let is_for_now = self.is_for_now;
        let mut response = (status, Json(self)).into_response();
        if is_for_now {
            let second = HeaderValue::from_static("1");
            response.headers_mut().insert(RETRY_AFTER, second);
        }
        response
    }
}

/// This protocol's words for what can't be done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Errors;

impl Protocol for Errors {
    fn refuse(error: CatalogError, database: &str) -> Response {
        ErrorResponse::of(error, Some(database)).into_response()
    }
}

impl ErrorShape for Errors {
    fn body(&self, fault: &Fault) -> Value {
        let error = ErrorResponse::new(fault.kind.status(), fault.message.clone());
        json!(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(reason: Reason, details: Value) -> Value {
        let refusal = Refusal {
            details: Some(details),
            ..Refusal::new(reason, "why")
        };
        json!(ErrorResponse::of(refusal.into(), Some("training")))
    }

    #[test]
    fn a_refusal_is_told_by_the_resource_that_it_is_about() {
        let tag = json!({"reference": {"type": "TAG", "name": "v1"}});
        let branch = json!({"reference": {"type": "BRANCH", "name": "x"}, "missing": "source"});
        let stale = json!({"reference": {"type": "BRANCH", "name": "x"}, "currentRevision": "0-7"});
        let conflicts = json!({"conflicts": [{"table": "features"}, {"table": "labels"}]});
        let none = json!({});
        let expected = [
            (
                Reason::NotFound(Subject::Namespace),
                &none,
                404,
                json!(["DATABASE", "training"]),
            ),
            (
                Reason::NotFound(Subject::Catalog),
                &none,
                404,
                json!([null, null]),
            ),
            (
                Reason::NotFound(Subject::Branch),
                &branch,
                404,
                json!(["BRANCH", "x"]),
            ),
            (
                Reason::AlreadyExists(Subject::Tag),
                &tag,
                409,
                json!(["TAG", "v1"]),
            ),
            (Reason::Conflict, &stale, 409, json!(["BRANCH", "x"])),
            (
                Reason::Conflict,
                &conflicts,
                409,
                json!(["TABLE", "training.features"]),
            ),
            (Reason::InvalidInput, &none, 400, json!([null, null])),
            (
                Reason::ReadOnly(Subject::Tag),
                &tag,
                403,
                json!(["TAG", "v1"]),
            ),
            (Reason::KeyReused, &none, 422, json!([null, null])),
            (Reason::Gone, &branch, 410, json!(["BRANCH", "x"])),
        ];
        for (reason, details, code, resource) in expected {
            let told = told(reason, details.clone());
            assert_eq!(told["code"], code, "{reason:?}");
            assert_eq!(
                json!([told["resourceType"], told["resourceName"]]),
                resource
            );
            for field in ["conflicts", "currentRevision", "missing"] {
                assert_eq!(told.get(field), details.get(field), "{field}");
            }
        }
    }

    #[test]
    fn only_what_is_known_not_applied_may_be_sent_again_and_unsure_is_no_conflict() {
        for error in [
            RunError::Stale,
            RunError::Overloaded,
            RunError::Unavailable,
            RunError::Unwritable,
        ] {
            let response = ErrorResponse::of(error.into(), None).into_response();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(response.headers()[RETRY_AFTER], "1");
        }
        for (error, status) in [(RunError::Unknown, 504), (RunError::Failed, 500)] {
            let response = ErrorResponse::of(error.into(), None).into_response();
            assert_eq!(response.status().as_u16(), status);
            assert!(!response.headers().contains_key(RETRY_AFTER));
        }
    }
}
