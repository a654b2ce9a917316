//! Leases of durable work, and the end of operation records.

use rusqlite::types::Value;
use rusqlite::{params, params_from_iter};

use super::rows::{Columns, Db, now};
use crate::error::StoreError;
use crate::revision::StoreTime;
use crate::task::{Task, TaskId};

pub(super) fn lease(
    db: Db<'_>,
    kinds: &[String],
    owner: &str,
    lease_micros: i64,
) -> Result<Option<Task>, StoreError> {
    if kinds.is_empty() {
        return Ok(None);
    }
    let instant = now();
    let places: Vec<String> = (4..4 + kinds.len())
        .map(|place| format!("?{place}"))
        .collect();
    let sql = format!(
        "UPDATE task SET lease_owner = ?1, lease_until = ?2, attempts = attempts + 1 \
         WHERE id = (SELECT id FROM task WHERE due <= ?3 \
             AND (lease_until IS NULL OR lease_until <= ?3) AND kind IN ({}) \
             ORDER BY due, id LIMIT 1) \
         RETURNING id, kind, body, due, attempts",
        places.join(", ")
    );
    let mut values = vec![
        Value::Text(owner.to_owned()),
        Value::Integer(instant.plus_micros(lease_micros).0),
        Value::Integer(instant.0),
    ];
    values.extend(kinds.iter().cloned().map(Value::Text));
    db.query_one(&sql, params_from_iter(values), task)
}

/// A task from a row of all its columns.
fn task(row: Columns<'_, '_>) -> Result<Task, StoreError> {
    Ok(Task {
        id: TaskId(row.uuid(0)?),
        kind: row.get(1)?,
        body: row.get(2)?,
        due: StoreTime(row.int(3)?),
        attempts: row.get(4)?,
    })
}

pub(super) fn one(db: Db<'_>, id: TaskId) -> Result<Option<Task>, StoreError> {
    db.query_one(
        "SELECT id, kind, body, due, attempts FROM task WHERE id = ?1",
        params![id.0.as_bytes()],
        task,
    )
}

pub(super) fn save(
    db: Db<'_>,
    task: TaskId,
    owner: &str,
    body: &str,
    lease_micros: i64,
) -> Result<bool, StoreError> {
    let until = now().plus_micros(lease_micros);
    let changed = db.execute(
        "UPDATE task SET body = ?3, lease_until = ?4 WHERE id = ?1 AND lease_owner = ?2",
        params![task.0.as_bytes(), owner, body, until.0],
    )?;
    Ok(changed == 1)
}

pub(super) fn finish(db: Db<'_>, task: TaskId, owner: &str) -> Result<bool, StoreError> {
    let gone = db.execute(
        "DELETE FROM task WHERE id = ?1 AND lease_owner = ?2",
        params![task.0.as_bytes(), owner],
    )?;
    Ok(gone == 1)
}

pub(super) fn postpone(
    db: Db<'_>,
    task: TaskId,
    owner: &str,
    delay_micros: i64,
) -> Result<bool, StoreError> {
    let due = now().plus_micros(delay_micros);
    let changed = db.execute(
        "UPDATE task SET due = ?3, lease_owner = NULL, lease_until = NULL \
         WHERE id = ?1 AND lease_owner = ?2",
        params![task.0.as_bytes(), owner, due.0],
    )?;
    Ok(changed == 1)
}

pub(super) fn expire_operations(db: Db<'_>, limit: u32) -> Result<u64, StoreError> {
    let gone = db.execute(
        "DELETE FROM operation WHERE rowid IN (SELECT rowid FROM operation \
         WHERE expires <= ?1 ORDER BY expires LIMIT ?2)",
        params![now().0, limit],
    )?;
    Ok(gone as u64)
}
