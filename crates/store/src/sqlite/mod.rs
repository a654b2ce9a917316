//! The embedded engine: one file, one writing process, any number of readers.

mod branches;
mod connection;
mod error;
mod log;
mod migrate;
mod readers;
mod reads;
mod rows;
mod scan;
mod tasks;
mod transaction;
mod writer;
mod writes;

use std::fs::File;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use self::connection::Access;
use self::readers::Readers;
use self::transaction::SqliteTransaction;
use self::writer::Writer;
use crate::audit;
use crate::entry::{Entry, Key};
use crate::error::StoreError;
use crate::interface::{Store, Transaction, Violation};
use crate::partition::{PartitionId, PartitionRow};
use crate::read::{Answer, At, Feed, FeedPosition, Path, Read, Resolved};
use crate::revision::{Revision, StoreTime};
use crate::task::{Task, TaskId};
use crate::write::Change;

/// How a SQLite store is opened.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// Make the file if there is none, and bring it to this program's schema.
    pub migrate: bool,
    /// Keep every other exclusive process away, through the lock file `<path>.lock`.
    pub exclusive: bool,
    /// Reader connections.
    pub readers: usize,
    /// How long a transaction waits for the writer, and a read for a reader.
    pub wait: Duration,
}

impl Default for SqliteOptions {
    fn default() -> SqliteOptions {
        SqliteOptions {
            migrate: false,
            exclusive: false,
            readers: 4,
            wait: Duration::from_secs(5),
        }
    }
}

/// A store in one SQLite file (WAL, `synchronous = FULL`).
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    writer: Writer,
    readers: Arc<Readers>,
    statements: Arc<AtomicU64>,
    /// Closing it gives the store free.
    _lock: Option<File>,
}

impl SqliteStore {
    /// Opens the store in this file. Blocks for as long as a migration takes.
    pub fn open(path: &FilePath, options: &SqliteOptions) -> Result<SqliteStore, StoreError> {
        let lock = options
            .exclusive
            .then(|| connection::lock_exclusively(path))
            .transpose()?;
        if !options.migrate && !path.exists() {
            return Err(StoreError::Unusable {
                message: format!(
                    "there is no store at {}; check the path, or run `anabranch migrate` to make one",
                    path.display()
                ),
            });
        }
        let access = if options.migrate {
            Access::Create
        } else {
            Access::Write
        };
        let mut connection = connection::open(path, access)?;
        if options.migrate {
            migrate::migrate(&mut connection, path)?;
        } else {
            migrate::check(&connection, path)?;
        }
        let statements = Arc::new(AtomicU64::new(0));
        let writer =
            Writer::start(connection, Arc::clone(&statements), options.wait).map_err(|error| {
                StoreError::Unavailable {
                    detail: format!("no thread for the writer: {error}"),
                }
            })?;
        let readers = Readers::new(
            path.to_owned(),
            options.readers.max(1),
            options.wait,
            Arc::clone(&statements),
        );
        Ok(SqliteStore {
            path: path.to_owned(),
            writer,
            readers,
            statements,
            _lock: lock,
        })
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn engine(&self) -> &'static str {
        "sqlite"
    }

    fn is_serial(&self) -> bool {
        true
    }

    async fn begin_reading(
        &self,
        partitions: &[PartitionId],
        reads: &[Read],
    ) -> Result<(Box<dyn Transaction>, Vec<Answer>), StoreError> {
        let turn = self.writer.turn().await?;
        let (transaction, answers) = SqliteTransaction::begin(turn, partitions, reads).await?;
        Ok((Box::new(transaction), answers))
    }

