//! The Iceberg REST protocol over the catalog service. It translates: a request becomes a call of
//! [`Catalog`], what the call answers becomes an answer. It holds no rule, no SQL and no retry.
//!
//! ```text
//! path, query, headers, body ─ decode (wire, path) ─ Catalog ─ encode (wire, answer)
//!                                  │                    │
//!                                  └─────── Problem ◄───┘   {"error":{message, type, code}}
//! ```
//!
//! One file per resource, and its wire shapes in the file of the same name under `wire`. Names and
//! shapes are those of the Iceberg REST specification.
//!
//! The types that matter:
//! - [`router`]: the routes, from `/v1/config` on, to be nested at [`BASE`].
//! - [`Settings`]: what clients are told.
//! - [`Problem`]: an error as this protocol says it; the only place with status codes and types.
//! - [`Errors`]: the same for what goes wrong outside of a handler.

mod answer;
mod caller;
mod commit;
mod config;
mod credentials;
mod error;
mod metrics;
mod namespaces;
mod path;
mod register;
mod rename;
mod tables;
mod transactions;
mod unsupported;
mod views;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use anabranch_catalog::Catalog;
use axum::Router;
use axum::routing::{get, post};

pub use config::endpoints;
pub use error::{Errors, Problem};

/// Where the server mounts the protocol.
pub const BASE: &str = "/iceberg";

/// What clients are told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The warehouse of a client that names none.
    pub default_warehouse: String,
    /// How long an `Idempotency-Key` may be used again; in whole seconds. The executor has to keep
    /// operation records for longer.
    pub idempotency_key_lifetime: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            default_warehouse: "lake".to_owned(),
            idempotency_key_lifetime: Duration::from_secs(24 * 3600),
        }
    }
}

/// What every handler has.
#[derive(Clone)]
struct App {
    catalog: Catalog,
    settings: Arc<Settings>,
}

/// The routes of the protocol, from `/v1/config` on. [`anabranch_http::Stack`] goes around the
/// router that they are nested in, with [`Errors`] for what is below [`BASE`].
pub fn router(catalog: Catalog, settings: Settings) -> Router {
    let namespaces = "/v1/{prefix}/namespaces";
    let namespace = "/v1/{prefix}/namespaces/{namespace}";
    let below = |rest: &str| format!("{namespace}/{rest}");
    Router::new()
        .route("/v1/config", get(config::show))
        .route("/v1/oauth/tokens", post(unsupported::token))
        .route(namespaces, get(namespaces::list).post(namespaces::create))
        .route(
            namespace,
            get(namespaces::load)
                .head(namespaces::exists)
                .delete(namespaces::drop),
        )
        .route(&below("properties"), post(namespaces::change_properties))
        .route(&below("tables"), get(tables::list).post(tables::create))
        .route(
            &below("tables/{table}"),
            get(tables::load)
                .head(tables::exists)
                .post(commit::commit_table)
                .delete(tables::drop),
        )
        .route(&below("register"), post(register::register_table))
        .route(
            &below("tables/{table}/unregister"),
            post(register::unregister_table),
        )
        .route(&below("tables/{table}/credentials"), get(credentials::load))
        .route(&below("tables/{table}/metrics"), post(metrics::report))
        .route(&below("tables/{table}/plan"), post(unsupported::plan))
        .route("/v1/{prefix}/tables/rename", post(rename::rename_table))
        .route(
            "/v1/{prefix}/transactions/commit",
            post(transactions::commit),
        )
        .route(&below("views"), get(views::list).post(views::create))
        .route(
            &below("views/{view}"),
            get(views::load)
                .head(views::exists)
                .post(commit::commit_view)
                .delete(views::drop),
        )
        .route(&below("register-view"), post(register::register_view))
        .route("/v1/{prefix}/views/rename", post(rename::rename_view))
        .with_state(App {
            catalog,
            settings: Arc::new(settings),
        })
}
