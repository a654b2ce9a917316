//! Forward migrations, all in one transaction.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::error::classify;
use crate::error::StoreError;
use crate::schema;

const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_partitions.sql"),
    include_str!("../../migrations/sqlite/0002_branches.sql"),
];

pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(classify)?;
    transaction
        .execute_batch(
            "CREATE TABLE IF NOT EXISTS schema_version (\
                 only_row INTEGER PRIMARY KEY CHECK (only_row = 1), version INTEGER NOT NULL) STRICT;\
             INSERT OR IGNORE INTO schema_version VALUES (1, 0);",
        )
        .map_err(classify)?;
    let found = version(&transaction)?.unwrap_or_default();
    let pending = schema::pending(found, MIGRATIONS, &path.display())?;
    for migration in pending {
        transaction.execute_batch(migration).map_err(classify)?;
    }
    transaction
        .execute(
            "UPDATE schema_version SET version = ?1 WHERE version <> ?1",
            [MIGRATIONS.len() as i64],
        )
        .map_err(classify)?;
    transaction.commit().map_err(classify)
}

/// Refuses a store that isn't exactly at this program's version.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let found = version(connection)?;
    schema::check(found, MIGRATIONS, &path.display())
}

fn version(connection: &Connection) -> Result<Option<i64>, StoreError> {
    let has_table: bool = connection
        .query_row(
            "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'schema_version')",
            (),
            |row| row.get(0),
        )
        .map_err(classify)?;
    if !has_table {
        return Ok(None);
    }
    connection
        .query_row("SELECT version FROM schema_version", (), |row| row.get(0))
        .map(Some)
        .map_err(classify)
}
