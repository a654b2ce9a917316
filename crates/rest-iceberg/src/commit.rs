//! Commits to one table or view.

use anabranch_catalog::{Identifier, TableChange, Warehouse};
use anabranch_http::{Json, RequestContext};
use axum::extract::State;

use crate::App;
use crate::answer::{
    Access, Answered, Nothing, Snapshots, at_revision, metadata_of, tagged, with_metadata,
};
use crate::caller::caller;
use crate::error::Problem;
use crate::path::{At, joined};
use crate::views;
use crate::wire::identifiers::WireIdentifier;
use crate::wire::tables::CommitTableRequest;
use crate::wire::views::CommitViewRequest;

pub(crate) async fn commit_table(
    State(app): State<App>,
    At(warehouse, identifier): At,
    context: RequestContext,
    Json { value, raw }: Json<CommitTableRequest>,
) -> Answered {
    check_same(&app, &warehouse, value.identifier, &identifier).await?;
    let change = TableChange {
        identifier,
        requirements: value.requirements,
        updates: value.updates,
    };
    let caller = caller(&context, &raw);
    let committed = app
        .catalog
        .commit_table(&caller, &warehouse, change)
        .await?;
    let pointer = &committed.pointer;
    let metadata = metadata_of(pointer, &committed.document, Snapshots::All)?;
    let response = with_metadata(Some(&pointer.metadata_location), metadata, &Nothing {});
    let access = Access::of(&context, &pointer.settings, &pointer.location);
    let etag = access.etag(pointer, Snapshots::All);
    Ok(at_revision(&pointer.revision, tagged(etag, response)))
}

pub(crate) async fn commit_view(
    State(app): State<App>,
    At(warehouse, identifier): At,
    context: RequestContext,
    Json { value, raw }: Json<CommitViewRequest>,
) -> Answered {
    check_same(&app, &warehouse, value.identifier, &identifier).await?;
    let requirements = value.requirements.unwrap_or_default();
    let caller = caller(&context, &raw);
    let committed = app
        .catalog
        .commit_view(&caller, &warehouse, identifier, requirements, value.updates)
        .await?;
    views::shown(&committed.pointer, &committed.document)
}

/// The body may name the table once more; if it names another, one of the two is a mistake.
async fn check_same(
    app: &App,
    warehouse: &Warehouse,
    in_body: Option<WireIdentifier>,
    in_path: &Identifier,
) -> Result<(), Problem> {
    let Some(in_body) = in_body else {
        return Ok(());
    };
    if joined(app, warehouse, in_body.checked()?).await? == *in_path {
        return Ok(());
    }
    Err(Problem::invalid(format!(
        "`identifier` is not {in_path}, which the path names; leave it out, or name the same"
    )))
}
