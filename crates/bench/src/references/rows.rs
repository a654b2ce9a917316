//! How many rows a store has, counted beside the server.

use std::path::PathBuf;

use rusqlite::{Connection, OpenFlags};
use tokio_postgres::Client;

use crate::database;
use crate::failure::Failure;

/// Everything that a commit may write into.
const COUNT: &str = "SELECT (SELECT count(*) FROM current) + (SELECT count(*) FROM history) \
     + (SELECT count(*) FROM change) + (SELECT count(*) FROM branch) \
     + (SELECT count(*) FROM pin) + (SELECT count(*) FROM birth) \
     + (SELECT count(*) FROM operation)";

/// Looks into a store.
pub enum Rows {
    Sqlite(PathBuf),
    Postgres(Client),
}

impl Rows {
    pub async fn of_postgres(url: &str) -> Result<Rows, Failure> {
        Ok(Rows::Postgres(database::connect(url).await?))
    }

    pub async fn count(&self) -> Result<i64, Failure> {
        match self {
            Rows::Sqlite(path) => {
                let reader = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
                Ok(reader.query_row(COUNT, [], |row| row.get(0))?)
            }
            Rows::Postgres(client) => Ok(client.query_one(COUNT, &[]).await?.get(0)),
        }
    }
}
