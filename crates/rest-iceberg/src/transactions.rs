//! Commits to many tables at once, all or none.

use anabranch_catalog::{Committed, TableChange};
use anabranch_http::{Json, RequestContext};
use axum::extract::State;

use crate::App;
use crate::answer::{Answered, at_revision, no_content};
use crate::caller::caller;
use crate::error::Problem;
use crate::path::{InWarehouse, joined};
use crate::wire::tables::{CommitTransactionRequest, TransactionChange};

pub(crate) async fn commit(
    State(app): State<App>,
    InWarehouse(warehouse): InWarehouse,
    context: RequestContext,
    Json { value, raw }: Json<CommitTransactionRequest>,
) -> Answered {
    let mut changes = Vec::with_capacity(value.table_changes.len());
    for change in value.table_changes {
        let mut change = table_change(change)?;
        change.identifier = joined(&app, &warehouse, change.identifier).await?;
        changes.push(change);
    }
    let caller = caller(&context, &raw);
    let committed = app
        .catalog
        .commit_tables(&caller, &warehouse, changes)
        .await?;
    Ok(match common_revision(&committed) {
        Some(revision) => at_revision(revision, no_content()),
        None => no_content(),
    })
}

fn table_change(change: TransactionChange) -> Result<TableChange, Problem> {
    Ok(TableChange {
        identifier: change.identifier.checked()?,
        requirements: change.requirements,
        updates: change.updates,
    })
}

/// The state after the commit. A repeated commit is answered with what stands now, which may be
/// several states of several databases; then none is named.
fn common_revision(committed: &[Committed]) -> Option<&str> {
    let mut revisions = committed.iter().map(|one| one.pointer.revision.as_str());
    let first = revisions.next()?;
    revisions.all(|revision| revision == first).then_some(first)
}
