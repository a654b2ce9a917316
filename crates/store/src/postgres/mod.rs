//! The PostgreSQL engine, pessimistic or optimistic: any number of servers on one database.

mod branches;
mod connection;
mod log;
mod migrate;
mod options;
#[cfg(all(test, feature = "testing"))]
mod plans;
mod reads;
mod rows;
mod scan;
mod sqlstate;
mod tasks;
mod transaction;
mod writes;

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use tokio_postgres::Row;

pub use self::options::{LockMode, PostgresOptions};

use self::connection::{Connections, Statement, values};
use self::tasks::Lease;
use self::transaction::PostgresTransaction;
use crate::audit;
use crate::entry::{Entry, Key};
use crate::error::StoreError;
use crate::interface::{Store, Transaction, Violation};
use crate::partition::{PartitionId, PartitionRow};
use crate::read::{Answer, At, Feed, FeedPosition, Path, Read, Resolved};
use crate::revision::{Revision, StoreTime};
use crate::task::{Task, TaskId};
use crate::write::Change;

/// A store in a PostgreSQL database.
#[derive(Clone, Debug)]
pub struct PostgresStore {
    connections: Connections,
    mode: LockMode,
}

impl PostgresStore {
    /// Reaches the database, and migrates or checks its schema.
    pub async fn connect(
        url: &str,
        options: &PostgresOptions,
    ) -> Result<PostgresStore, StoreError> {
        let (config, mode, place) = options.resolve(url)?;
        let connections = Connections::new(config, options.pool_size, options.wait)?;
        if options.migrate {
            migrate::migrate(&connections, &place).await?;
        } else {
            migrate::check(&connections, &place).await?;
        }
        Ok(PostgresStore { connections, mode })
    }

    /// Statements that change nothing, in one snapshot.
    async fn snapshot(&self, statements: &[Statement<'_>]) -> Result<Vec<Vec<Row>>, StoreError> {
        let connection = self.connections.get().await?;
        let rows = connection.run_in_snapshot(statements).await?;
        connection.give_back();
        Ok(rows)
    }

    async fn look(&self, statement: Statement<'_>) -> Result<Vec<Row>, StoreError> {
        let mut rows = self.snapshot(&[statement]).await?;
        Ok(rows.pop().unwrap_or_default())
    }

    /// One statement that changes something and commits by itself.
    async fn change(&self, statement: Statement<'_>) -> Result<Vec<Row>, StoreError> {
        let connection = self.connections.get().await?;
        let rows = connection.run_committed(statement).await?;
        connection.give_back();
        Ok(rows)
    }
}

fn count(rows: &[Row]) -> Result<u64, StoreError> {
    let count: i64 = rows.first().map_or(Ok(0), |row| rows::get(row, 0))?;
    Ok(count.unsigned_abs())
}

#[async_trait]
impl Store for PostgresStore {
    fn engine(&self) -> &'static str {
        match self.mode {
            LockMode::Pessimistic => "postgres",
            LockMode::Optimistic => "postgres-optimistic",
            #[cfg(feature = "testing")]
            LockMode::Unprotected => "postgres-unprotected",
        }
    }

    fn is_serial(&self) -> bool {
        false
    }

    async fn begin_reading(
        &self,
        partitions: &[PartitionId],
        reads: &[Read],
    ) -> Result<(Box<dyn Transaction>, Vec<Answer>), StoreError> {
        let connection = self.connections.get().await?;
        let begun = PostgresTransaction::begin(connection, self.mode, partitions, reads).await?;
        let (transaction, answers) = begun;
        Ok((Box::new(transaction), answers))
    }

    async fn resolve(&self, paths: &[Path]) -> Result<Vec<Resolved>, StoreError> {
        let rows = self.look(reads::resolve(paths)).await?;
        reads::resolved(&rows, paths.len())
    }

    async fn read(&self, at: At, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
        let plan = reads::Plan::new(at, reads);
        let rows = self.snapshot(&plan.statements).await?;
        plan.answers(&rows)
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        let clock = Statement::new(format!("SELECT {}", rows::CLOCK), values![]);
        let rows = self.look(clock).await?;
        let row = rows
            .first()
            .ok_or_else(|| crate::codec::unreadable("no row", "of the clock"))?;
        Ok(StoreTime(rows::get(row, 0)?))
    }

    async fn feed(&self, after: &[FeedPosition], limit: u32) -> Result<Feed, StoreError> {
        log::feed_page(&self.snapshot(&log::feed(after, limit)).await?)
    }

