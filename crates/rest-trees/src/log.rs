//! What happened to a branch or tag.

#![allow(unused_qualifications, reason = "in what utoipa::path expands to")]

use anabranch_catalog::Catalog;
use anabranch_catalog::reference::{Event, LogEntry};
use anabranch_http::{PathNames, Query, at_revision};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::below;
use crate::list::page;
use crate::protocol::Protocol;
use crate::reference::ReferenceType;
use crate::request;

/// How a log is read.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct ReadLog {
    /// Entries at most; 0 or absent for as many as the server likes.
    max_results: Option<i64>,
    /// The `nextPageToken` of the page before.
    page_token: Option<String>,
}

/// A part of a log, the last entry first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Log {
    entries: Vec<Line>,
    /// Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Line {
    /// The state since.
    revision: String,
    /// Milliseconds since 1970, by the store's clock.
    at: i64,
    by: String,
    kind: LineKind,
    /// The names that it changed below the database; levels of nested namespaces with dots between.
    tables: Vec<String>,
    /// What was merged, or what the branch was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<LineSource>,
}

/// What an entry tells.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
enum LineKind {
    /// Tables got new versions, or several things happened at once.
    Commit,
    /// Tables, views or namespaces came into being.
    Create,
    /// They were dropped.
    Drop,
    /// One got another name.
    Rename,
    /// A state was merged.
    Merge,
    /// The branch was made; what follows is of what it was made from.
    Fork,
}

/// A state that came into a branch.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LineSource {
    /// As the request named it: the name may mean another reference by now.
    r#type: ReferenceType,
    name: String,
    revision: String,
}

impl From<LogEntry> for Line {
    fn from(entry: LogEntry) -> Line {
        Line {
            revision: entry.revision,
            at: entry.at,
            by: entry.by,
            kind: match entry.event {
                Event::Commit => LineKind::Commit,
                Event::Create => LineKind::Create,
                Event::Drop => LineKind::Drop,
                Event::Rename => LineKind::Rename,
                Event::Merge => LineKind::Merge,
                Event::Fork => LineKind::Fork,
            },
            tables: entry.tables,
            source: entry.source.map(|source| LineSource {
                r#type: source.name.kind.into(),
                name: source.name.name,
                revision: source.revision,
            }),
        }
    }
}

/// Tells what happened to a branch or tag, the last first, and then to what it was made from.
#[utoipa::path(get, path = "/trees/{name}/log", operation_id = "getReferenceLog",
    params(("name" = String, Path), ReadLog), responses((status = 200, body = Log)))]
pub(crate) async fn log<P: Protocol>(
    State(catalog): State<Catalog>,
    names: PathNames<3>,
    Query(query): Query<ReadLog>,
) -> Response {
    let (database, name) = below(names);
    let read = async {
        let name = request::name("name", name)?;
        let page = page(query.max_results, query.page_token)?;
        let warehouse = database.warehouse()?;
        let found = catalog
            .reference_log(&warehouse, &database.name, &name, &page)
            .await?;
        let log = Log {
            entries: found.items.into_iter().map(Line::from).collect(),
            next_page_token: found.next,
        };
        Ok(at_revision(&found.revision.unwrap_or_default(), Json(log)))
    };
    database.answer::<P>(read).await
}
