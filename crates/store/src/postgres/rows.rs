//! Rows into the interface's types.

use std::sync::Arc;

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::codec;
use crate::entry::{BranchId, Entry, Key, ObjectId};
use crate::error::StoreError;
use crate::operation::OperationRecord;
use crate::partition::{PartitionId, PartitionRow};
use crate::revision::{CommitId, Revision, StoreTime};
use crate::write::Change;

/// The store's time in microseconds, when the row is made.
pub(super) const CLOCK: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::int8";

pub(super) const PARTITION: &str = "id, parent, state, clock, last_commit, last_revision, horizon";
pub(super) const ENTRY: &str = "kind, object, version, from_rev, body";
pub(super) const KEY: &str = "partition, branch, scope, class, name";
pub(super) const CHANGE: &str = "partition, branch, scope, class, name, revision, place, \
     commit_id, at, principal, action, kind, object, before, after";

/// Each of a list of columns with its table's name before it.
pub(super) fn of_table(table: &str, columns: &str) -> String {
    columns
        .split(", ")
        .map(|column| format!("{table}.{}", column.trim()))
        .collect::<Vec<_>>()
        .join(", ")
}

pub(super) fn get<'r, T: FromSql<'r>>(row: &'r Row, index: usize) -> Result<T, StoreError> {
    row.try_get(index).map_err(|error| StoreError::Failed {
        detail: error.to_string(),
    })
}

fn small(row: &Row, index: usize) -> Result<i64, StoreError> {
    Ok(i64::from(get::<i16>(row, index)?))
}

/// The columns [`ENTRY`] from `first` on.
pub(super) fn entry(row: &Row, first: usize) -> Result<Entry, StoreError> {
    Ok(Entry {
        kind: codec::kind(small(row, first)?)?,
        object: ObjectId(get(row, first + 1)?),
        version: get(row, first + 2)?,
        from: Revision(get(row, first + 3)?),
        body: Arc::from(get::<&str>(row, first + 4)?),
    })
}

/// The same if there is one.
pub(super) fn optional_entry(row: &Row, first: usize) -> Result<Option<Entry>, StoreError> {
    match get::<Option<i16>>(row, first)? {
        Some(_) => entry(row, first).map(Some),
        None => Ok(None),
    }
}

/// The columns [`KEY`] from `first` on.
pub(super) fn key(row: &Row, first: usize) -> Result<Key, StoreError> {
    Ok(Key {
        partition: PartitionId(get(row, first)?),
        branch: BranchId(get(row, first + 1)?),
        scope: get(row, first + 2)?,
        class: codec::class(small(row, first + 3)?)?,
        name: get(row, first + 4)?,
    })
}

/// The columns [`PARTITION`] from `first` on.
pub(super) fn partition(row: &Row, first: usize) -> Result<PartitionRow, StoreError> {
    Ok(PartitionRow {
        id: PartitionId(get(row, first)?),
        parent: PartitionId(get(row, first + 1)?),
        state: codec::partition_state(small(row, first + 2)?)?,
        clock: Revision(get(row, first + 3)?),
        last_commit: CommitId(get(row, first + 4)?),
        last_revision: Revision(get(row, first + 5)?),
        horizon: Revision(get(row, first + 6)?),
    })
}

/// The columns [`CHANGE`].
pub(super) fn change(row: &Row) -> Result<Change, StoreError> {
    Ok(Change {
        key: key(row, 0)?,
        revision: Revision(get(row, 5)?),
        place: get(row, 6)?,
        commit: CommitId(get(row, 7)?),
        at: StoreTime(get(row, 8)?),
        principal: get(row, 9)?,
        action: codec::action(small(row, 10)?)?,
        kind: codec::kind(small(row, 11)?)?,
        object: ObjectId(get(row, 12)?),
        before: get::<Option<&str>>(row, 13)?.map(Arc::from),
        after: get::<Option<&str>>(row, 14)?.map(Arc::from),
    })
}

/// All columns of an operation record in their order.
pub(super) fn operation(row: &Row) -> Result<OperationRecord, StoreError> {
    Ok(OperationRecord {
        key: get(row, 0)?,
        principal: get(row, 1)?,
        fingerprint: get(row, 2)?,
        state: codec::operation_state(small(row, 3)?)?,
        answer: get(row, 4)?,
        at: StoreTime(get(row, 5)?),
        expires: StoreTime(get(row, 6)?),
    })
}
