//! Decoded rows of partitions, exact by their last commit.
//!
//! Rows are taken out when a batch begins and put back only after its COMMIT is known to have been
//! applied: a failed or unknown COMMIT forgets them by construction.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use anabranch_store::{CommitId, Entry, Key, PartitionId, PartitionRow, Revision};

/// Rows of one partition, current as of one SQL transaction.
pub(crate) struct CachedRows {
    pub(crate) commit: CommitId,
    pub(crate) revision: Revision,
    pub(crate) rows: HashMap<Key, Option<Entry>>,
    used: u64,
}

impl CachedRows {
    /// Nothing, current as of what the partition's row names.
    pub(crate) fn empty(row: &PartitionRow) -> CachedRows {
        CachedRows {
            commit: row.last_commit,
            revision: row.last_revision,
            rows: HashMap::new(),
            used: 0,
        }
    }
}

/// The caches of one server.
pub(crate) struct Cache {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    partitions: HashMap<PartitionId, CachedRows>,
    rows: usize,
    clock: u64,
}

impl Cache {
    pub(crate) fn new(limit: usize) -> Cache {
        Cache {
            limit,
            state: Mutex::default(),
        }
    }

    /// Whether a row is kept. It may be out of date, or gone at the next look.
    pub(crate) fn knows(&self, key: &Key) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = state.partitions.get(&key.partition);
        cached.is_some_and(|cached| cached.rows.contains_key(key))
    }

    pub(crate) fn take(&self, partition: PartitionId) -> Option<CachedRows> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = state.partitions.remove(&partition)?;
        state.rows -= taken.rows.len();
        Some(taken)
    }

    pub(crate) fn put(&self, partition: PartitionId, mut cached: CachedRows) {
        if cached.rows.len() > self.limit {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.clock += 1;
        cached.used = state.clock;
        state.rows += cached.rows.len();
        if let Some(replaced) = state.partitions.insert(partition, cached) {
            state.rows -= replaced.rows.len();
        }
        while state.rows > self.limit {
            let oldest = state
                .partitions
                .iter()
                .min_by_key(|(_, cached)| cached.used)
                .map(|(id, _)| *id);
            let Some(evicted) = oldest.and_then(|id| state.partitions.remove(&id)) else {
                break;
            };
            state.rows -= evicted.rows.len();
        }
    }
}
