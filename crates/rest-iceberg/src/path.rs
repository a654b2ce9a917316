//! What the path names: a warehouse, a namespace, a table or view.

use anabranch_catalog::{Identifier, Namespace, Warehouse};
use anabranch_http::PathNames;
use axum::extract::FromRequestParts;
use http::request::Parts;

use crate::error::Problem;

/// Joins the levels of a namespace in a path or parameter (specification: `namespace-separator`).
const LEVEL_SEPARATOR: char = '\u{1f}';

/// `/v1/{prefix}/…`
pub(crate) struct InWarehouse(pub(crate) Warehouse);

/// `/v1/{prefix}/namespaces/{namespace}/…`
pub(crate) struct InNamespace(pub(crate) Warehouse, pub(crate) Namespace);

/// `/v1/{prefix}/namespaces/{namespace}/tables/{table}/…`, or the same with a view.
pub(crate) struct At(pub(crate) Warehouse, pub(crate) Identifier);

impl<S: Send + Sync> FromRequestParts<S> for InWarehouse {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let PathNames([prefix]) = PathNames::from_request_parts(parts, state).await?;
        Ok(InWarehouse(Warehouse::parse(&prefix)?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InNamespace {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let PathNames([prefix, namespace]) = PathNames::from_request_parts(parts, state).await?;
        Ok(InNamespace(
            Warehouse::parse(&prefix)?,
            namespace_of(&namespace)?,
        ))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for At {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let PathNames([prefix, namespace, name]) =
            PathNames::from_request_parts(parts, state).await?;
        let identifier = Identifier::new(namespace_of(&namespace)?, name)?;
        Ok(At(Warehouse::parse(&prefix)?, identifier))
    }
}

/// A namespace as it stands in a path or in the parameter `parent`.
pub(crate) fn namespace_of(text: &str) -> Result<Namespace, Problem> {
    let levels = text.split(LEVEL_SEPARATOR).map(str::to_owned);
    Ok(Namespace::new(levels.collect())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_split_at_the_unit_separator_and_nowhere_else() {
        let namespace = namespace_of("a.b/c\u{1f}d e").expect("a namespace");
        assert_eq!(namespace.levels(), ["a.b/c", "d e"]);
        for text in ["", "\u{1f}", "a\u{1f}", "a\u{1f}\u{1f}b"] {
            assert_eq!(namespace_of(text).expect_err(text).status, 400);
        }
    }
}
