//! Statements against one connection, and rows into the interface's types.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::types::FromSql;
use rusqlite::{Connection, Params, Row};
use uuid::Uuid;

use super::error::classify;
use crate::codec;
use crate::entry::{BranchId, Entry, Key, ObjectId};
use crate::error::StoreError;
use crate::operation::OperationRecord;
use crate::partition::{PartitionId, PartitionRow};
use crate::revision::{CommitId, Revision, StoreTime};
use crate::write::Change;

pub(super) const PARTITION: &str = "id, parent, state, clock, last_commit, last_revision, horizon";
pub(super) const ENTRY: &str = "kind, object, version, from_rev, body";
pub(super) const KEY: &str = "partition, branch, scope, class, name";
pub(super) const CHANGE: &str = "partition, branch, scope, class, name, revision, place, \
     commit_id, at, principal, action, kind, object, before, after";

/// The machine's clock: SQLite runs in the process, so this is the store's time.
pub(super) fn now() -> StoreTime {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    StoreTime(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// A connection with cached statements that are counted.
#[derive(Clone, Copy)]
pub(super) struct Db<'a> {
    pub connection: &'a Connection,
    pub statements: &'a AtomicU64,
}

impl Db<'_> {
    pub fn query<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        mut decode: impl FnMut(Columns<'_, '_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let mut statement = self.connection.prepare_cached(sql).map_err(classify)?;
        let mut rows = statement.query(parameters).map_err(classify)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(classify)? {
            found.push(decode(Columns(row))?);
        }
        Ok(found)
    }

    pub fn query_one<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        decode: impl FnMut(Columns<'_, '_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.query(sql, parameters, decode)?.pop())
    }

    pub fn execute(&self, sql: &str, parameters: impl Params) -> Result<usize, StoreError> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let mut statement = self.connection.prepare_cached(sql).map_err(classify)?;
        statement.execute(parameters).map_err(classify)
    }

    /// BEGIN, ROLLBACK and their kind: not counted.
    pub fn control(&self, sql: &str) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(classify)?;
        statement.execute(()).map(|_| ()).map_err(classify)
    }
}

/// One row; columns by their place.
#[derive(Clone, Copy)]
pub(super) struct Columns<'r, 's>(&'r Row<'s>);

impl<'r, 's> Columns<'r, 's> {
    pub fn of(row: &'r Row<'s>) -> Self {
        Columns(row)
    }

    pub fn get<T: FromSql>(&self, index: usize) -> Result<T, StoreError> {
        self.0.get(index).map_err(classify)
    }

    pub fn int(&self, index: usize) -> Result<i64, StoreError> {
        self.get(index)
    }

    pub fn is_null(&self, index: usize) -> Result<bool, StoreError> {
        let value = self.0.get_ref(index).map_err(classify)?;
        Ok(matches!(value, rusqlite::types::ValueRef::Null))
    }

    pub fn uuid(&self, index: usize) -> Result<Uuid, StoreError> {
        Ok(Uuid::from_bytes(self.get(index)?))
    }

    /// The columns [`ENTRY`] from `first` on.
    pub fn entry(&self, first: usize) -> Result<Entry, StoreError> {
        Ok(Entry {
            kind: codec::kind(self.int(first)?)?,
            object: ObjectId(self.int(first + 1)?),
            version: self.int(first + 2)?,
            from: Revision(self.int(first + 3)?),
            body: self.get::<Arc<str>>(first + 4)?,
        })
    }

    /// The columns [`KEY`] from `first` on.
    pub fn key(&self, first: usize) -> Result<Key, StoreError> {
        Ok(Key {
            partition: PartitionId(self.int(first)?),
            branch: BranchId(self.int(first + 1)?),
            scope: self.get(first + 2)?,
            class: codec::class(self.int(first + 3)?)?,
            name: self.get(first + 4)?,
        })
    }

    /// The columns [`PARTITION`] from `first` on.
    pub fn partition(&self, first: usize) -> Result<PartitionRow, StoreError> {
        Ok(PartitionRow {
            id: PartitionId(self.int(first)?),
            parent: PartitionId(self.int(first + 1)?),
            state: codec::partition_state(self.int(first + 2)?)?,
            clock: Revision(self.int(first + 3)?),
            last_commit: CommitId(self.uuid(first + 4)?),
            last_revision: Revision(self.int(first + 5)?),
            horizon: Revision(self.int(first + 6)?),
        })
    }

    /// The columns [`CHANGE`].
    pub fn change(&self) -> Result<Change, StoreError> {
        Ok(Change {
            key: self.key(0)?,
            revision: Revision(self.int(5)?),
            place: self.get(6)?,
            commit: CommitId(self.uuid(7)?),
            at: StoreTime(self.int(8)?),
            principal: self.get(9)?,
            action: codec::action(self.int(10)?)?,
            kind: codec::kind(self.int(11)?)?,
            object: ObjectId(self.int(12)?),
            before: self.get(13)?,
            after: self.get(14)?,
        })
    }

    /// All columns of an operation record in their order.
    pub fn operation(&self) -> Result<OperationRecord, StoreError> {
        Ok(OperationRecord {
            key: self.get(0)?,
            principal: self.get(1)?,
            fingerprint: self.get(2)?,
            state: codec::operation_state(self.int(3)?)?,
            answer: self.get(4)?,
            at: StoreTime(self.int(5)?),
            expires: StoreTime(self.int(6)?),
        })
    }
}
