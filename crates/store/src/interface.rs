//! The two traits that every engine implements.

use async_trait::async_trait;

use crate::entry::Key;
use crate::error::StoreError;
use crate::partition::{PartitionId, PartitionRow};
use crate::read::{Answer, At, Feed, FeedPosition, Path, Read, Resolved};
use crate::revision::{CommitId, Revision, StoreTime};
use crate::task::{Task, TaskId};
use crate::write::{Change, WriteSet};

/// A broken invariant that the audit found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant's name, such as `current-row-in-live-partition`.
    pub invariant: &'static str,
    /// What breaks it: ids and names, for the operator.
    pub detail: String,
}

/// One SQL database behind one locking seam.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// The engine's name: `sqlite`, `postgres` or `postgres-optimistic`.
    fn engine(&self) -> &'static str;

    /// Whether all writes of this store are serial anyway, so that one batch may hold any set of
    /// partitions (SQLite).
    fn is_serial(&self) -> bool;

    /// Begins an SQL transaction that holds the given partitions, which are sorted and distinct,
    /// and answers reads of what stands then, all in one step of the engine.
    /// Rows of partitions that don't exist are absent from [`Transaction::partitions`].
    async fn begin_reading(
        &self,
        partitions: &[PartitionId],
        reads: &[Read],
    ) -> Result<(Box<dyn Transaction>, Vec<Answer>), StoreError>;

    /// The same without reads.
    async fn begin(&self, partitions: &[PartitionId]) -> Result<Box<dyn Transaction>, StoreError> {
        let (transaction, _) = self.begin_reading(partitions, &[]).await?;
        Ok(transaction)
    }

    /// Resolves names from the top down, all at latest and in one statement.
    async fn resolve(&self, paths: &[Path]) -> Result<Vec<Resolved>, StoreError>;

    /// Answers reads in their order from one database snapshot, without locks.
    /// With [`At::Revision`] the caller has made sure that the clocks reached it.
    async fn read(&self, at: At, reads: &[Read]) -> Result<Vec<Answer>, StoreError>;

    /// The store's time.
    async fn now(&self) -> Result<StoreTime, StoreError>;

    /// Whether the store answers, and takes writes as far as it knows.
    async fn check(&self) -> Result<(), StoreError> {
        self.now().await.map(|_| ())
    }

    /// The next changes behind the given positions, from one database snapshot, at most `limit`.
    /// Dropped partitions are read like live ones.
    async fn feed(&self, after: &[FeedPosition], limit: u32) -> Result<Feed, StoreError>;

    /// All partitions that have or had changes, dropped ones included, with their rows.
    async fn feed_partitions(
        &self,
        below: Option<PartitionId>,
    ) -> Result<Vec<PartitionRow>, StoreError>;

    /// The changes of one partition with `from < revision <= to`, in order, at most `limit`, behind
    /// the (revision, place) `after`: the difference between two revisions, in steps.
    async fn changes_between(
        &self,
        partition: PartitionId,
        from: Revision,
        to: Revision,
        after: Option<(Revision, i32)>,
        limit: u32,
    ) -> Result<Vec<Change>, StoreError>;

    /// Removes history and change log strictly below the partition's horizon, and what stood on
    /// branches that had ended by then, unless a state of them is kept; at most `limit` rows; answers how many went. The horizon itself is raised by a [`WriteSet`].
    async fn prune(&self, partition: PartitionId, limit: u32) -> Result<u64, StoreError>;

    /// Removes what is left of branches that ended at or below the partition's horizon, of which
    /// nothing pins a state and whose merges pin none, at most `limit` rows of each kind; answers
    /// how many went, none if all are gone.
    async fn retire(&self, partition: PartitionId, limit: u32) -> Result<u64, StoreError>;

    /// Removes operation records that have expired by the store's clock; answers how many.
    async fn expire_operations(&self, limit: u32) -> Result<u64, StoreError>;

    /// Bodies of versions that ended, one page behind the given (key, from), for jobs that must
    /// know everything that is still readable: what `prune` has not yet removed.
    async fn history_page(
        &self,
        partition: PartitionId,
        after: Option<(Key, Revision)>,
        limit: u32,
    ) -> Result<Vec<(Key, crate::Entry, Revision)>, StoreError>;

    /// What stands on all branches of a partition, one page behind the given key: with
    /// [`Store::history_page`], everything that can be read.
    async fn current_page(
        &self,
        partition: PartitionId,
        after: Option<Key>,
        limit: u32,
    ) -> Result<Vec<(Key, crate::Entry)>, StoreError>;

    /// Leases one due task of the given kinds for `lease_micros` by the store's clock; a task
    /// whose lease ran out counts as due. Nobody else gets it meanwhile.
    async fn lease_task(
        &self,
        kinds: &[&str],
        owner: &str,
        lease_micros: i64,
    ) -> Result<Option<Task>, StoreError>;

    /// Removes a task that this owner still leases; false if the lease was lost.
    async fn finish_task(&self, task: TaskId, owner: &str) -> Result<bool, StoreError>;

    /// Gives a leased task back, due after `delay_micros` by the store's clock.
    async fn postpone_task(
        &self,
        task: TaskId,
        owner: &str,
        delay_micros: i64,
    ) -> Result<bool, StoreError>;

    /// Adds a task unless one with this id is there: how recurring jobs come into being.
    async fn ensure_task(&self, task: &Task) -> Result<(), StoreError>;

    /// One task, leased or not, with its body as it was saved last.
    async fn task(&self, task: TaskId) -> Result<Option<Task>, StoreError>;

    /// Replaces the body of a task that this owner still leases, and leases it for `lease_micros`
    /// from now on; false if the lease was lost.
    async fn save_task(
        &self,
        task: TaskId,
        owner: &str,
        body: &str,
        lease_micros: i64,
    ) -> Result<bool, StoreError>;

    /// Every invariant of the store as a query that must return nothing.
    async fn audit(&self) -> Result<Vec<Violation>, StoreError>;

    /// Writes a consistent copy of the whole store to a new file, while the store is in use.
    /// Engines with a backup tool of their own refuse and name it.
    async fn backup(&self, target: &std::path::Path) -> Result<(), StoreError>;

    /// SQL statements sent so far, BEGIN and COMMIT not counted.
    fn statements(&self) -> u64;
}

