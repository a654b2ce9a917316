//! Merges a state into a branch.

#![allow(unused_qualifications, reason = "in what utoipa::path expands to")]

use anabranch_catalog::reference::Outcome;
use anabranch_catalog::{Catalog, Merged, MergedTable, NewMerge};
use anabranch_http::{Json, PathNames, RequestContext, at_revision};
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{below, caller};
use crate::protocol::Protocol;
use crate::reference::Reference;
use crate::request::{self, Source};

mod modes;

use modes::TableMode;

/// A merge to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct MergeRequest {
    source: Source,
    /// `NORMAL` (the default), `FORCE` or `DROP`.
    default_merge_mode: Option<String>,
    /// At most 10,000.
    table_merge_modes: Option<Vec<TableMode>>,
    /// The revision that the target has to show.
    expected_revision: Option<String>,
    /// Only says what would be.
    #[serde(default)]
    dry_run: bool,
}

/// What a merge came to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MergeAnswer {
    /// The target afterwards; as it is, if it was only asked.
    reference: Reference,
    result: MergeResult,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MergeResult {
    /// What the target shows afterwards; what it shows now, if it was only asked.
    revision: String,
    /// What both sides were compared with: their best common ancestors.
    base: Vec<String>,
    /// Whether the target had nothing that the source hasn't, and shows exactly its tables now.
    fast_forward: bool,
    tables: Vec<TableOutcome>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TableOutcome {
    /// Its name below the database; levels of nested namespaces with dots between.
    table: String,
    outcome: MergeOutcome,
}

/// What became of a table.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
enum MergeOutcome {
    /// Neither side changed it.
    Unchanged,
    /// The source's version is the target's now.
    Taken,
    /// Only the target changed it.
    Kept,
    /// Left out by its mode.
    Dropped,
    /// The source's version replaced a change of the target.
    Forced,
    /// Both sides made the same of it.
    Identical,
}

impl From<Outcome> for MergeOutcome {
    fn from(outcome: Outcome) -> MergeOutcome {
        match outcome {
            Outcome::Unchanged => MergeOutcome::Unchanged,
            Outcome::Taken => MergeOutcome::Taken,
            Outcome::Kept => MergeOutcome::Kept,
            Outcome::Dropped => MergeOutcome::Dropped,
            Outcome::Forced => MergeOutcome::Forced,
            Outcome::Identical => MergeOutcome::Identical,
        }
    }
}

impl From<MergedTable> for TableOutcome {
    fn from(merged: MergedTable) -> TableOutcome {
        TableOutcome {
            table: merged.table,
            outcome: merged.outcome.into(),
        }
    }
}

/// Merges a state into a branch: every table at once, or nothing.
#[utoipa::path(post, path = "/trees/{name}/merge", operation_id = "mergeBranch",
    request_body = MergeRequest,
    params(("name" = String, Path, description = "The branch that is merged into"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition harmless")),
    responses((status = 200, body = MergeAnswer)))]
pub(crate) async fn merge<P: Protocol>(
    State(catalog): State<Catalog>,
    context: RequestContext,
    names: PathNames<3>,
    Json { value, raw }: Json<MergeRequest>,
) -> Response {
    let (database, name) = below(names);
    let caller = caller(&context, &raw);
    let merged = async {
        let new = NewMerge {
            target: request::name("name", name)?,
            modes: modes::read(
                value.default_merge_mode.as_deref(),
                value.table_merge_modes.unwrap_or_default(),
            )?,
            expected: value.expected_revision,
            dry_run: value.dry_run,
            source: value.source.read()?,
        };
        let merged = catalog
            .merge(&caller, &database.warehouse()?, &database.name, &new)
            .await?;
        Ok(shown(merged.value))
    };
    database.answer::<P>(merged).await
}

fn shown(merged: Merged) -> Response {
    let revision = merged.reference.revision.clone();
    let answer = MergeAnswer {
        reference: merged.reference.into(),
        result: MergeResult {
            revision: merged.revision,
            base: merged.bases,
            fast_forward: merged.fast_forward,
            tables: merged.tables.into_iter().map(TableOutcome::from).collect(),
        },
    };
    at_revision(&revision, axum::Json(answer))
}
