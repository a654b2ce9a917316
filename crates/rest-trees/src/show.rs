//! Shows a branch or tag.

#![allow(unused_qualifications, reason = "in what utoipa::path expands to")]

use anabranch_catalog::Catalog;
use anabranch_http::PathNames;
use axum::extract::State;
use axum::response::Response;

use crate::answer::below;
use crate::protocol::Protocol;
use crate::reference::{ReferenceAnswer, shown};
use crate::request;

/// Shows a branch or tag.
#[utoipa::path(get, path = "/trees/{name}", operation_id = "getReference",
    params(("name" = String, Path)), responses((status = 200, body = ReferenceAnswer)))]
pub(crate) async fn show<P: Protocol>(
    State(catalog): State<Catalog>,
    names: PathNames<3>,
) -> Response {
    let (database, name) = below(names);
    let found = async {
        let name = request::name("name", name)?;
        let warehouse = database.warehouse()?;
        let info = catalog.reference(&warehouse, &database.name, &name).await?;
        Ok(shown(info))
    };
    database.answer::<P>(found).await
}
