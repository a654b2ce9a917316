//! Which engine a URL means.

use std::path::Path;
use std::sync::Arc;

use crate::error::StoreError;
use crate::interface::Store;
use crate::postgres::{PostgresOptions, PostgresStore};
use crate::sqlite::{SqliteOptions, SqliteStore};

/// How a store is opened, whatever its engine.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Make the store if there is none, and bring it to this program's schema.
    pub migrate: bool,
    /// Keep other serving processes away, where the engine serves only one.
    pub exclusive: bool,
    /// What is particular to SQLite; `migrate` and `exclusive` come from here.
    pub sqlite: SqliteOptions,
    /// What is particular to PostgreSQL; `migrate` comes from here.
    pub postgres: PostgresOptions,
}

/// Opens `sqlite:PATH`, `postgres://…` or `postgresql://…`, the latter two optionally with
/// `?mode=optimistic`.
pub async fn open(url: &str, options: &OpenOptions) -> Result<Arc<dyn Store>, StoreError> {
    if let Some(path) = url.strip_prefix("sqlite:") {
        let path = Path::new(path.strip_prefix("//").unwrap_or(path)).to_owned();
        let sqlite = SqliteOptions {
            migrate: options.migrate,
            exclusive: options.exclusive,
            ..options.sqlite.clone()
        };
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path, &sqlite)).await;
        let store = opened.map_err(|error| StoreError::Failed {
            detail: error.to_string(),
        })??;
        return Ok(Arc::new(store));
    }
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        let postgres = PostgresOptions {
            migrate: options.migrate,
            ..options.postgres.clone()
        };
        return Ok(Arc::new(PostgresStore::connect(url, &postgres).await?));
    }
    let scheme = url.split(':').next().unwrap_or_default();
    Err(StoreError::Unusable {
        message: format!(
            "no engine is called {scheme:?}; a store is sqlite:PATH or \
             postgres://user@host:5432/database"
        ),
    })
}
