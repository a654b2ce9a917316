//! The Paimon REST protocol over the catalog service: what a client is told when it begins, and the
//! branches, tags and merges of databases. Calls on tables aren't served yet; they are answered 501,
//! which no client takes for a table that isn't there.
//!
//! The types that matter:
//! - [`router`]: the routes, all of them below [`BASE`].
//! - [`Errors`]: this protocol's words for what can't be done; the only place with status codes.
//! - [`describe`]: the routes for an OpenAPI document.

mod config;
mod describe;
mod error;
mod unserved;

use anabranch_catalog::Catalog;
use axum::Router;
use axum::routing::{any, get};

pub use describe::describe;
pub use error::Errors;

/// What is below it is this protocol's.
pub const BASE: &str = "/paimon";
/// The path of a database.
const DATABASE: &str = "/paimon/v1/{prefix}/databases/{database}";

/// What the calls besides those on references have.
#[derive(Clone)]
struct App {
    catalog: Catalog,
    /// The warehouse of a client that names none.
    default_warehouse: &'static str,
}

/// The routes of the protocol. [`anabranch_http::Stack`] goes around the router that they are in,
/// with [`Errors`] for what is below [`BASE`].
pub fn router(catalog: Catalog, default_warehouse: &'static str) -> Router {
    let trees = anabranch_rest_trees::router::<Errors>(DATABASE, catalog.clone());
    Router::new()
        .route("/paimon/v1/config", get(config::show))
        .route("/paimon/v1/{prefix}/{*call}", any(unserved::refuse))
        .with_state(App {
            catalog,
            default_warehouse,
        })
        .merge(trees)
}