    async fn feed_partitions(
        &self,
        below: Option<PartitionId>,
    ) -> Result<Vec<PartitionRow>, StoreError> {
        let rows = self.look(log::logged_partitions(below)).await?;
        rows.iter().map(|row| rows::partition(row, 0)).collect()
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
        let statement = log::changes_behind(partition, start, to, limit);
        self.look(statement)
            .await?
            .iter()
            .map(rows::change)
            .collect()
    }

    async fn prune(&self, partition: PartitionId, limit: u32) -> Result<u64, StoreError> {
        count(&self.change(log::prune(partition, limit)).await?)
    }

    async fn retire(&self, partition: PartitionId, limit: u32) -> Result<u64, StoreError> {
        count(&self.change(branches::retire(partition, limit)).await?)
    }

    async fn expire_operations(&self, limit: u32) -> Result<u64, StoreError> {
        count(&self.change(tasks::expire_operations(limit)).await?)
    }

    async fn history_page(
        &self,
        partition: PartitionId,
        after: Option<(Key, Revision)>,
        limit: u32,
    ) -> Result<Vec<(Key, Entry, Revision)>, StoreError> {
        let rows = self
            .look(log::history_page(partition, after, limit))
            .await?;
        rows.iter().map(log::ended_version).collect()
    }

    async fn current_page(
        &self,
        partition: PartitionId,
        after: Option<Key>,
        limit: u32,
    ) -> Result<Vec<(Key, Entry)>, StoreError> {
        let page = log::current_page(partition, after, limit);
        let rows = self.look(page).await?;
        rows.iter().map(log::standing_version).collect()
    }

    async fn lease_task(
        &self,
        kinds: &[&str],
        owner: &str,
        lease_micros: i64,
    ) -> Result<Option<Task>, StoreError> {
        // Whoever loses a race looks for another task; the others make progress meanwhile.
        const RACES: usize = 16;
        for _ in 0..RACES {
            let rows = self
                .change(tasks::lease(kinds, owner, lease_micros))
                .await?;
            match tasks::leased(&rows)? {
                Lease::Leased(task) => return Ok(Some(task)),
                Lease::NothingDue => return Ok(None),
                Lease::LostRace => {}
            }
        }
        Ok(None)
    }

    async fn finish_task(&self, task: TaskId, owner: &str) -> Result<bool, StoreError> {
        let rows = self.change(tasks::finish(task, owner)).await?;
        Ok(!rows.is_empty())
    }

    async fn postpone_task(
        &self,
        task: TaskId,
        owner: &str,
        delay_micros: i64,
    ) -> Result<bool, StoreError> {
        let rows = self
            .change(tasks::postpone(task, owner, delay_micros))
            .await?;
        Ok(!rows.is_empty())
    }

    async fn ensure_task(&self, task: &Task) -> Result<(), StoreError> {
        self.change(tasks::ensure(task)).await.map(|_| ())
    }

    async fn task(&self, task: TaskId) -> Result<Option<Task>, StoreError> {
        let rows = self.look(tasks::one(task)).await?;
        rows.first().map(tasks::task).transpose()
    }

    async fn save_task(
        &self,
        task: TaskId,
        owner: &str,
        body: &str,
        lease_micros: i64,
    ) -> Result<bool, StoreError> {
        let rows = self
            .change(tasks::save(task, owner, body, lease_micros))
            .await?;
        Ok(!rows.is_empty())
    }

    async fn audit(&self) -> Result<Vec<Violation>, StoreError> {
        let connection = self.connections.get().await?;
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
             SET LOCAL statement_timeout = 0; SET LOCAL enable_seqscan = on; \
             SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on";
        let control = async |sql| {
            let done = connection.control(sql).await;
            done.map_err(connection::SendError::before_commit)
        };
        control(begin).await?;
        let mut violations = Vec::new();
        for invariant in audit::INVARIANTS {
            let statement = Statement::new(invariant.sql, values![]);
            for row in connection.run(&[statement]).await?.iter().flatten() {
                violations.push(invariant.violated(rows::get(row, 0)?));
            }
        }
        control("COMMIT").await?;
        connection.give_back();
        Ok(violations)
    }

    async fn backup(&self, _target: &std::path::Path) -> Result<(), StoreError> {
        Err(StoreError::Unusable {
            message:
                "a PostgreSQL store is backed up with PostgreSQL's own tools; use pg_dump for \
                      a copy, or pg_basebackup with WAL archiving"
                    .to_owned(),
        })
    }

    fn statements(&self) -> u64 {
        self.connections.statements.load(Ordering::Relaxed)
    }
}
