//! Garbage collection of a catalog's files: `/v1/catalogs/{catalog}/gc`.

#![allow(unused_qualifications, reason = "in what utoipa::path expands to")]

use std::time::Duration;

use anabranch_catalog::{GcRun, NewGc, Total, Warehouse};
use anabranch_http::{Json, PathNames, Query};
use anabranch_partition::Refusal;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::Shared;
use crate::error::ApiError;

/// Files in one answer, at most.
const PAGE: usize = 1000;

/// A run to be started.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StartGc {
    /// Only say what would be removed, and why.
    #[serde(default)]
    dry_run: bool,
    /// Only tables of this database.
    database: Option<String>,
    /// How old a file must be to go, in milliseconds, as a number or a decimal text: at least the
    /// server's `sweep-grace`; three days if absent.
    #[schema(value_type = Option<String>)]
    grace_period_millis: Option<Value>,
}

/// A run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GcAnswer {
    /// Names it for a week after its end.
    id: String,
    /// `QUEUED`, `RUNNING` or `DONE`.
    state: String,
    dry_run: bool,
    grace_period_millis: String,
    /// Locations of tables that were looked through.
    places: u64,
    /// Metadata documents read so far.
    documents_read: u64,
    /// Manifest lists and manifests read so far.
    manifests_read: u64,
    /// What nothing needs.
    garbage: FileTotal,
    /// What this run deleted; if a server died at it, at least.
    removed: FileTotal,
    /// Files that stay, by why.
    kept: KeptFiles,
    /// What nothing needs, the first 10,000 of it.
    files: Vec<GarbageFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
    /// What can't be read. It keeps all files of its table.
    unreadable: Vec<Unreadable>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileTotal {
    files: u64,
    bytes: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeptFiles {
    /// A version that stands or can still be read names them.
    needed: u64,
    /// Younger than the grace period.
    young: u64,
    /// In a folder, or with a name, that begins with `_` or `.`.
    hidden: u64,
    /// In the place of a table that isn't part of the run.
    elsewhere: u64,
    /// Of a table whose metadata can't be read in full.
    unreadable: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GarbageFile {
    location: String,
    bytes: u64,
    /// `METADATA`, `MANIFEST_LIST`, `MANIFEST`, `PUFFIN` or `DATA`, by its name.
    kind: String,
    why: String,
    /// A table in whose location it lies.
    table: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Unreadable {
    table: String,
    location: String,
    problem: String,
}

/// Which page of the files.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct FilesPage {
    /// The `nextPageToken` of the page before.
    page_token: Option<String>,
}

impl From<Total> for FileTotal {
    fn from(total: Total) -> FileTotal {
        FileTotal {
            files: total.files,
            bytes: total.bytes,
        }
    }
}

fn grace(value: &Value) -> Result<Duration, Refusal> {
    let millis = match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64(),
    };
    millis.map(Duration::from_millis).ok_or_else(|| {
        Refusal::invalid(
            "`gracePeriodMillis` is a whole number of milliseconds; leave it out for three days",
        )
    })
}

/// Starts a run that removes, or with `dryRun` only lists, the files below tables' locations that
/// nothing needs. Some server of the store works on it.
#[utoipa::path(post, path = "/v1/catalogs/{catalog}/gc", tag = "gc", request_body = StartGc,
    params(("catalog" = String, Path, description = "`catalog` or `metalake.catalog`")),
    responses((status = 202, body = GcAnswer), (status = "default", body = crate::openapi::ErrorAnswer)))]
pub(crate) async fn start(
    State(native): State<Shared>,
    PathNames([catalog]): PathNames<1>,
    Json { value, .. }: Json<StartGc>,
) -> Result<(StatusCode, axum::Json<GcAnswer>), ApiError> {
    let warehouse = Warehouse::parse(&catalog)?;
    let new = NewGc {
        database: value.database,
        dry_run: value.dry_run,
        grace: value.grace_period_millis.as_ref().map(grace).transpose()?,
    };
    let run = native.catalog.start_gc(&warehouse, &new).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(answer(&run, 0))))
}

/// Shows how far a run is, and what it found.
#[utoipa::path(get, path = "/v1/catalogs/{catalog}/gc/{id}", tag = "gc",
    params(("catalog" = String, Path), ("id" = String, Path), FilesPage),
    responses((status = 200, body = GcAnswer), (status = "default", body = crate::openapi::ErrorAnswer)))]
pub(crate) async fn show(
    State(native): State<Shared>,
    PathNames([catalog, id]): PathNames<2>,
    Query(page): Query<FilesPage>,
) -> Result<axum::Json<GcAnswer>, ApiError> {
    let warehouse = Warehouse::parse(&catalog)?;
    let first = match page.page_token.as_deref() {
        None | Some("") => 0,
        Some(token) => token.parse().map_err(|_| {
            Refusal::invalid("`pageToken` is none that was given out; leave it out to begin anew")
        })?,
    };
    let run = native.catalog.gc(&warehouse, &id).await?;
    Ok(axum::Json(answer(&run, first)))
}

fn answer(run: &GcRun, first: usize) -> GcAnswer {
    let report = &run.body.report;
    let files = report.files.iter().skip(first).take(PAGE);
    let next = first.saturating_add(PAGE);
    GcAnswer {
        id: run.id.to_string(),
        state: word(run.body.state),
        dry_run: run.body.dry_run,
        grace_period_millis: run.body.grace_millis.to_string(),
        places: report.places,
        documents_read: report.documents,
        manifests_read: report.manifests,
        garbage: report.garbage.into(),
        removed: report.removed.into(),
        kept: KeptFiles {
            needed: report.kept.needed,
            young: report.kept.young,
            hidden: report.kept.hidden,
            elsewhere: report.kept.elsewhere,
            unreadable: report.kept.unreadable,
        },
        files: files
            .map(|file| GarbageFile {
                location: file.location.clone(),
                bytes: file.bytes,
                kind: word(file.kind),
                why: file.why().to_owned(),
                table: file.table.clone(),
            })
            .collect(),
        next_page_token: (next < report.files.len()).then(|| next.to_string()),
        unreadable: report
            .unreadable
            .iter()
            .map(|one| Unreadable {
                table: one.table.clone(),
                location: one.location.clone(),
                problem: one.problem.clone(),
            })
            .collect(),
    }
}

/// A name as its JSON form has it.
fn word(name: impl Serialize) -> String {
    let value = serde_json::to_value(name).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}