    async fn resolve(&self, paths: &[Path]) -> Result<Vec<Resolved>, StoreError> {
        let paths = paths.to_vec();
        let resolve = move |db: rows::Db<'_>| {
            let found = paths.iter().map(|path| reads::resolve(db, path));
            found.collect()
        };
        self.readers.snapshot(resolve).await
    }

    async fn read(&self, at: At, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
        let reads = reads.to_vec();
        let answer = move |db: rows::Db<'_>| reads::answer_all(db, at, &reads);
        self.readers.snapshot(answer).await
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        Ok(rows::now())
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.writer.check(&self.path).await
    }

    async fn feed(&self, after: &[FeedPosition], limit: u32) -> Result<Feed, StoreError> {
        let after = after.to_vec();
        let read = move |db: rows::Db<'_>| log::feed(db, &after, limit);
        self.readers.snapshot(read).await
    }

    async fn feed_partitions(
        &self,
        below: Option<PartitionId>,
    ) -> Result<Vec<PartitionRow>, StoreError> {
        let list = move |db: rows::Db<'_>| log::logged_partitions(db, below);
        self.readers.snapshot(list).await
    }

    async fn changes_between(
        &self,
        partition: PartitionId,
        from: Revision,
        to: Revision,
        after: Option<(Revision, i32)>,
        limit: u32,
    ) -> Result<Vec<Change>, StoreError> {
        let start = after.unwrap_or_default().max((from, i32::MAX));
        let read = move |db: rows::Db<'_>| log::changes_behind(db, partition, start, to, limit);
        self.readers.snapshot(read).await
    }

    async fn prune(&self, partition: PartitionId, limit: u32) -> Result<u64, StoreError> {
        let prune = move |db: rows::Db<'_>| log::prune(db, partition, limit);
        self.writer.transact(prune).await
    }

    async fn retire(&self, partition: PartitionId, limit: u32) -> Result<u64, StoreError> {
        let retire = move |db: rows::Db<'_>| branches::retire(db, partition, limit);
        self.writer.transact(retire).await
    }

    async fn expire_operations(&self, limit: u32) -> Result<u64, StoreError> {
        let expire = move |db: rows::Db<'_>| tasks::expire_operations(db, limit);
        self.writer.transact(expire).await
    }

    async fn history_page(
        &self,
        partition: PartitionId,
        after: Option<(Key, Revision)>,
        limit: u32,
    ) -> Result<Vec<(Key, Entry, Revision)>, StoreError> {
        let read = move |db: rows::Db<'_>| log::history_page(db, partition, after.as_ref(), limit);
        self.readers.snapshot(read).await
    }

    async fn current_page(
        &self,
        partition: PartitionId,
        after: Option<Key>,
        limit: u32,
    ) -> Result<Vec<(Key, Entry)>, StoreError> {
        let read = move |db: rows::Db<'_>| log::current_page(db, partition, after.as_ref(), limit);
        self.readers.snapshot(read).await
    }

    async fn lease_task(
        &self,
        kinds: &[&str],
        owner: &str,
        lease_micros: i64,
    ) -> Result<Option<Task>, StoreError> {
        let kinds: Vec<String> = kinds.iter().map(|&kind| kind.to_owned()).collect();
        let owner = owner.to_owned();
        let lease = move |db: rows::Db<'_>| tasks::lease(db, &kinds, &owner, lease_micros);
        self.writer.transact(lease).await
    }

    async fn finish_task(&self, task: TaskId, owner: &str) -> Result<bool, StoreError> {
        let owner = owner.to_owned();
        let finish = move |db: rows::Db<'_>| tasks::finish(db, task, &owner);
        self.writer.transact(finish).await
    }

    async fn postpone_task(
        &self,
        task: TaskId,
        owner: &str,
        delay_micros: i64,
    ) -> Result<bool, StoreError> {
        let owner = owner.to_owned();
        let postpone = move |db: rows::Db<'_>| tasks::postpone(db, task, &owner, delay_micros);
        self.writer.transact(postpone).await
    }

    async fn ensure_task(&self, task: &Task) -> Result<(), StoreError> {
        let task = task.clone();
        let ensure =
            move |db: rows::Db<'_>| writes::insert_task(db, &task, "ON CONFLICT (id) DO NOTHING");
        self.writer.transact(ensure).await
    }

    async fn task(&self, task: TaskId) -> Result<Option<Task>, StoreError> {
        let read = move |db: rows::Db<'_>| tasks::one(db, task);
        self.readers.snapshot(read).await
    }

    async fn save_task(
        &self,
        task: TaskId,
        owner: &str,
        body: &str,
        lease_micros: i64,
    ) -> Result<bool, StoreError> {
        let (owner, body) = (owner.to_owned(), body.to_owned());
        let save = move |db: rows::Db<'_>| tasks::save(db, task, &owner, &body, lease_micros);
        self.writer.transact(save).await
    }

    async fn audit(&self) -> Result<Vec<Violation>, StoreError> {
        let check = move |db: rows::Db<'_>| {
            let mut violations = Vec::new();
            for invariant in audit::INVARIANTS {
                violations.extend(
                    db.query(invariant.sql, (), |row| Ok(invariant.violated(row.get(0)?)))?,
                );
            }
            Ok(violations)
        };
        self.readers.snapshot(check).await
    }

    async fn backup(&self, target: &FilePath) -> Result<(), StoreError> {
        let (path, target) = (self.path.clone(), target.to_owned());
        tokio::task::spawn_blocking(move || connection::back_up(&path, &target))
            .await
            .map_err(|_| error::gone())?
    }

    fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }
}
