//! Gates: at most one batch of this process wants a partition's lock from the database at a time.
//! They keep connections from being spent on waiting; no correctness rests on them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_store::PartitionId;
use tokio::sync::OwnedMutexGuard;

type Gate = Arc<tokio::sync::Mutex<()>>;

#[derive(Default)]
pub(crate) struct Gates {
    gates: Mutex<HashMap<PartitionId, Gate>>,
}

impl Gates {
    /// Passes the gates of the given partitions in their (global) order.
    pub(crate) async fn pass(&self, partitions: &[PartitionId]) -> Vec<OwnedMutexGuard<()>> {
        let mut passed = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let gate = self.gate(*partition);
            passed.push(gate.lock_owned().await);
        }
        passed
    }

    fn gate(&self, partition: PartitionId) -> Gate {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        if gates.len() > 1024 {
            gates.retain(|_, gate| Arc::strong_count(gate) > 1);
        }
        gates.entry(partition).or_default().clone()
    }
}
