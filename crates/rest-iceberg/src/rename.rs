//! Renames of tables and views, also into another namespace.

use anabranch_catalog::PointerKind;
use anabranch_http::{Json, RequestContext};
use axum::extract::State;

use crate::App;
use crate::answer::{Answered, at_revision, no_content};
use crate::caller::caller;
use crate::path::{InWarehouse, joined};
use crate::wire::identifiers::RenameRequest;

pub(crate) async fn rename_table(
    state: State<App>,
    path: InWarehouse,
    context: RequestContext,
    body: Json<RenameRequest>,
) -> Answered {
    rename(state, path, context, body, PointerKind::Table).await
}

pub(crate) async fn rename_view(
    state: State<App>,
    path: InWarehouse,
    context: RequestContext,
    body: Json<RenameRequest>,
) -> Answered {
    rename(state, path, context, body, PointerKind::View).await
}

async fn rename(
    State(app): State<App>,
    InWarehouse(warehouse): InWarehouse,
    context: RequestContext,
    Json { value, raw }: Json<RenameRequest>,
    kind: PointerKind,
) -> Answered {
    let from = joined(&app, &warehouse, value.source.checked()?).await?;
    let to = joined(&app, &warehouse, value.destination.checked()?).await?;
    let caller = caller(&context, &raw);
    let renamed = app
        .catalog
        .rename_pointer(&caller, &warehouse, kind, &from, &to)
        .await?;
    Ok(at_revision(&renamed.revision, no_content()))
}
