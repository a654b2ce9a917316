//! Branches, tags and merges of a database over HTTP: `…/databases/{database}/trees`. Two protocols
//! have these calls, with the same bodies, and answer errors each in its own shape. So the calls
//! are here once, and a protocol mounts them where it names its databases.
//!
//! ```text
//! protocol's path ─ decode (request) ─ Catalog ─ encode (one file per call)
//!                                        │
//!                                        └── CatalogError ─ Protocol::refuse ─ its own shape
//! ```
//!
//! The types that matter:
//! - [`Protocol`]: how a protocol answers what can't be done.
//! - [`router`]: the routes, below the path of a database.
//! - [`Described`] and [`describe`]: the same routes for an OpenAPI document.

mod answer;
mod change;
mod create;
mod delete;
mod describe;
mod diff;
mod list;
mod log;
mod merge;
mod protocol;
mod reference;
mod request;
mod show;
mod tables;

use anabranch_catalog::Catalog;
use axum::Router;
use axum::routing::{get, post};

pub use describe::{Described, describe};
pub use protocol::Protocol;

/// The routes below `database`, a path with two parameters: first the catalog, then the database.
pub fn router<P: Protocol>(database: &str, catalog: Catalog) -> Router {
    let at = |rest: &str| format!("{database}/trees{rest}");
    Router::new()
        .route(&at(""), get(list::list::<P>).post(create::create::<P>))
        .route(
            &at("/{name}"),
            get(show::show::<P>)
                .patch(change::change::<P>)
                .delete(delete::delete::<P>),
        )
        .route(&at("/{name}/merge"), post(merge::merge::<P>))
        .route(&at("/{name}/tables"), get(tables::list::<P>))
        .route(&at("/{name}/tables/{table}"), get(tables::show::<P>))
        .route(&at("/{name}/log"), get(log::log::<P>))
        .route(&at("/{name}/diff/{other}"), get(diff::diff::<P>))
        .with_state(catalog)
}
