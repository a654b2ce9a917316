//! Fresh stores for the tests of this crate and of those above it.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use futures::FutureExt;
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

use crate::error::StoreError;
use crate::interface::Store;
use crate::postgres::{LockMode, PostgresOptions, PostgresStore};
use crate::sqlite::{SqliteOptions, SqliteStore};

/// The environment variable with the URL of a PostgreSQL in which tests may make databases.
pub const POSTGRES_VARIABLE: &str = "ANABRANCH_TEST_POSTGRES";

/// A fresh SQLite store in this folder.
pub fn sqlite_store(folder: &Path) -> Result<Arc<dyn Store>, StoreError> {
    let options = SqliteOptions {
        migrate: true,
        exclusive: true,
        ..SqliteOptions::default()
    };
    let store = SqliteStore::open(&folder.join("store.db"), &options)?;
    Ok(Arc::new(store))
}

/// A database of a test's own. [`TestDatabase::remove`] drops it.
#[derive(Debug)]
pub struct TestDatabase {
    server: String,
    name: String,
}

impl TestDatabase {
    /// An empty database on the server that [`POSTGRES_VARIABLE`] names.
    ///
    /// # Panics
    ///
    /// If the variable isn't set, or the server doesn't let it: then the test can't run.
    pub async fn create() -> TestDatabase {
        let Ok(server) = std::env::var(POSTGRES_VARIABLE) else {
            panic!(
                "this test needs a PostgreSQL: run `./test`, which starts one, or set \
                 {POSTGRES_VARIABLE} to the URL of one in which databases may be made"
            );
        };
        let name = format!("anabranch_test_{}", Uuid::new_v4().simple());
        administer(&server, &format!("CREATE DATABASE {name}")).await;
        TestDatabase { server, name }
    }

    /// The database's URL.
    pub fn url(&self) -> String {
        with_database(&self.server, &self.name)
    }

    /// Drops the database, whoever is still connected.
    pub async fn remove(self) {
        let Self { server, name } = self;
        administer(&server, &format!("DROP DATABASE {name} WITH (FORCE)")).await;
    }

    /// A plain connection, for what no store lets one do.
    ///
    /// # Panics
    ///
    /// If it can't connect.
    pub async fn client(&self) -> Client {
        connect(&self.url()).await
    }
}

/// Replaces the path of a URL.
fn with_database(server: &str, name: &str) -> String {
    let (base, query) = match server.split_once('?') {
        Some((base, query)) => (base, format!("?{query}")),
        None => (server, String::new()),
    };
    let authority = base.find("://").map_or(0, |place| place + 3);
    let end = base[authority..]
        .find('/')
        .map_or(base.len(), |place| authority + place);
    format!("{}/{name}{query}", &base[..end])
}

async fn connect(url: &str) -> Client {
    let connected = tokio_postgres::connect(url, NoTls).await;
    let (client, connection) = match connected {
        Ok(connected) => connected,
        Err(error) => panic!("cannot reach the test's PostgreSQL: {error}"),
    };
    tokio::spawn(connection);
    client
}

async fn administer(server: &str, sql: &str) {
    let client = connect(server).await;
    if let Err(error) = client.batch_execute(sql).await {
        panic!("{sql}: {error:?}");
    }
}

/// A migrated PostgreSQL store in a database of its own. Drop the database when done.
///
/// # Panics
///
/// As [`TestDatabase::create`].
pub async fn postgres_store(mode: LockMode) -> (Arc<dyn Store>, TestDatabase) {
    let database = TestDatabase::create().await;
    let options = PostgresOptions {
        migrate: true,
        mode,
        ..PostgresOptions::default()
    };
    match PostgresStore::connect(&database.url(), &options).await {
        Ok(store) => (Arc::new(store), database),
        Err(error) => panic!("cannot open a fresh store: {error}"),
    }
}

/// Runs a test on a fresh PostgreSQL store and drops its database, also if the test panics.
pub async fn with_postgres_store<F>(mode: LockMode, test: impl FnOnce(Arc<dyn Store>) -> F)
where
    F: Future<Output = ()>,
{
    let (store, database) = postgres_store(mode).await;
    let outcome = AssertUnwindSafe(test(store)).catch_unwind().await;
    database.remove().await;
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}
