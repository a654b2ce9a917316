//! Query parameters.

use std::error::Error;

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::de::DeserializeOwned;

use crate::fault::Fault;

/// The query as a struct; a 400 in the protocol's shape if it doesn't fit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Fault> {
        axum::extract::Query::try_from_uri(&parts.uri)
            .map(|axum::extract::Query(value)| Query(value))
            .map_err(|rejection| match rejection.source() {
                Some(cause) => Fault::invalid(format!("the query does not fit: {cause}")),
                None => Fault::invalid(rejection.body_text()),
            })
    }
}
