//! What became of a COMMIT whose answer is missing.

use std::time::{Duration, Instant};

use anabranch_store::{CommitId, PartitionId, Revision, Store, StoreError, WriteSet};

use crate::executor::pause;

/// What was found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Applied,
    NotApplied,
    /// The partitions couldn't be taken in time, or the change log no longer reaches back.
    Unresolved,
}

/// Takes the same partitions again and only then looks for the commit: before that, an absent
/// commit may still be on its way. On the optimistic engine taking means writing them, which makes
/// a straggler fail.
pub(crate) async fn find_out(
    store: &dyn Store,
    held: &[PartitionId],
    (partition, revision, commit): (PartitionId, Revision, CommitId),
    patience: Duration,
) -> Found {
    let started = Instant::now();
    let mut tries = 0;
    while started.elapsed() < patience {
        match look(store, held, partition, revision, commit).await {
            Ok(found) => return found,
            Err(error) => tracing::info!(%error, "commit can't be looked up yet"),
        }
        tries += 1;
        pause(Duration::from_millis(10), tries).await;
    }
    Found::Unresolved
}

async fn look(
    store: &dyn Store,
    held: &[PartitionId],
    partition: PartitionId,
    revision: Revision,
    commit: CommitId,
) -> Result<Found, StoreError> {
    let mut transaction = store.begin(held).await?;
    let rows = transaction.partitions().iter();
    // Below the horizon an absent commit may as well have been pruned.
    let log_reaches_back = rows
        .filter(|row| row.id == partition)
        .any(|row| row.horizon <= revision);
    let is_held = transaction
        .holds_commit(partition, revision, commit)
        .await?;
    transaction
        .commit(&WriteSet::empty(CommitId::random()))
        .await?;
    Ok(match (is_held, log_reaches_back) {
        (true, _) => Found::Applied,
        (false, true) => Found::NotApplied,
        (false, false) => Found::Unresolved,
    })
}
