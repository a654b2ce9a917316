//! A few connections that only read. In WAL mode they never wait for the writer.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::connection;
use super::error::gone;
use super::rows::Db;
use crate::error::StoreError;

/// Reader connections, opened when first needed.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    slots: Arc<Semaphore>,
    wait: Duration,
    statements: Arc<AtomicU64>,
}

impl Readers {
    pub fn new(
        path: PathBuf,
        size: usize,
        wait: Duration,
        statements: Arc<AtomicU64>,
    ) -> Arc<Readers> {
        Arc::new(Readers {
            path,
            idle: Mutex::new(Vec::with_capacity(size)),
            slots: Arc::new(Semaphore::new(size)),
            wait,
            statements,
        })
    }

    /// Runs `work` in one deferred transaction: one snapshot.
    pub async fn snapshot<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(Db<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let slot = tokio::time::timeout(self.wait, Arc::clone(&self.slots).acquire_owned())
            .await
            .map_err(|_| StoreError::Unavailable {
                detail: format!("no reader connection was free for {:?}", self.wait),
            })?
            .map_err(|_| gone())?;
        let readers = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            let _slot = slot;
            readers.run(work)
        })
        .await
        .map_err(|_| gone())?
    }

    fn run<T>(&self, work: impl FnOnce(Db<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => connection::open(&self.path, connection::Access::Read)?,
        };
        let db = Db {
            connection: &connection,
            statements: &self.statements,
        };
        db.control("BEGIN")?;
        let done = work(db);
        // A connection that can't end its snapshot is dropped, and the snapshot with it.
        db.control("COMMIT")?;
        self.idle().push(connection);
        done
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
