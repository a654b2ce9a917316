//! Calls of the protocol that this server doesn't serve.

use axum::response::{IntoResponse, Response};

use crate::error::ErrorResponse;

/// 501: a 404 would tell a client that a table isn't there.
pub(crate) async fn refuse() -> Response {
    ErrorResponse::unserved().into_response()
}
