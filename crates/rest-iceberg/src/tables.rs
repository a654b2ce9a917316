//! Tables: list, create, stage, load, drop. Commits are in `commit` and `transactions`.

use anabranch_catalog::{Committed, Identifier, NewTable, PointerKind, Warehouse};
use anabranch_http::{Json, Query, RequestContext, is_unchanged};
use axum::extract::State;

use crate::App;
use crate::answer::{
    Access, Answered, Snapshots, at_revision, json, metadata_of, no_content, not_modified, tagged,
    with_metadata,
};
use crate::caller::caller;
use crate::path::{At, InNamespace};
use crate::wire::listing::{ListIdentifiersResponse, PageQuery};
use crate::wire::tables::{CreateTableRequest, DropTableQuery, LoadTableQuery};

pub(crate) async fn list(
    State(app): State<App>,
    InNamespace(warehouse, namespace): InNamespace,
    Query(query): Query<PageQuery>,
) -> Answered {
    let page = query.into();
    let mut listing = app
        .catalog
        .list_pointers(&warehouse, &namespace, PointerKind::Table, &page)
        .await?;
    let revision = listing.revision.take().unwrap_or_default();
    let response = json(ListIdentifiersResponse::from(listing));
    Ok(at_revision(&revision, response))
}

/// Creates a table, or with `stage-create` makes the metadata that a commit with `assert-create`
/// begins with.
pub(crate) async fn create(
    State(app): State<App>,
    InNamespace(warehouse, namespace): InNamespace,
    context: RequestContext,
    Json { value, raw }: Json<CreateTableRequest>,
) -> Answered {
    let new = NewTable {
        identifier: Identifier::new(namespace, value.name)?,
        location: value.location,
        schema: value.schema,
        partition_spec: value.partition_spec,
        write_order: value.write_order,
        properties: value.properties.unwrap_or_default(),
    };
    if value.stage_create.unwrap_or(false) {
        return stage(&app, &warehouse, &context, new).await;
    }
    let caller = caller(&context, &raw);
    let created = app.catalog.create_table(&caller, &warehouse, new).await?;
    loaded(&context, &created)
}

async fn stage(
    app: &App,
    warehouse: &Warehouse,
    context: &RequestContext,
    new: NewTable,
) -> Answered {
    let staged = app.catalog.stage_table(warehouse, new).await?;
    let (document, settings) = staged.value;
    let table = document.table()?;
    let access = Access::of(context, &settings, table.location());
    let response = with_metadata(None, document.bytes().clone(), &access);
    Ok(at_revision(&staged.revision, response))
}

pub(crate) async fn load(
    State(app): State<App>,
    At(warehouse, identifier): At,
    Query(query): Query<LoadTableQuery>,
    context: RequestContext,
) -> Answered {
    let snapshots = query.snapshots()?;
    let catalog = &app.catalog;
    let pointer = catalog
        .pointer(&warehouse, &identifier, PointerKind::Table)
        .await?;
    let access = Access::of(&context, &pointer.settings, &pointer.location);
    let etag = access.etag(&pointer, snapshots);
    let response = if is_unchanged(&context.headers, &etag) {
        not_modified()
    } else {
        let document = catalog.document(&pointer).await?;
        let metadata = metadata_of(&pointer, &document, snapshots)?;
        with_metadata(Some(&pointer.metadata_location), metadata, &access)
    };
    Ok(at_revision(&pointer.revision, tagged(etag, response)))
}

/// The answer to a load, of a table that was just created or registered.
pub(crate) fn loaded(context: &RequestContext, table: &Committed) -> Answered {
    let pointer = &table.pointer;
    let access = Access::of(context, &pointer.settings, &pointer.location);
    let etag = access.etag(pointer, Snapshots::All);
    let metadata = metadata_of(pointer, &table.document, Snapshots::All)?;
    let response = with_metadata(Some(&pointer.metadata_location), metadata, &access);
    Ok(at_revision(&pointer.revision, tagged(etag, response)))
}

pub(crate) async fn exists(State(app): State<App>, At(warehouse, identifier): At) -> Answered {
    let pointer = app
        .catalog
        .pointer(&warehouse, &identifier, PointerKind::Table)
        .await?;
    Ok(at_revision(&pointer.revision, no_content()))
}

/// Without `purgeRequested` the files stay.
pub(crate) async fn drop(
    State(app): State<App>,
    At(warehouse, identifier): At,
    Query(query): Query<DropTableQuery>,
    context: RequestContext,
) -> Answered {
    let purge = query.purge()?;
    let caller = caller(&context, b"");
    let dropped = app
        .catalog
        .drop_pointer(&caller, &warehouse, &identifier, PointerKind::Table, purge)
        .await?;
    Ok(at_revision(&dropped.revision, no_content()))
}
