//! The routes for an OpenAPI document.

use anabranch_rest_trees::Described;
use utoipa::OpenApi;

use crate::DATABASE;
use crate::error::ErrorResponse;

#[derive(OpenApi)]
#[openapi(paths(crate::config::show), components(schemas(ErrorResponse)))]
struct Document;

/// The routes with their bodies.
pub fn describe() -> utoipa::openapi::OpenApi {
    let references = anabranch_rest_trees::describe(&Described {
        database: DATABASE,
        catalog: "The `prefix` that `/paimon/v1/config` answers",
        tag: "paimon",
        error: "ErrorResponse",
    });
    Document::openapi().merge_from(references)
}
