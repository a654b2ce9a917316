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

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        _folder: tempfile::TempDir,
        readers: Arc<Readers>,
        writer: Connection,
    }

    impl World {
        fn new() -> World {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("store.db");
            let writer = connection::open(&path, connection::Access::Create).unwrap();
            writer
                .execute_batch("CREATE TABLE both (a, b); INSERT INTO both VALUES (1, 1)")
                .unwrap();
            let wait = Duration::from_secs(5);
            World {
                readers: Readers::new(path, 1, wait, Arc::default()),
                writer,
                _folder: folder,
            }
        }
    }

    fn look(db: &Db<'_>, column: &str) -> i64 {
        let sql = format!("SELECT {column} FROM both");
        let found = db.connection.query_row(&sql, (), |row| row.get(0));
        found.unwrap()
    }

    const COMMIT: &str = "UPDATE both SET a = 2, b = 2";

    /// e5 of this engine.
    #[tokio::test]
    async fn what_is_read_around_a_commit_is_one_state() {
        let World {
            readers,
            writer,
            _folder,
        } = World::new();
        let read = readers.snapshot(move |db| {
            let a = look(&db, "a");
            writer.execute_batch(COMMIT).unwrap();
            Ok((a, look(&db, "b")))
        });
        assert_eq!(read.await.unwrap(), (1, 1));
    }

    /// The trap.
    #[tokio::test]
    async fn two_snapshots_see_half_of_a_commit() {
        let world = World::new();
        let a = world.readers.snapshot(|db| Ok(look(&db, "a"))).await;
        world.writer.execute_batch(COMMIT).unwrap();
        let b = world.readers.snapshot(|db| Ok(look(&db, "b"))).await;
        assert_eq!((a.unwrap(), b.unwrap()), (1, 2));
    }
}
