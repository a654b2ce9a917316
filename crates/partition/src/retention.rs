//! Removing what nobody can ask for any more.

use std::time::Duration;

use anabranch_store::{CommitId, PartitionId, PartitionRow, Revision, StoreError, WriteSet};

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
    /// removes history and change log below it.
    pub async fn prune(
        &self,
        partition: PartitionId,
        retention: Duration,
    ) -> Result<u64, RunError> {
        let mut tries = 0;
        while let Err(error) = self.raise_horizon(partition, retention).await {
            self.again(error, &mut tries).await?;
        }
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
        let partitions = self.core.store.feed_partitions(None).await;
        for row in partitions.map_err(|error| RunError::from_store(&error))? {
            pruned.rows += self.prune(row.id, retention).await?;
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

    async fn raise_horizon(
        &self,
        partition: PartitionId,
        retention: Duration,
    ) -> Result<(), StoreError> {
        let transaction = self.core.store.begin(&[partition]).await?;
        let kept = i64::try_from(retention.as_micros()).unwrap_or(i64::MAX);
        let edge = Revision::at(transaction.now().plus_micros(kept.saturating_neg()));
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
        writes.partitions.push(PartitionRow { horizon, ..row });
        transaction.commit(&writes).await
    }
}
