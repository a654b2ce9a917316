//! The decorated store.

use std::path::Path as FilePath;
use std::sync::Arc;

use async_trait::async_trait;

use super::points::{Faults, Verdict, When, connection_lost, unknown};
use super::transaction::FaultTransaction;
use crate::entry::{Entry, Key};
use crate::error::StoreError;
use crate::interface::{Store, Transaction, Violation};
use crate::partition::{PartitionId, PartitionRow};
use crate::read::{Answer, At, Feed, FeedPosition, Path, Read, Resolved};
use crate::revision::{Revision, StoreTime};
use crate::task::{Task, TaskId};
use crate::write::Change;

/// A store whose calls go wrong as [`Faults`] say.
pub struct FaultStore {
    inner: Arc<dyn Store>,
    faults: Faults,
}

impl FaultStore {
    /// Decorates a store.
    pub fn new(inner: Arc<dyn Store>, faults: Faults) -> FaultStore {
        FaultStore { inner, faults }
    }
}

/// Runs a call between its two points; `lost` is what the caller sees of a lost one.
macro_rules! call {
    ($faults:expr, $name:literal, $lost:expr, $work:expr) => {{
        match $faults.pass($name, When::Before).await {
            Verdict::GoOn => {}
            Verdict::Error(error) => return Err(error),
            Verdict::Lost => return Err($lost()),
        }
        let done = $work.await;
        match $faults.pass($name, When::After).await {
            Verdict::GoOn => done,
            Verdict::Error(error) => Err(error),
            Verdict::Lost => Err($lost()),
        }
    }};
}
pub(super) use call;

#[async_trait]
impl Store for FaultStore {
    fn engine(&self) -> &'static str {
        self.inner.engine()
    }

    fn is_serial(&self) -> bool {
        self.inner.is_serial()
    }

    async fn begin_reading(
        &self,
        partitions: &[PartitionId],
        reads: &[Read],
    ) -> Result<(Box<dyn Transaction>, Vec<Answer>), StoreError> {
        let begun: Result<(Box<dyn Transaction>, Vec<Answer>), StoreError> = call!(
            self.faults,
            "begin",
            connection_lost,
            self.inner.begin_reading(partitions, reads)
        );
        let (transaction, answers) = begun?;
        let transaction = FaultTransaction::new(transaction, self.faults.clone());
        Ok((Box::new(transaction), answers))
    }

    async fn resolve(&self, paths: &[Path]) -> Result<Vec<Resolved>, StoreError> {
        let resolved: Result<Vec<Resolved>, StoreError> = call!(
            self.faults,
            "resolve",
            connection_lost,
            self.inner.resolve(paths)
        );
        let mut resolved = resolved?;
        for one in &mut resolved {
            one.now = one.now.plus_micros(self.faults.clock_shift());
        }
        Ok(resolved)
    }

    async fn read(&self, at: At, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
        call!(
            self.faults,
            "read",
            connection_lost,
            self.inner.read(at, reads)
        )
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        let now: Result<StoreTime, StoreError> =
            call!(self.faults, "now", connection_lost, self.inner.now());
        Ok(now?.plus_micros(self.faults.clock_shift()))
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }

    async fn feed(&self, after: &[FeedPosition], limit: u32) -> Result<Feed, StoreError> {
        call!(
            self.faults,
            "feed",
            connection_lost,
            self.inner.feed(after, limit)
        )
    }

    async fn feed_partitions(
        &self,
        below: Option<PartitionId>,
    ) -> Result<Vec<PartitionRow>, StoreError> {
        call!(
            self.faults,
            "feed_partitions",
            connection_lost,
            self.inner.feed_partitions(below)
        )
    }

    async fn changes_between(
        &self,
        partition: PartitionId,
        from: Revision,
        to: Revision,
        after: Option<(Revision, i32)>,
        limit: u32,
    ) -> Result<Vec<Change>, StoreError> {
        call!(
            self.faults,
            "changes_between",
            connection_lost,
            self.inner
                .changes_between(partition, from, to, after, limit)
        )
    }

    async fn prune(&self, partition: PartitionId, limit: u32) -> Result<u64, StoreError> {
        call!(
            self.faults,
            "prune",
            unknown,
            self.inner.prune(partition, limit)
        )
    }

    async fn retire(&self, partition: PartitionId, limit: u32) -> Result<u64, StoreError> {
        call!(
            self.faults,
            "retire",
            unknown,
            self.inner.retire(partition, limit)
        )
    }

    async fn expire_operations(&self, limit: u32) -> Result<u64, StoreError> {
        call!(
            self.faults,
            "expire_operations",
            unknown,
            self.inner.expire_operations(limit)
        )
    }

    async fn history_page(
        &self,
        partition: PartitionId,
        after: Option<(Key, Revision)>,
        limit: u32,
    ) -> Result<Vec<(Key, Entry, Revision)>, StoreError> {
        call!(
            self.faults,
            "history_page",
            connection_lost,
            self.inner.history_page(partition, after, limit)
        )
    }

    async fn current_page(
        &self,
        partition: PartitionId,
        after: Option<Key>,
        limit: u32,
    ) -> Result<Vec<(Key, Entry)>, StoreError> {
        call!(
            self.faults,
            "current_page",
            connection_lost,
            self.inner.current_page(partition, after, limit)
        )
    }

    async fn lease_task(
        &self,
        kinds: &[&str],
        owner: &str,
        lease_micros: i64,
    ) -> Result<Option<Task>, StoreError> {
        call!(
            self.faults,
            "lease_task",
            unknown,
            self.inner.lease_task(kinds, owner, lease_micros)
        )
    }

    async fn finish_task(&self, task: TaskId, owner: &str) -> Result<bool, StoreError> {
        call!(
            self.faults,
            "finish_task",
            unknown,
            self.inner.finish_task(task, owner)
        )
    }

    async fn postpone_task(
        &self,
        task: TaskId,
        owner: &str,
        delay_micros: i64,
    ) -> Result<bool, StoreError> {
        call!(
            self.faults,
            "postpone_task",
            unknown,
            self.inner.postpone_task(task, owner, delay_micros)
        )
    }

    async fn ensure_task(&self, task: &Task) -> Result<(), StoreError> {
        call!(
            self.faults,
            "ensure_task",
            unknown,
            self.inner.ensure_task(task)
        )
    }

    async fn task(&self, task: TaskId) -> Result<Option<Task>, StoreError> {
        call!(self.faults, "task", connection_lost, self.inner.task(task))
    }

    async fn save_task(
        &self,
        task: TaskId,
        owner: &str,
        body: &str,
        lease_micros: i64,
    ) -> Result<bool, StoreError> {
        call!(
            self.faults,
            "save_task",
            unknown,
            self.inner.save_task(task, owner, body, lease_micros)
        )
    }

    async fn audit(&self) -> Result<Vec<Violation>, StoreError> {
        self.inner.audit().await
    }

    async fn backup(&self, target: &FilePath) -> Result<(), StoreError> {
        call!(
            self.faults,
            "backup",
            connection_lost,
            self.inner.backup(target)
        )
    }

    fn statements(&self) -> u64 {
        self.inner.statements()
    }
}
