//! A [`WriteSet`] into rows, within the open transaction.

use std::sync::LazyLock;

use rusqlite::params;

use super::branches;
use super::rows::Db;
use crate::entry::{Entry, Key};
use crate::error::StoreError;
use crate::operation::OperationRecord;
use crate::partition::{PartitionId, PartitionRow};
use crate::task::Task;
use crate::write::{Change, WriteSet};

const MATCHES_KEY: &str =
    "partition = ?1 AND branch = ?2 AND scope = ?3 AND class = ?4 AND name = ?5";

static REMOVE: LazyLock<String> =
    LazyLock::new(|| format!("DELETE FROM current WHERE {MATCHES_KEY}"));
static REPLACE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE current SET version = ?8, from_rev = ?9, body = ?10 \
         WHERE {MATCHES_KEY} AND kind = ?6 AND object = ?7"
    )
});

pub(super) fn apply(db: Db<'_>, held: &[PartitionId], writes: &WriteSet) -> Result<(), StoreError> {
    for row in &writes.partitions {
        if !held.contains(&row.id) {
            return Err(unexpected("a partition that isn't held", row.id));
        }
        update_partition(db, row)?;
    }
    for row in &writes.new_partitions {
        insert_partition(db, row)?;
    }
    for key in &writes.removals {
        let gone = db.execute(&REMOVE, key_parameters(key))?;
        if gone != 1 {
            return Err(unexpected("the removal of a key without an entry", key));
        }
    }
    upsert_all(db, &writes.upserts)?;
    for (key, entry, to) in &writes.history {
        insert_history(db, key, entry, to.0)?;
    }
    for change in &writes.changes {
        insert_change(db, change)?;
    }
    for operation in &writes.operations {
        insert_operation(db, operation)?;
    }
    for task in &writes.tasks {
        insert_task(db, task, "")?;
    }
    for task in &writes.finished_tasks {
        let gone = db.execute("DELETE FROM task WHERE id = ?1", params![task.0.as_bytes()])?;
        if gone != 1 {
            return Err(unexpected("the end of a task that isn't there", task));
        }
    }
    branches::apply(db, writes)
}

fn unexpected(what: &str, of: impl std::fmt::Debug) -> StoreError {
    StoreError::Failed {
        detail: format!("the write set asks for {what}: {of:?}"),
    }
}

fn key_parameters(key: &Key) -> (i64, i64, &str, i64, &str) {
    (
        key.partition.0,
        key.branch.0,
        &key.scope,
        key.class as i64,
        &key.name,
    )
}

fn update_partition(db: Db<'_>, row: &PartitionRow) -> Result<(), StoreError> {
    let changed = db.execute(
        "UPDATE partition SET parent = ?2, state = ?3, clock = ?4, last_commit = ?5, \
         last_revision = ?6, horizon = ?7, guard = guard + 1 WHERE id = ?1",
        params![
            row.id.0,
            row.parent.0,
            row.state as i64,
            row.clock.0,
            row.last_commit.0.as_bytes(),
            row.last_revision.0,
            row.horizon.0
        ],
    )?;
    if changed != 1 {
        return Err(unexpected("a partition that doesn't exist", row.id));
    }
    Ok(())
}

fn insert_partition(db: Db<'_>, row: &PartitionRow) -> Result<(), StoreError> {
    db.execute(
        "INSERT INTO partition (id, parent, state, clock, last_commit, last_revision, horizon) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            row.id.0,
            row.parent.0,
            row.state as i64,
            row.clock.0,
            row.last_commit.0.as_bytes(),
            row.last_revision.0,
            row.horizon.0
        ],
    )?;
    Ok(())
}

/// Objects may swap names within one write set: rows that change their object leave before any
/// comes in, so that no object is ever in two places.
fn upsert_all(db: Db<'_>, upserts: &[(Key, Entry)]) -> Result<(), StoreError> {
    let mut arrivals = Vec::new();
    for (key, entry) in upserts {
        let replaced = db.execute(
            &REPLACE,
            params![
                key.partition.0,
                key.branch.0,
                key.scope,
                key.class as i64,
                key.name,
                entry.kind as i64,
                entry.object.0,
                entry.version,
                entry.from.0,
                entry.body
            ],
        )?;
        if replaced == 0 {
            db.execute(&REMOVE, key_parameters(key))?;
            arrivals.push((key, entry));
        }
    }
    for (key, entry) in arrivals {
        db.execute(
            "INSERT INTO current (partition, branch, scope, class, name, kind, object, version, \
             from_rev, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                key.partition.0,
                key.branch.0,
                key.scope,
                key.class as i64,
                key.name,
                entry.kind as i64,
                entry.object.0,
                entry.version,
                entry.from.0,
                entry.body
            ],
        )?;
    }
    Ok(())
}

fn insert_history(db: Db<'_>, key: &Key, entry: &Entry, to: i64) -> Result<(), StoreError> {
    db.execute(
        "INSERT INTO history (partition, branch, scope, class, name, from_rev, to_rev, kind, \
         object, version, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            key.partition.0,
            key.branch.0,
            key.scope,
            key.class as i64,
            key.name,
            entry.from.0,
            to,
            entry.kind as i64,
            entry.object.0,
            entry.version,
            entry.body
        ],
    )?;
    Ok(())
}

fn insert_change(db: Db<'_>, change: &Change) -> Result<(), StoreError> {
    let key = &change.key;
    db.execute(
        "INSERT INTO change (partition, branch, scope, class, name, revision, place, commit_id, \
         at, principal, action, kind, object, before, after) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        params![
            key.partition.0,
            key.branch.0,
            key.scope,
            key.class as i64,
            key.name,
            change.revision.0,
            change.place,
            change.commit.0.as_bytes(),
            change.at.0,
            change.principal,
            change.action as i64,
            change.kind as i64,
            change.object.0,
            change.before,
            change.after
        ],
    )?;
    Ok(())
}

fn insert_operation(db: Db<'_>, record: &OperationRecord) -> Result<(), StoreError> {
    db.execute(
        "INSERT INTO operation (key, principal, fingerprint, state, answer, at, expires) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            record.key,
            record.principal,
            record.fingerprint,
            record.state as i64,
            record.answer,
            record.at.0,
            record.expires.0
        ],
    )?;
    Ok(())
}

/// `conflict` is what to do with a task whose id is there already; nothing: a lost race.
pub(super) fn insert_task(db: Db<'_>, task: &Task, conflict: &str) -> Result<(), StoreError> {
    db.execute(
        &format!(
            "INSERT INTO task (id, kind, body, due, attempts) VALUES (?1, ?2, ?3, ?4, ?5) \
             {conflict}"
        ),
        params![
            task.id.0.as_bytes(),
            task.kind,
            task.body,
            task.due.0,
            task.attempts
        ],
    )?;
    Ok(())
}
