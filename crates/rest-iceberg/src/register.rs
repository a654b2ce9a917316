//! Tables and views that come with their metadata, and tables that leave with it.

use anabranch_catalog::Identifier;
use anabranch_http::{Json, RequestContext};
use axum::extract::State;

use crate::App;
use crate::answer::{Answered, Nothing, at_revision, with_metadata};
use crate::caller::caller;
use crate::path::{At, InNamespace};
use crate::wire::tables::RegisterTableRequest;
use crate::wire::views::RegisterViewRequest;
use crate::{tables, views};

pub(crate) async fn register_table(
    State(app): State<App>,
    InNamespace(warehouse, namespace): InNamespace,
    context: RequestContext,
    Json { value, raw }: Json<RegisterTableRequest>,
) -> Answered {
    let identifier = Identifier::new(namespace, value.name)?;
    let overwrite = value.overwrite.unwrap_or(false);
    let caller = caller(&context, &raw);
    let registered = app
        .catalog
        .register_table(
            &caller,
            &warehouse,
            identifier,
            &value.metadata_location,
            overwrite,
        )
        .await?;
    tables::loaded(&context, &registered)
}

/// Drops a table and answers the metadata that it had last; its files stay.
pub(crate) async fn unregister_table(
    State(app): State<App>,
    At(warehouse, identifier): At,
    context: RequestContext,
) -> Answered {
    let caller = caller(&context, b"");
    let last = app
        .catalog
        .unregister_table(&caller, &warehouse, &identifier)
        .await?;
    let metadata = last.value.document.bytes().clone();
    let response = with_metadata(Some(&last.value.metadata_location), metadata, &Nothing {});
    Ok(at_revision(&last.revision, response))
}

pub(crate) async fn register_view(
    State(app): State<App>,
    InNamespace(warehouse, namespace): InNamespace,
    context: RequestContext,
    Json { value, raw }: Json<RegisterViewRequest>,
) -> Answered {
    let identifier = Identifier::new(namespace, value.name)?;
    let caller = caller(&context, &raw);
    let registered = app
        .catalog
        .register_view(&caller, &warehouse, identifier, &value.metadata_location)
        .await?;
    views::shown(&registered.pointer, &registered.document)
}
