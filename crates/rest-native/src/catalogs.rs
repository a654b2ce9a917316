//! Catalogs: `/v1/catalogs`.

#![allow(unused_qualifications, reason = "in what utoipa::path expands to")]

use std::collections::BTreeMap;

use anabranch_catalog::{CatalogInfo, DEFAULT_METALAKE, NewCatalog, Page, Warehouse};
use anabranch_http::{Json, PathNames, Query, RequestContext};
use anabranch_partition::Refusal;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::error::ApiError;
use crate::{Shared, caller};

/// The store that catalogs are placed in unless they name another.
const MAIN_STORE: &str = "main";

/// A catalog to be created.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreateCatalog {
    /// 1 to 64 letters, digits, `_` or `-`.
    name: String,
    /// The metalake; `default` if absent.
    metalake: Option<String>,
    /// The store; `main` if absent.
    store: Option<String>,
    /// Where its tables go, such as `s3://bucket/path`.
    location: Option<String>,
    /// Storage settings (`s3.endpoint`, …) and free properties.
    #[serde(default)]
    properties: BTreeMap<String, String>,
}

/// A catalog.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CatalogAnswer {
    name: String,
    metalake: String,
    /// Its id, which is also its partition's: a decimal number.
    id: String,
    store: String,
    location: String,
    /// Secrets are masked.
    properties: BTreeMap<String, String>,
}

impl From<CatalogInfo> for CatalogAnswer {
    fn from(info: CatalogInfo) -> CatalogAnswer {
        CatalogAnswer {
            id: info.id.0.to_string(),
            store: MAIN_STORE.to_owned(),
            properties: info.shown_properties(),
            name: info.warehouse.catalog,
            metalake: info.warehouse.metalake,
            location: info.location,
        }
    }
}

/// Catalogs of a metalake.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CatalogList {
    catalogs: Vec<CatalogAnswer>,
    next_page_token: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListCatalogs {
    /// The metalake; `default` if absent.
    metalake: Option<String>,
    /// Absent: everything in one answer. Empty: the first page. Else: `nextPageToken`.
    page_token: Option<String>,
    /// Catalogs in a page, from 1; more than 1000 are taken as 1000.
    #[param(minimum = 1)]
    page_size: Option<i64>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DropCatalog {
    /// Also drops what is in it; files stay.
    #[serde(default)]
    cascade: bool,
}

/// Lists the catalogs of a metalake.
#[utoipa::path(get, path = "/v1/catalogs", tag = "catalogs", params(ListCatalogs),
    responses((status = 200, body = CatalogList), (status = "default", body = crate::openapi::ErrorAnswer)))]
pub(crate) async fn list(
    State(native): State<Shared>,
    Query(query): Query<ListCatalogs>,
) -> Result<axum::Json<CatalogList>, ApiError> {
    let metalake = query.metalake.as_deref().unwrap_or(DEFAULT_METALAKE);
    let page = Page {
        token: query.page_token,
        // What is below 1 is refused where sizes are checked.
        size: query
            .page_size
            .map(|size| u32::try_from(size.min(1000)).unwrap_or(0)),
    };
    let listing = native.catalog.list_catalogs(metalake, &page).await?;
    Ok(axum::Json(CatalogList {
        catalogs: listing.items.into_iter().map(CatalogAnswer::from).collect(),
        next_page_token: listing.next,
    }))
}

/// Creates a catalog.
#[utoipa::path(post, path = "/v1/catalogs", tag = "catalogs", request_body = CreateCatalog,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition harmless")),
    responses((status = 200, body = CatalogAnswer), (status = "default", body = crate::openapi::ErrorAnswer)))]
pub(crate) async fn create(
    State(native): State<Shared>,
    context: RequestContext,
    Json { value, raw }: Json<CreateCatalog>,
) -> Result<axum::Json<CatalogAnswer>, ApiError> {
    if let Some(store) = value.store.filter(|store| store != MAIN_STORE) {
        let message = format!("`store` names {store:?}; this server has only {MAIN_STORE:?}");
        return Err(Refusal::invalid(message).into());
    }
    let warehouse = Warehouse {
        reference: None,
        metalake: value
            .metalake
            .unwrap_or_else(|| DEFAULT_METALAKE.to_owned()),
        catalog: value.name,
    };
    let own_folder = |base: &String| format!("{base}/{}.{}", warehouse.metalake, warehouse.catalog);
    let location = value
        .location
        .or_else(|| native.catalogs_location.as_ref().map(own_folder))
        .ok_or_else(|| {
            let message = "`location` is missing: say where the catalog's tables go, such as \
                           s3://bucket/path";
            ApiError::from(Refusal::invalid(message))
        })?;
    let new = NewCatalog {
        warehouse,
        location,
        properties: value.properties,
    };
    let caller = caller(&context, &raw);
    let created = native.catalog.create_catalog(&caller, &new).await?;
    Ok(axum::Json(created.value.into()))
}

/// Shows a catalog.
#[utoipa::path(get, path = "/v1/catalogs/{catalog}", tag = "catalogs",
    params(("catalog" = String, Path, description = "`catalog` or `metalake.catalog`")),
    responses((status = 200, body = CatalogAnswer), (status = "default", body = crate::openapi::ErrorAnswer)))]
pub(crate) async fn show(
    State(native): State<Shared>,
    PathNames([catalog]): PathNames<1>,
) -> Result<axum::Json<CatalogAnswer>, ApiError> {
    let warehouse = Warehouse::parse(&catalog)?;
    let info = native.catalog.load_catalog(&warehouse).await?;
    Ok(axum::Json(info.into()))
}

/// What a catalog is to become.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ChangeCatalog {
    /// Its new name, without the metalake, in which it stays.
    name: String,
}

/// Renames a catalog. What is in it stays where it is.
#[utoipa::path(patch, path = "/v1/catalogs/{catalog}", tag = "catalogs", request_body = ChangeCatalog,
    params(("catalog" = String, Path, description = "`catalog` or `metalake.catalog`"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition harmless")),
    responses((status = 204), (status = "default", body = crate::openapi::ErrorAnswer)))]
pub(crate) async fn change(
    State(native): State<Shared>,
    context: RequestContext,
    PathNames([catalog]): PathNames<1>,
    Json { value, raw }: Json<ChangeCatalog>,
) -> Result<StatusCode, ApiError> {
    let warehouse = Warehouse::parse(&catalog)?;
    let caller = caller(&context, &raw);
    native
        .catalog
        .rename_catalog(&caller, &warehouse, &value.name)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Drops a catalog.
#[utoipa::path(delete, path = "/v1/catalogs/{catalog}", tag = "catalogs",
    params(("catalog" = String, Path, description = "`catalog` or `metalake.catalog`"), DropCatalog,
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition harmless")),
    responses((status = 204), (status = "default", body = crate::openapi::ErrorAnswer)))]
pub(crate) async fn drop_catalog(
    State(native): State<Shared>,
    context: RequestContext,
    PathNames([catalog]): PathNames<1>,
    Query(query): Query<DropCatalog>,
) -> Result<StatusCode, ApiError> {
    let warehouse = Warehouse::parse(&catalog)?;
    let caller = caller(&context, &[]);
    native
        .catalog
        .drop_catalog(&caller, &warehouse, query.cascade)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
