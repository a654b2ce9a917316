//! Statements about leases of durable work, and the end of operation records.

use tokio_postgres::Row;
use uuid::Uuid;

use super::connection::{Statement, values};
use super::rows::get;
use crate::error::StoreError;
use crate::revision::StoreTime;
use crate::task::{Task, TaskId};

/// The store's time as a statement sees it.
const NOW: &str = "(extract(epoch FROM statement_timestamp()) * 1000000)::int8";

/// Picks a task and leases it if nobody else did meanwhile: a row with an id is the lease, a row
/// without one a race that was lost, no row that nothing is due. It blocks for nobody's sake, so
/// it is the same for every mode.
pub(super) fn lease(kinds: &[&str], owner: &str, lease_micros: i64) -> Statement<'static> {
    let kinds: Vec<String> = kinds.iter().map(|&kind| kind.to_owned()).collect();
    Statement::new(
        format!(
            "WITH candidate AS MATERIALIZED (SELECT id FROM task \
                 WHERE due <= {NOW} AND (lease_until IS NULL OR lease_until <= {NOW}) \
                   AND kind = ANY ($1) ORDER BY due, id LIMIT 1), \
             leased AS (UPDATE task SET lease_owner = $2, lease_until = {NOW} + $3, \
                     attempts = attempts + 1 \
                 WHERE id = (SELECT id FROM candidate) \
                   AND due <= {NOW} AND (lease_until IS NULL OR lease_until <= {NOW}) \
                 RETURNING id, kind, body, due, attempts) \
             SELECT l.id, l.kind, l.body, l.due, l.attempts \
             FROM candidate c LEFT JOIN leased l ON l.id = c.id"
        ),
        values![kinds, owner.to_owned(), lease_micros],
    )
}

pub(super) enum Lease {
    NothingDue,
    LostRace,
    Leased(Task),
}

pub(super) fn leased(rows: &[Row]) -> Result<Lease, StoreError> {
    let Some(row) = rows.first() else {
        return Ok(Lease::NothingDue);
    };
    let id: Option<Uuid> = get(row, 0)?;
    if id.is_none() {
        return Ok(Lease::LostRace);
    }
    task(row).map(Lease::Leased)
}

/// A task from a row of all its columns.
pub(super) fn task(row: &Row) -> Result<Task, StoreError> {
    Ok(Task {
        id: TaskId(get(row, 0)?),
        kind: get(row, 1)?,
        body: get(row, 2)?,
        due: StoreTime(get(row, 3)?),
        attempts: get(row, 4)?,
    })
}

pub(super) fn one(task: TaskId) -> Statement<'static> {
    Statement::new(
        "SELECT id, kind, body, due, attempts FROM task WHERE id = $1",
        values![task.0],
    )
}

pub(super) fn save(task: TaskId, owner: &str, body: &str, lease_micros: i64) -> Statement<'static> {
    Statement::new(
        format!(
            "UPDATE task SET body = $3, lease_until = {NOW} + $4 \
             WHERE id = $1 AND lease_owner = $2 RETURNING 1"
        ),
        values![task.0, owner.to_owned(), body.to_owned(), lease_micros],
    )
}

pub(super) fn finish(task: TaskId, owner: &str) -> Statement<'static> {
    Statement::new(
        "DELETE FROM task WHERE id = $1 AND lease_owner = $2 RETURNING 1",
        values![task.0, owner.to_owned()],
    )
}

pub(super) fn postpone(task: TaskId, owner: &str, delay_micros: i64) -> Statement<'static> {
    Statement::new(
        format!(
            "UPDATE task SET due = {NOW} + $3, lease_owner = NULL, lease_until = NULL \
             WHERE id = $1 AND lease_owner = $2 RETURNING 1"
        ),
        values![task.0, owner.to_owned(), delay_micros],
    )
}

pub(super) fn ensure(task: &Task) -> Statement<'static> {
    Statement::new(
        "INSERT INTO task (id, kind, body, due, attempts) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (id) DO NOTHING",
        values![
            task.id.0,
            task.kind.clone(),
            task.body.clone(),
            task.due.0,
            task.attempts
        ],
    )
}

pub(super) fn expire_operations(limit: u32) -> Statement<'static> {
    Statement::new(
        format!(
            "WITH gone AS (DELETE FROM operation WHERE key = ANY (ARRAY(SELECT key FROM operation \
                 WHERE expires <= {NOW} ORDER BY expires LIMIT $1)) RETURNING 1) \
             SELECT count(*) FROM gone"
        ),
        values![i64::from(limit)],
    )
}