/// An SQL transaction that holds partitions: locked (`sqlite`, `postgres`), or guarded so that
/// COMMIT fails if anyone else committed to one of them meanwhile (`postgres-optimistic`).
/// Dropping it rolls back.
#[async_trait]
pub trait Transaction: Send {
    /// The store's time, read with the lock.
    fn now(&self) -> StoreTime;

    /// The rows of all partitions held so far, ascending.
    fn partitions(&self) -> &[PartitionRow];

    /// Takes further partitions, each above all that are held.
    async fn lock(&mut self, more: &[PartitionId]) -> Result<(), StoreError>;

    /// Answers reads in their order; they see everything that was committed before the lock.
    async fn read(&mut self, at: At, reads: &[Read]) -> Result<Vec<Answer>, StoreError>;

    /// The keys changed in a held partition after the given transaction, or `None` if the change
    /// log doesn't hold it (any more) and nothing can be said.
    async fn changed_since(
        &mut self,
        partition: PartitionId,
        revision: Revision,
        commit: CommitId,
    ) -> Result<Option<Vec<Key>>, StoreError>;

    /// Whether the change log of a held partition has this transaction at this revision.
    async fn holds_commit(
        &mut self,
        partition: PartitionId,
        revision: Revision,
        commit: CommitId,
    ) -> Result<bool, StoreError>;

    /// Writes and commits. [`StoreError::Unknown`] only if COMMIT may have been applied.
    async fn commit(self: Box<Self>, writes: &WriteSet) -> Result<(), StoreError>;

    /// Gives everything up.
    async fn rollback(self: Box<Self>);
}
