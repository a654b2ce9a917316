//! Protects a branch or tag from being deleted, or lets it be.

#![allow(unused_qualifications, reason = "in what utoipa::path expands to")]

use anabranch_catalog::Catalog;
use anabranch_http::{Json, PathNames, RequestContext};
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::answer::{below, caller};
use crate::protocol::Protocol;
use crate::reference::{ReferenceAnswer, shown};
use crate::request;

/// What a reference is to become.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ChangeReference {
    /// Whether it can't be deleted.
    protected: bool,
}

/// Protects a branch or tag from being deleted, or lets it be.
#[utoipa::path(patch, path = "/trees/{name}", operation_id = "changeReference",
    request_body = ChangeReference,
    params(("name" = String, Path),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition harmless")),
    responses((status = 200, body = ReferenceAnswer)))]
pub(crate) async fn change<P: Protocol>(
    State(catalog): State<Catalog>,
    context: RequestContext,
    names: PathNames<3>,
    Json { value, raw }: Json<ChangeReference>,
) -> Response {
    let (database, name) = below(names);
    let caller = caller(&context, &raw);
    let changed = async {
        let name = request::name("name", name)?;
        let warehouse = database.warehouse()?;
        let changed = catalog
            .protect_reference(&caller, &warehouse, &database.name, &name, value.protected)
            .await?;
        Ok(shown(changed.value))
    };
    database.answer::<P>(changed).await
}
