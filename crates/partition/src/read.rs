//! Reads outside commands: at latest, at a revision, and what lies between two revisions.

use anabranch_store::{
    Answer, At, Change, CommitId, PartitionId, PartitionRow, Path, Read, Resolved, Revision,
    StoreError, WriteSet,
};

use crate::error::RunError;
use crate::executor::{Partitions, pause};
use crate::refusal::{Reason, Refusal};

impl Partitions {
    /// Resolves names from the top down at latest, in one statement.
    pub async fn resolve(&self, paths: &[Path]) -> Result<Vec<Resolved>, RunError> {
        let mut tries = 0;
        loop {
            match self.core.store.resolve(paths).await {
                Ok(resolved) => return Ok(resolved),
                Err(error) => self.again(error, &mut tries).await?,
            }
        }
    }

    /// Answers reads in their order from one snapshot of what stands now.
    pub async fn read(&self, reads: &[Read]) -> Result<Vec<Answer>, RunError> {
        self.read_as_of(At::Latest, reads).await
    }

    /// Answers reads of one partition as of a revision. Once answered, a revision always answers
    /// the same, until it falls below the horizon and is refused as gone.
    pub async fn read_at(
        &self,
        partition: PartitionId,
        revision: Revision,
        reads: &[Read],
    ) -> Result<Vec<Answer>, RunError> {
        self.close(partition, revision).await?;
        let mut all = vec![Read::Partition(partition)];
        all.extend_from_slice(reads);
        let mut answers = self.read_as_of(At::Revision(revision), &all).await?;
        let rest = answers.split_off(1);
        match answers.pop() {
            Some(Answer::Partition(Some(row))) if row.horizon <= revision => Ok(rest),
            Some(Answer::Partition(Some(_))) => Err(gone(revision).into()),
            _ => Err(unknown_partition().into()),
        }
    }

    /// The changes of a partition with `from < revision <= to`, a page at a time behind `after`.
    pub async fn changes_between(
        &self,
        partition: PartitionId,
        from: Revision,
        to: Revision,
        after: Option<(Revision, i32)>,
        limit: u32,
    ) -> Result<Vec<Change>, RunError> {
        self.close(partition, to).await?;
        let changes = self
            .core
            .store
            .changes_between(partition, from, to, after, limit)
            .await
            .map_err(|error| RunError::from_store(&error))?;
        // Read the horizon after the changes: had it passed them before, this sees it.
        let row = self.partition_row(partition).await?;
        if from < row.horizon {
            return Err(gone(from).into());
        }
        Ok(changes)
    }

    /// Makes a revision a cut of the partition: nothing is committed at or below it any more.
    async fn close(&self, partition: PartitionId, revision: Revision) -> Result<(), RunError> {
        let row = self.partition_row(partition).await?;
        if revision < row.horizon {
            return Err(gone(revision).into());
        }
        let mut clock = row.clock;
        let mut tries = 0;
        while clock < revision {
            match self.raise_clock(partition, revision).await {
                Ok(raised) => clock = raised?,
                Err(StoreError::Unknown { .. }) => {
                    clock = self.partition_row(partition).await?.clock
                }
                Err(error) => self.again(error, &mut tries).await?,
            }
        }
        Ok(())
    }

    async fn raise_clock(
        &self,
        partition: PartitionId,
        revision: Revision,
    ) -> Result<Result<Revision, RunError>, StoreError> {
        let transaction = self.core.store.begin(&[partition]).await?;
        let now = transaction.now();
        let Some(row) = transaction.partitions().first().cloned() else {
            transaction.rollback().await;
            return Ok(Err(unknown_partition().into()));
        };
        if row.clock >= revision {
            transaction.rollback().await;
            return Ok(Ok(row.clock));
        }
        if revision > Revision::after(row.clock, now) {
            transaction.rollback().await;
            let message =
                format!("revision {revision} lies in the future; use one that was given out");
            return Ok(Err(Refusal::invalid(message).into()));
        }
        let mut writes = WriteSet::empty(CommitId::random());
        writes.partitions.push(PartitionRow {
            clock: revision,
            ..row
        });
        transaction.commit(&writes).await?;
        Ok(Ok(revision))
    }

    pub(crate) async fn partition_row(&self, id: PartitionId) -> Result<PartitionRow, RunError> {
        match self.read(&[Read::Partition(id)]).await?.pop() {
            Some(Answer::Partition(Some(row))) => Ok(row),
            _ => Err(unknown_partition().into()),
        }
    }

    async fn read_as_of(&self, at: At, reads: &[Read]) -> Result<Vec<Answer>, RunError> {
        let mut tries = 0;
        loop {
            match self.core.store.read(at, reads).await {
                Ok(answers) => return Ok(answers),
                Err(error) => self.again(error, &mut tries).await?,
            }
        }
    }

    /// Waits for another try after a lost race, or gives the error up to the caller.
    pub(crate) async fn again(&self, error: StoreError, tries: &mut u32) -> Result<(), RunError> {
        *tries += 1;
        if !error.is_retryable() || *tries >= self.core.config.attempts {
            return Err(RunError::from_store(&error));
        }
        pause(self.core.config.backoff, *tries).await;
        Ok(())
    }
}

fn gone(revision: Revision) -> Refusal {
    Refusal::new(
        Reason::Gone,
        format!("revision {revision} is older than what is kept; read a newer one or the latest"),
    )
}

fn unknown_partition() -> Refusal {
    Refusal::invalid("there is no such partition; use an id that the server gave out")
}
