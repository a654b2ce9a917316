//! Lists branches and tags.

#![allow(unused_qualifications, reason = "in what utoipa::path expands to")]

use anabranch_catalog::reference::ReferenceKind;
use anabranch_catalog::{Catalog, Page};
use anabranch_http::{PathNames, Query};
use anabranch_partition::Refusal;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::database;
use crate::protocol::Protocol;
use crate::reference::Reference;
use crate::request::quoted;

/// How references are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct ListReferences {
    /// `branch` or `tag`; both if absent.
    r#type: Option<String>,
    /// References at most; 0 or absent for as many as the server likes.
    max_results: Option<i64>,
    /// The `nextPageToken` of the page before.
    page_token: Option<String>,
}

/// A page of references.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReferenceList {
    references: Vec<Reference>,
    /// Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

/// Lists branches and tags in the order of their names, `main` among them.
#[utoipa::path(get, path = "/trees", operation_id = "listReferences", params(ListReferences),
    responses((status = 200, body = ReferenceList)))]
pub(crate) async fn list<P: Protocol>(
    State(catalog): State<Catalog>,
    names: PathNames<2>,
    Query(query): Query<ListReferences>,
) -> Response {
    let database = database(names);
    let listed = async {
        let wanted = wanted(query.r#type.as_deref())?;
        let page = page(query.max_results, query.page_token)?;
        let listing = catalog
            .list_references(&database.warehouse()?, &database.name, wanted, &page)
            .await?;
        let list = ReferenceList {
            references: listing.items.into_iter().map(Reference::from).collect(),
            next_page_token: listing.next,
        };
        Ok(Json(list).into_response())
    };
    database.answer::<P>(listed).await
}

fn wanted(text: Option<&str>) -> Result<Option<ReferenceKind>, Refusal> {
    match text {
        None | Some("") => Ok(None),
        Some("branch") => Ok(Some(ReferenceKind::Branch)),
        Some("tag") => Ok(Some(ReferenceKind::Tag)),
        Some(other) => Err(Refusal::invalid(format!(
            "`type` is {}; it is branch or tag, or left out for both",
            quoted(other)
        ))),
    }
}

/// A page as these calls ask for one: always a page, however large.
pub(crate) fn page(max_results: Option<i64>, token: Option<String>) -> Result<Page, Refusal> {
    let size = match max_results {
        None | Some(0) => None,
        Some(size) if size < 0 => {
            return Err(Refusal::invalid(format!(
                "`maxResults` is {size}; it is at least 1, or left out for as many as the server \
                 likes"
            )));
        }
        Some(size) => Some(u32::try_from(size).unwrap_or(u32::MAX)),
    };
    Ok(Page {
        token: Some(token.unwrap_or_default()),
        size,
    })
}
