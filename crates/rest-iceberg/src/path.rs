//! What the path names: a warehouse, a namespace, a table or view.

use anabranch_catalog::{Identifier, Namespace, Warehouse};
use anabranch_http::PathNames;
use axum::extract::FromRequestParts;
use http::request::Parts;

use crate::App;
use crate::error::Problem;

/// Joins the levels of a namespace in a path or parameter (specification: `namespace-separator`).
const LEVEL_SEPARATOR: char = '\u{1f}';

/// `/v1/{prefix}/…`
pub(crate) struct InWarehouse(pub(crate) Warehouse);

/// `/v1/{prefix}/namespaces/{namespace}/…`
pub(crate) struct InNamespace(pub(crate) Warehouse, pub(crate) Namespace);

/// `/v1/{prefix}/namespaces/{namespace}/tables/{table}/…`, or the same with a view.
pub(crate) struct At(pub(crate) Warehouse, pub(crate) Identifier);

impl FromRequestParts<App> for InWarehouse {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &App) -> Result<Self, Problem> {
        let PathNames([prefix]) = PathNames::from_request_parts(parts, state).await?;
        Ok(InWarehouse(Warehouse::parse_selected(&prefix)?))
    }
}

impl FromRequestParts<App> for InNamespace {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let PathNames([prefix, namespace]) = PathNames::from_request_parts(parts, app).await?;
        let warehouse = Warehouse::parse_selected(&prefix)?;
        let namespace = namespace_of(&namespace)?;
        let namespace = app.catalog.joined(&warehouse, namespace).await?;
        Ok(InNamespace(warehouse, namespace))
    }
}

impl FromRequestParts<App> for At {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let PathNames([prefix, namespace, name]) =
            PathNames::from_request_parts(parts, app).await?;
        let warehouse = Warehouse::parse_selected(&prefix)?;
        let identifier = Identifier::new(namespace_of(&namespace)?, name)?;
        let identifier = joined(app, &warehouse, identifier).await?;
        Ok(At(warehouse, identifier))
    }
}

/// A name whose selector may have been split at dots.
pub(crate) async fn joined(
    app: &App,
    warehouse: &Warehouse,
    identifier: Identifier,
) -> Result<Identifier, Problem> {
    let Identifier { namespace, name } = identifier;
    let namespace = app.catalog.joined(warehouse, namespace).await?;
    Ok(Identifier { namespace, name })
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
