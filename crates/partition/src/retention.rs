//! Removing what nobody can ask for any more.

use std::time::Duration;

use anabranch_store::{
    CommitId, PartitionId, PartitionRow, Revision, StoreError, StoreTime, WriteSet,
};

use crate::error::RunError;
use crate::executor::Partitions;

const STEP: u32 = 1000;

/// What a run removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Rows of history and change log.
    pub rows: u64,
    /// Operation records.
    pub operations: u64,
}

impl Partitions {
    /// Raises the horizon of a partition to `retention` before the store's time, and only then
    /// removes history and change log below it. Where nothing is older the horizon stays: a
    /// consumer that hasn't heard of the partition yet has lost nothing.
    pub async fn prune(
        &self,
        partition: PartitionId,
        retention: Duration,
    ) -> Result<u64, RunError> {
        if self.has_older(partition, retention).await? {
            let mut tries = 0;
            while let Err(error) = self.raise_horizon(partition, retention).await {
                self.again(error, &mut tries).await?;
            }
        }
        // Also where the horizon stays: what a pin kept may be kept no longer.
        let mut removed = 0;
        loop {
            let step = self.core.store.prune(partition, STEP).await;
            let step = step.map_err(|error| RunError::from_store(&error))?;
            removed += step;
            if step < u64::from(STEP) {
                return Ok(removed);
            }
        }
    }

    /// Prunes every partition and removes operation records that have expired.
    pub async fn prune_all(&self, retention: Duration) -> Result<Pruned, RunError> {
        let mut pruned = Pruned::default();
        let mut failed = None;
        let partitions = self.core.store.feed_partitions(None).await;
        for row in partitions.map_err(|error| RunError::from_store(&error))? {
            // One that is busy doesn't keep the others waiting.
            match self.prune(row.id, retention).await {
                Ok(rows) => pruned.rows += rows,
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        loop {
            let step = self.core.store.expire_operations(STEP).await;
            let step = step.map_err(|error| RunError::from_store(&error))?;
            pruned.operations += step;
            if step < u64::from(STEP) {
                return Ok(pruned);
            }
        }
    }

    /// Removes what is left of branches that ended before the horizon and that nothing needs.
    pub async fn retire_branches(&self, partition: PartitionId) -> Result<u64, RunError> {
        let mut removed = 0;
        loop {
            let step = self.core.store.retire(partition, STEP).await;
            match step.map_err(|error| RunError::from_store(&error))? {
                0 => return Ok(removed),
                step => removed += step,
            }
        }
    }

    async fn has_older(
        &self,
        partition: PartitionId,
        retention: Duration,
    ) -> Result<bool, RunError> {
        let store = &self.core.store;
        let failed = |error| RunError::from_store(&error);
        let edge = edge(store.now().await.map_err(failed)?, retention);
        let row = self.partition_row(partition).await?;
        if row.horizon >= edge.min(row.last_revision) {
            return Ok(false);
        }
        let before_edge = Revision(edge.0.saturating_sub(1));
        let first = store
            .changes_between(partition, Revision::ZERO, before_edge, None, 1)
            .await;
        Ok(!first.map_err(failed)?.is_empty())
    }

    async fn raise_horizon(
        &self,
        partition: PartitionId,
        retention: Duration,
    ) -> Result<(), StoreError> {
        let transaction = self.core.store.begin(&[partition]).await?;
        let edge = edge(transaction.now(), retention);
        let Some(row) = transaction.partitions().first().cloned() else {
            transaction.rollback().await;
            return Ok(());
        };
        // Never above the last commit: a consumer that has seen everything hasn't lost anything.
        let horizon = edge.min(row.last_revision);
        if horizon <= row.horizon {
            transaction.rollback().await;
            return Ok(());
        }
        let mut writes = WriteSet::empty(CommitId::random());
        writes.raised.push((partition, horizon));
        writes.partitions.push(PartitionRow { horizon, ..row });
        transaction.commit(&writes).await
    }
}

/// What lies below it is older than the retention.
fn edge(now: StoreTime, retention: Duration) -> Revision {
    let kept = i64::try_from(retention.as_micros()).unwrap_or(i64::MAX);
    Revision::at(now.plus_micros(kept.saturating_neg()))
}
