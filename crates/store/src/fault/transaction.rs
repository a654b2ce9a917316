//! The decorated transaction. A lost connection takes the transaction with it.

use async_trait::async_trait;

use super::points::{Faults, Verdict, When, connection_lost, unknown};
use super::store::call;
use crate::entry::Key;
use crate::error::StoreError;
use crate::interface::Transaction;
use crate::partition::{PartitionId, PartitionRow};
use crate::read::{Answer, At, Read};
use crate::revision::{CommitId, Revision, StoreTime};
use crate::write::WriteSet;

pub(super) struct FaultTransaction {
    /// `None` once its connection was lost.
    inner: Option<Box<dyn Transaction>>,
    now: StoreTime,
    faults: Faults,
}

impl FaultTransaction {
    pub fn new(inner: Box<dyn Transaction>, faults: Faults) -> FaultTransaction {
        let now = inner.now().plus_micros(faults.clock_shift());
        FaultTransaction {
            inner: Some(inner),
            now,
            faults,
        }
    }

    fn inner(&mut self) -> Result<&mut Box<dyn Transaction>, StoreError> {
        self.inner.as_mut().ok_or_else(connection_lost)
    }

    /// After an error nobody knows what the connection holds: it is given up.
    fn settle<T>(&mut self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        if answer.is_err() {
            self.inner = None;
        }
        answer
    }

    async fn try_lock(&mut self, more: &[PartitionId]) -> Result<(), StoreError> {
        let faults = self.faults.clone();
        call!(faults, "lock", connection_lost, self.inner()?.lock(more))
    }

    async fn try_read(&mut self, at: At, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
        let faults = self.faults.clone();
        call!(
            faults,
            "tx.read",
            connection_lost,
            self.inner()?.read(at, reads)
        )
    }

    async fn try_changed_since(
        &mut self,
        partition: PartitionId,
        revision: Revision,
        commit: CommitId,
    ) -> Result<Option<Vec<Key>>, StoreError> {
        let faults = self.faults.clone();
        call!(
            faults,
            "changed_since",
            connection_lost,
            self.inner()?.changed_since(partition, revision, commit)
        )
    }

    async fn try_holds_commit(
        &mut self,
        partition: PartitionId,
        revision: Revision,
        commit: CommitId,
    ) -> Result<bool, StoreError> {
        let faults = self.faults.clone();
        call!(
            faults,
            "holds_commit",
            connection_lost,
            self.inner()?.holds_commit(partition, revision, commit)
        )
    }
}

#[async_trait]
impl Transaction for FaultTransaction {
    fn now(&self) -> StoreTime {
        self.now
    }

    fn partitions(&self) -> &[PartitionRow] {
        self.inner
            .as_ref()
            .map(|inner| inner.partitions())
            .unwrap_or_default()
    }

    async fn lock(&mut self, more: &[PartitionId]) -> Result<(), StoreError> {
        let answer = self.try_lock(more).await;
        let shift = self.faults.clock_shift();
        if let Some(inner) = &self.inner {
            self.now = inner.now().plus_micros(shift);
        }
        self.settle(answer)
    }

    async fn read(&mut self, at: At, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
        let answer = self.try_read(at, reads).await;
        self.settle(answer)
    }

    async fn changed_since(
        &mut self,
        partition: PartitionId,
        revision: Revision,
        commit: CommitId,
    ) -> Result<Option<Vec<Key>>, StoreError> {
        let answer = self.try_changed_since(partition, revision, commit).await;
        self.settle(answer)
    }

    async fn holds_commit(
        &mut self,
        partition: PartitionId,
        revision: Revision,
        commit: CommitId,
    ) -> Result<bool, StoreError> {
        let answer = self.try_holds_commit(partition, revision, commit).await;
        self.settle(answer)
    }

    async fn commit(self: Box<Self>, writes: &WriteSet) -> Result<(), StoreError> {
        let FaultTransaction { inner, faults, .. } = *self;
        let inner = inner.ok_or_else(connection_lost)?;
        if let Some(straggler) = faults.take_straggler() {
            let writes = writes.clone();
            tokio::spawn(async move {
                straggler.wait().await;
                // Whatever came of it, nobody is left to be told.
                let _ = inner.commit(&writes).await;
                straggler.end();
            });
            return Err(unknown());
        }
        call!(faults, "commit", unknown, inner.commit(writes))
    }

    async fn rollback(self: Box<Self>) {
        if let Some(inner) = self.inner {
            inner.rollback().await;
        }
    }
}
