//! Branches of a partition's map, and what keeps their past.

use serde::{Deserialize, Serialize};

use crate::entry::{BranchId, ObjectId};
use crate::partition::PartitionId;
use crate::revision::Revision;

/// A state of a branch: what it held at a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchState {
    /// The branch.
    pub branch: BranchId,
    /// The last revision that counts.
    pub revision: Revision,
}

/// A branch. Its entries lie over the states that it was forked from; where a layer says nothing
/// about a key, the next one does. The row stays when the branch has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchRow {
    /// The partition.
    pub partition: PartitionId,
    /// The branch.
    pub branch: BranchId,
    /// The revision of its last own change; of its creation, if there was none.
    pub head: Revision,
    /// What lies below its own entries, the nearest first; empty for `main`.
    pub lineage: Vec<BranchState>,
    /// When it was deleted.
    pub ended: Option<Revision>,
    /// States from here on can be read whole; below, only what is pinned. It rises with the
    /// partition's horizon, to the last change that the branch had by then.
    pub floor: Revision,
}

impl BranchRow {
    /// Whether a state of it can be read whole, pinned or not. When a branch ends, the states
    /// below it may go.
    pub fn keeps(&self, revision: Revision) -> bool {
        self.ended.is_none() && revision >= self.floor
    }
}

/// How far a branch has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The partition.
    pub partition: PartitionId,
    /// The branch.
    pub branch: BranchId,
    /// The revision of its last own change.
    pub revision: Revision,
    /// Whether it ends there.
    pub ends: bool,
}

/// Keeps what was visible in a state from being pruned, for as long as its owner wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The partition.
    pub partition: PartitionId,
    /// The state.
    pub state: BranchState,
    /// The reference or merge that needs it.
    pub owner: ObjectId,
}
