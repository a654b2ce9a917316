//! `/v1/config`: where a client begins.

#![allow(unused_qualifications, reason = "in what utoipa::path expands to")]

use std::collections::BTreeMap;

use anabranch_catalog::{CatalogError, CatalogInfo, Warehouse};
use anabranch_http::{Query, decode_name};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::App;
use crate::error::ErrorResponse;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ConfigQuery {
    /// `catalog` or `metalake.catalog`; the server's own if absent.
    warehouse: Option<String>,
}

/// What a client adds to its own options: `defaults` below them, `overrides` above.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConfigResponse {
    defaults: BTreeMap<String, String>,
    /// `prefix`: what the paths of all other calls begin with.
    overrides: BTreeMap<String, String>,
}

/// Tells a client the prefix of a warehouse.
#[utoipa::path(get, path = "/paimon/v1/config", operation_id = "paimon-getConfig", tag = "paimon",
    params(ConfigQuery),
    responses((status = 200, body = ConfigResponse), (status = "default", body = ErrorResponse)))]
pub(crate) async fn show(State(app): State<App>, Query(query): Query<ConfigQuery>) -> Response {
    let named = query.warehouse.filter(|warehouse| !warehouse.is_empty());
    let name = named.as_deref().unwrap_or(app.default_warehouse);
    match find(&app, name).await {
        Ok(catalog) => {
            let prefix = ("prefix".to_owned(), catalog.warehouse.prefix());
            let config = ConfigResponse {
                defaults: BTreeMap::new(),
                overrides: BTreeMap::from([prefix]),
            };
            Json(config).into_response()
        }
        Err(error) => ErrorResponse::of(error, None).into_response(),
    }
}

/// The warehouse of a name. The Python client encodes the parameter twice, so a name that isn't
/// one as it stands is decoded once more.
async fn find(app: &App, name: &str) -> Result<CatalogInfo, CatalogError> {
    let warehouse = match (Warehouse::parse(name), decode_name(name)) {
        (Err(_), Some(decoded)) => Warehouse::parse(&decoded)?,
        (parsed, _) => parsed?,
    };
    app.catalog.load_catalog(&warehouse).await
}
