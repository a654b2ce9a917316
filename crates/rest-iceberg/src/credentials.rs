//! Credentials for a table's files.

use anabranch_catalog::PointerKind;
use axum::extract::State;

use crate::App;
use crate::answer::{Answered, at_revision, credentials, json, not_stored};
use crate::path::At;
use crate::wire::tables::LoadCredentialsResponse;

/// What the catalog's storage settings give out; an empty list if that is nothing.
pub(crate) async fn load(State(app): State<App>, At(warehouse, identifier): At) -> Answered {
    let pointer = app
        .catalog
        .pointer(&warehouse, &identifier, PointerKind::Table)
        .await?;
    let body = LoadCredentialsResponse {
        storage_credentials: credentials(&pointer.settings, &pointer.location),
    };
    Ok(at_revision(&pointer.revision, not_stored(json(body))))
}
