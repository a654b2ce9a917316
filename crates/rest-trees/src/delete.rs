//! Deletes a branch or tag.

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
use crate::request::{self, kind};

/// What a reference has to be to be deleted.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DeleteReference {
    /// `BRANCH` or `TAG`.
    r#type: Option<String>,
    /// The revision that it has to show.
    expected_revision: Option<String>,
}

/// Deletes a branch or tag; answers what it was. What others need of it stays.
#[utoipa::path(delete, path = "/trees/{name}", operation_id = "deleteReference",
    request_body = Option<DeleteReference>,
    params(("name" = String, Path),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition harmless")),
    responses((status = 200, body = ReferenceAnswer)))]
pub(crate) async fn delete<P: Protocol>(
    State(catalog): State<Catalog>,
    context: RequestContext,
    names: PathNames<3>,
    body: Option<Json<DeleteReference>>,
) -> Response {
    let (database, name) = below(names);
    let (wanted, raw) = body.map_or_else(Default::default, |Json { value, raw }| (value, raw));
    let caller = caller(&context, &raw);
    let deleted = async {
        let name = request::name("name", name)?;
        let wanted_kind = wanted.r#type.map(|text| kind("type", &text)).transpose()?;
        let warehouse = database.warehouse()?;
        let expected = wanted.expected_revision.as_deref();
        let deleted = catalog
            .delete_reference(
                &caller,
                &warehouse,
                &database.name,
                &name,
                wanted_kind,
                expected,
            )
            .await?;
        Ok(shown(deleted.value))
    };
    database.answer::<P>(deleted).await
}
