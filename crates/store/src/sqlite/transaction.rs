//! One open `BEGIN IMMEDIATE` on the writer thread.

use async_trait::async_trait;

use super::error::gone;
use super::rows::{Db, now};
use super::writer::{NoAnswer, Turn, commit, roll_back};
use super::{log, reads, writes};
use crate::entry::Key;
use crate::error::{ConflictReason, StoreError};
use crate::interface::Transaction;
use crate::partition::{PartitionId, PartitionRow};
use crate::read::{Answer, At, Read};
use crate::revision::{CommitId, Revision, StoreTime};
use crate::write::WriteSet;

pub(super) struct SqliteTransaction {
    turn: Turn,
    now: StoreTime,
    held: Vec<PartitionRow>,
}

impl SqliteTransaction {
    pub async fn begin(
        mut turn: Turn,
        partitions: &[PartitionId],
        reads: &[Read],
    ) -> Result<(SqliteTransaction, Vec<Answer>), StoreError> {
        turn.is_open = true;
        let partitions = partitions.to_vec();
        let reads = reads.to_vec();
        let begin = move |db: Db<'_>| {
            db.control("BEGIN IMMEDIATE")?;
            let held = rows_of(db, &partitions)?;
            let answers = reads::answer_all(db, At::Latest, &reads)?;
            Ok((now(), held, answers))
        };
        let begun = turn.call(begin).await;
        let (now, held, answers) = begun.unwrap_or_else(|NoAnswer| Err(gone()))?;
        Ok((SqliteTransaction { turn, now, held }, answers))
    }

    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(Db<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let guarded = move |db: Db<'_>| {
            if db.connection.is_autocommit() {
                // SQLite gave the transaction up by itself, on a full disk for instance.
                return Err(ended());
            }
            work(db)
        };
        self.turn.call(guarded).await.unwrap_or_else(lost)
    }
}

fn ended() -> StoreError {
    StoreError::Failed {
        detail: "the transaction was rolled back after an earlier error".to_owned(),
    }
}

fn lost<T>(_: NoAnswer) -> Result<T, StoreError> {
    Err(StoreError::Conflict {
        reason: ConflictReason::ConnectionLost,
        detail: "the writer thread has ended".to_owned(),
    })
}

fn rows_of(db: Db<'_>, partitions: &[PartitionId]) -> Result<Vec<PartitionRow>, StoreError> {
    let mut rows = Vec::with_capacity(partitions.len());
    for partition in partitions {
        rows.extend(reads::partition_row(db, *partition)?);
    }
    Ok(rows)
}

#[async_trait]
impl Transaction for SqliteTransaction {
    fn now(&self) -> StoreTime {
        self.now
    }

    fn partitions(&self) -> &[PartitionRow] {
        &self.held
    }

    async fn lock(&mut self, more: &[PartitionId]) -> Result<(), StoreError> {
        let more = more.to_vec();
        let rows = self.call(move |db| rows_of(db, &more)).await?;
        self.held.extend(rows);
        Ok(())
    }

    async fn read(&mut self, at: At, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
        let reads = reads.to_vec();
        self.call(move |db| reads::answer_all(db, at, &reads)).await
    }

    async fn changed_since(
        &mut self,
        partition: PartitionId,
        revision: Revision,
        commit: CommitId,
    ) -> Result<Option<Vec<Key>>, StoreError> {
        self.call(move |db| log::changed_since(db, partition, revision, commit))
            .await
    }

    async fn holds_commit(
        &mut self,
        partition: PartitionId,
        revision: Revision,
        commit: CommitId,
    ) -> Result<bool, StoreError> {
        self.call(move |db| log::holds_commit(db, partition, revision, commit))
            .await
    }

    async fn commit(mut self: Box<Self>, writes: &WriteSet) -> Result<(), StoreError> {
        let writes = writes.clone();
        let held: Vec<PartitionId> = self.held.iter().map(|row| row.id).collect();
        let apply = move |db: Db<'_>| {
            if db.connection.is_autocommit() {
                return Err(ended());
            }
            if let Err(error) = writes::apply(db, &held, &writes) {
                roll_back(db);
                return Err(error);
            }
            commit(db)
        };
        let done = self.turn.call(apply).await;
        self.turn.is_open = false;
        let done = done.unwrap_or_else(|NoAnswer| {
            Err(StoreError::Unknown {
                detail: "the writer thread ended before it answered".to_owned(),
            })
        });
        self.turn.note(&done);
        done
    }

    async fn rollback(mut self: Box<Self>) {
        // If the thread is gone, so is the transaction.
        let _ = self.turn.call(roll_back).await;
        self.turn.is_open = false;
    }
}
