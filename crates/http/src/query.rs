//! Query parameters.

use std::error::Error;

use axum::extract::FromRequestParts;
use http::Uri;
use http::request::Parts;
use serde::de::DeserializeOwned;

use crate::fault::Fault;
use crate::path::refuse_nul;

/// The query as a struct; a 400 in the protocol's shape if it doesn't fit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Fault> {
        refuse_nuls(&parts.uri)?;
        axum::extract::Query::try_from_uri(&parts.uri)
            .map(|axum::extract::Query(value)| Query(value))
            .map_err(|rejection| match rejection.source() {
                Some(cause) => Fault::invalid(format!("the query does not fit: {cause}")),
                None => Fault::invalid(rejection.body_text()),
            })
    }
}

fn refuse_nuls(uri: &Uri) -> Result<(), Fault> {
    if !uri.query().is_some_and(|query| query.contains("%00")) {
        return Ok(());
    }
    let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri);
    for (field, value) in pairs.into_iter().flat_map(|pairs| pairs.0) {
        refuse_nul(&field.replace('\0', "\u{fffd}"), &value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FaultKind;

    #[test]
    fn a_nul_character_is_refused_and_its_parameter_named() {
        let refused = refuse_nuls(&Uri::from_static("/v1/changes?limit=1&partition=a%00b"));
        let fault = refused.expect_err("a NUL");
        assert_eq!(fault.kind, FaultKind::InvalidInput);
        assert!(fault.message.contains("`partition`"), "{fault}");
        assert_eq!(
            refuse_nuls(&Uri::from_static("/v1/changes?after=%2500")),
            Ok(())
        );
    }
}
