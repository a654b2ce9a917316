//! Views: list, create, load, drop. Their commits are in `commit`.

use anabranch_catalog::{Document, Identifier, NewView, Pointer, PointerKind};
use anabranch_http::{Json, Query, RequestContext};
use axum::extract::State;

use crate::App;
use crate::answer::{Answered, at_revision, json, no_content, with_metadata};
use crate::caller::caller;
use crate::path::{At, InNamespace};
use crate::wire::listing::{ListIdentifiersResponse, PageQuery};
use crate::wire::views::{CreateViewRequest, ViewAccess};

pub(crate) async fn list(
    State(app): State<App>,
    InNamespace(warehouse, namespace): InNamespace,
    Query(query): Query<PageQuery>,
) -> Answered {
    let page = query.into();
    let mut listing = app
        .catalog
        .list_pointers(&warehouse, &namespace, PointerKind::View, &page)
        .await?;
    let revision = listing.revision.take().unwrap_or_default();
    let response = json(ListIdentifiersResponse::from(listing));
    Ok(at_revision(&revision, response))
}

pub(crate) async fn create(
    State(app): State<App>,
    InNamespace(warehouse, namespace): InNamespace,
    context: RequestContext,
    Json { value, raw }: Json<CreateViewRequest>,
) -> Answered {
    let new = NewView {
        identifier: Identifier::new(namespace, value.name)?,
        location: value.location,
        schema: value.schema,
        version: value.view_version,
        properties: value.properties.unwrap_or_default(),
    };
    let caller = caller(&context, &raw);
    let created = app.catalog.create_view(&caller, &warehouse, new).await?;
    shown(&created.pointer, &created.document)
}

pub(crate) async fn load(State(app): State<App>, At(warehouse, identifier): At) -> Answered {
    let pointer = app
        .catalog
        .pointer(&warehouse, &identifier, PointerKind::View)
        .await?;
    let document = app.catalog.document(&pointer).await?;
    shown(&pointer, &document)
}

/// The answer that shows a view.
pub(crate) fn shown(pointer: &Pointer, document: &Document) -> Answered {
    let access = ViewAccess::default();
    let metadata = document.view_seen_in(&pointer.identifier.namespace)?;
    let response = with_metadata(Some(&pointer.metadata_location), metadata, &access);
    Ok(at_revision(&pointer.revision, response))
}

pub(crate) async fn exists(State(app): State<App>, At(warehouse, identifier): At) -> Answered {
    let pointer = app
        .catalog
        .pointer(&warehouse, &identifier, PointerKind::View)
        .await?;
    Ok(at_revision(&pointer.revision, no_content()))
}

pub(crate) async fn drop(
    State(app): State<App>,
    At(warehouse, identifier): At,
    context: RequestContext,
) -> Answered {
    let caller = caller(&context, b"");
    let dropped = app
        .catalog
        .drop_pointer(&caller, &warehouse, &identifier, PointerKind::View, false)
        .await?;
    Ok(at_revision(&dropped.revision, no_content()))
}
