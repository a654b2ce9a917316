//! The OpenAPI document: our own routes from the code, the Iceberg routes by name.

use anabranch_rest_trees::Described;
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, PathItem};
use utoipa::{OpenApi, ToSchema};

use crate::{Native, Shared};

/// An error on `/v1`.
#[derive(Serialize, ToSchema)]
pub(crate) struct ErrorAnswer {
    error: ErrorBody,
}

#[derive(Serialize, ToSchema)]
struct ErrorBody {
    /// Such as `NOT_FOUND`.
    code: String,
    /// One sentence that names the field or thing and the remedy.
    message: String,
    /// Known not applied, and the same request may succeed later.
    retryable: bool,
    #[schema(value_type = Object)]
    details: Value,
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Anabranch",
        description = "A lakehouse catalog server. Iceberg REST is served under /iceberg and \
                       described by the Iceberg project; this document lists its routes."
    ),
    paths(
        crate::catalogs::list,
        crate::catalogs::create,
        crate::catalogs::show,
        crate::catalogs::change,
        crate::catalogs::drop_catalog,
        crate::changes::changes,
        crate::changes::changes_by_body,
        crate::operations::show,
        crate::gc::start,
        crate::gc::show,
        crate::probes::live,
        crate::probes::ready,
        crate::probes::metrics,
        crate::probes::version,
    )
)]
struct Document;

/// The OpenAPI document.
pub(crate) async fn document(State(native): State<Shared>) -> axum::Json<utoipa::openapi::OpenApi> {
    axum::Json(describe(&native))
}

fn describe(native: &Native) -> utoipa::openapi::OpenApi {
    let references = anabranch_rest_trees::describe(&Described {
        database: crate::DATABASE,
        catalog: "`catalog` or `metalake.catalog`",
        tag: "references",
        error: "ErrorAnswer",
    });
    let mut document = Document::openapi().merge_from(references);
    for other in &native.described {
        document.merge(other.clone());
    }
    for endpoint in native.iceberg_endpoints {
        let Some((verb, path)) = endpoint.split_once(' ') else {
            continue;
        };
        let Some(method) = method(verb) else {
            continue;
        };
        let operation = OperationBuilder::new().tag("iceberg").build();
        let item = PathItem::new(method, operation);
        let path = format!("/iceberg{path}");
        match document.paths.paths.get_mut(&path) {
            Some(known) => known.merge_operations(item),
            None => {
                document.paths.paths.insert(path, item);
            }
        }
    }
    document
}

fn method(verb: &str) -> Option<HttpMethod> {
    match verb {
        "GET" => Some(HttpMethod::Get),
        "HEAD" => Some(HttpMethod::Head),
        "POST" => Some(HttpMethod::Post),
        "PUT" => Some(HttpMethod::Put),
        "DELETE" => Some(HttpMethod::Delete),
        _ => None,
    }
}
