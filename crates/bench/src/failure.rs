//! Why a measurement couldn't be made.

use thiserror::Error;

/// Told to whoever runs the program.
#[derive(Debug, Error)]
pub enum Failure {
    /// The store underneath.
    #[error("the store: {0}")]
    Store(#[from] anabranch_store::StoreError),
    /// A command of the core.
    #[error("a command: {0}")]
    Run(#[from] anabranch_partition::RunError),
    /// The catalog service.
    #[error("the catalog: {0}")]
    Catalog(#[from] anabranch_catalog::CatalogError),
    /// Plain SQL on PostgreSQL.
    #[error("PostgreSQL: {0}")]
    Postgres(#[from] tokio_postgres::Error),
    /// Plain SQL on SQLite.
    #[error("SQLite: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// Files, processes, sockets.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// HTTP.
    #[error("HTTP: {0}")]
    Http(#[from] hyper::Error),
    /// Everything that is told in words.
    #[error("{0}")]
    Told(String),
}

impl Failure {
    /// A failure in words.
    pub fn told(words: impl Into<String>) -> Failure {
        Failure::Told(words.into())
    }
}
