//! Creates a branch or tag.

#![allow(unused_qualifications, reason = "in what utoipa::path expands to")]

use anabranch_catalog::reference::ReferenceName;
use anabranch_catalog::{Catalog, NewReference};
use anabranch_http::{Json, PathNames, RequestContext};
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::answer::{caller, database};
use crate::protocol::Protocol;
use crate::reference::{ReferenceAnswer, shown};
use crate::request::{Source, kind};

/// A branch or tag to be created.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreateReference {
    /// 1 to 128 letters, digits, `.`, `_` and `-`, a letter or digit first.
    name: String,
    /// `BRANCH` or `TAG`.
    r#type: String,
    /// Where it starts.
    source: Source,
    /// The revision that the source has to show.
    expected_revision: Option<String>,
}

/// Creates a branch or tag, in time and space that don't depend on the number of tables.
#[utoipa::path(post, path = "/trees", operation_id = "createReference",
    request_body = CreateReference,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition harmless")),
    responses((status = 200, body = ReferenceAnswer)))]
pub(crate) async fn create<P: Protocol>(
    State(catalog): State<Catalog>,
    context: RequestContext,
    names: PathNames<2>,
    Json { value, raw }: Json<CreateReference>,
) -> Response {
    let database = database(names);
    let caller = caller(&context, &raw);
    let made = async {
        let new = NewReference {
            name: ReferenceName {
                kind: kind("type", &value.r#type)?,
                name: value.name,
            },
            source: value.source.read()?,
            expected: value.expected_revision,
        };
        let made = catalog
            .create_reference(&caller, &database.warehouse()?, &database.name, &new)
            .await?;
        Ok(shown(made.value))
    };
    database.answer::<P>(made).await
}
