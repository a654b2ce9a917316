//! Forward migrations. Any number of servers may start at once on an empty database: they queue
//! behind the one row of `schema_version`, whose lock ends with the session that holds it.

use std::time::Duration;

use tokio_postgres::Error;

use super::connection::{Connection, Connections};
use super::sqlstate;
use crate::error::StoreError;
use crate::schema;

const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/postgres/0001_partitions.sql"),
    include_str!("../../migrations/postgres/0002_branches.sql"),
];
const ATTEMPTS: u32 = 20;

pub(super) async fn migrate(connections: &Connections, place: &str) -> Result<(), StoreError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let connection = connections.get().await?;
        match try_migrate(&connection, place).await {
            Ok(()) => {
                connection.give_back();
                return Ok(());
            }
            Err(Failure::Store(error)) => return Err(error),
            Err(Failure::Database(error)) => {
                if attempt == ATTEMPTS || !sqlstate::is_concurrent_start(&error) {
                    return Err(sqlstate::before_pipelined_commit(&error));
                }
                tracing::debug!(%error, attempt, "another server migrates; trying again");
                tokio::time::sleep(Duration::from_millis(rand::random_range(5..50))).await;
            }
        }
    }
}

enum Failure {
    Store(StoreError),
    Database(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Database(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::Store(error)
    }
}

async fn try_migrate(connection: &Connection, place: &str) -> Result<(), Failure> {
    let client = connection.client()?;
    client
        .batch_execute(
            "CREATE TABLE IF NOT EXISTS schema_version (\
                 only_row int PRIMARY KEY CHECK (only_row = 1), version bigint NOT NULL)",
        )
        .await?;
    client
        .batch_execute("INSERT INTO schema_version VALUES (1, 0) ON CONFLICT DO NOTHING")
        .await?;
    client
        .batch_execute("BEGIN; SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = 0")
        .await?;
    let row = client
        .query_one(
            "UPDATE schema_version SET version = version RETURNING version",
            &[],
        )
        .await?;
    let found: i64 = row.try_get(0)?;
    for migration in schema::pending(found, MIGRATIONS, &place)? {
        client.batch_execute(migration).await?;
    }
    let newest = MIGRATIONS.len() as i64;
    client
        .execute("UPDATE schema_version SET version = $1", &[&newest])
        .await?;
    client.batch_execute("COMMIT").await?;
    Ok(())
}

/// Refuses a store that isn't exactly at this program's version.
pub(super) async fn check(connections: &Connections, place: &str) -> Result<(), StoreError> {
    let connection = connections.get().await?;
    let found = found_version(&connection).await?;
    connection.give_back();
    schema::check(found, MIGRATIONS, &place)
}

async fn found_version(connection: &Connection) -> Result<Option<i64>, StoreError> {
    let client = connection.client()?;
    let failed = |error: Error| sqlstate::before_commit(&error);
    let table: Option<i64> = client
        .query_one("SELECT to_regclass('schema_version')::oid::int8", &[])
        .await
        .and_then(|row| row.try_get(0))
        .map_err(failed)?;
    if table.is_none() {
        return Ok(None);
    }
    client
        .query_one("SELECT version FROM schema_version", &[])
        .await
        .and_then(|row| row.try_get(0))
        .map(Some)
        .map_err(failed)
}
