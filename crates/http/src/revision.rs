//! The name of the state that an answer shows.

use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue};

const REVISION: HeaderName = HeaderName::from_static("anabranch-revision");

/// The answer with `Anabranch-Revision`: the opaque name of the state of a reference that it shows.
pub fn at_revision(revision: &str, answer: impl IntoResponse) -> Response {
    let mut response = answer.into_response();
    if let Ok(value) = HeaderValue::from_str(revision) {
        response.headers_mut().insert(REVISION, value);
    }
    response
}
