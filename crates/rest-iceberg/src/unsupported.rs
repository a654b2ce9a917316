//! What this server doesn't do, where clients may ask for it all the same.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::json;

use crate::error::Problem;

/// Tokens are given out by an identity provider; the answer has the shape that OAuth clients read
/// (specification: `OAuthError`).
pub(crate) async fn token() -> Response {
    let body = json!({
        "error": "unsupported_grant_type",
        "error_description": "this server gives out no tokens; leave the client's `credential` out, \
                              or name a token server in `oauth2-server-uri`",
    });
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}

/// Clients plan their scans themselves.
pub(crate) async fn plan() -> Problem {
    Problem::unsupported("this server does not plan scans; plan on the client's side")
}
