//! Partitions: the units of total order.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::revision::{CommitId, Revision};

const KIND_SHIFT: u32 = 60;

/// What a partition is the serial unit of. The order of the variants is the global lock order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PartitionKind {
    /// The list of metalakes.
    Root = 1,
    /// One metalake: its catalogs.
    Metalake = 2,
    /// One catalog: its databases.
    Catalog = 3,
    /// One first-level database with everything in it.
    Database = 4,
}

/// Names a partition. The kind is in the upper bits, so that ascending ids *are* the global lock
/// order. A container (metalake, catalog, database) has the same id as an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PartitionId(pub i64);

impl PartitionId {
    /// The one root partition.
    pub const ROOT: PartitionId = PartitionId((PartitionKind::Root as i64) << KIND_SHIFT);

    /// An id of the given kind from 60 random bits.
    pub fn new(kind: PartitionKind, random: u64) -> PartitionId {
        let low = (random & ((1 << KIND_SHIFT) - 1)) as i64;
        PartitionId(((kind as i64) << KIND_SHIFT) | low)
    }

    /// The kind in the upper bits; `None` for an id that is no partition's.
    pub fn kind(self) -> Option<PartitionKind> {
        match self.0 >> KIND_SHIFT {
            1 => Some(PartitionKind::Root),
            2 => Some(PartitionKind::Metalake),
            3 => Some(PartitionKind::Catalog),
            4 => Some(PartitionKind::Database),
            _ => None,
        }
    }
}

impl fmt::Debug for PartitionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            Some(kind) => write!(formatter, "{kind:?}#{:x}", self.0),
            None => write!(formatter, "Partition#{:x}", self.0),
        }
    }
}

/// Whether a partition takes commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PartitionState {
    /// It stands.
    Live = 1,
    /// Its container was dropped; the row stays so that ids are never used again.
    Dropped = 2,
}

/// A partition's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionRow {
    /// Its id; the kind is in it.
    pub id: PartitionId,
    /// The partition that its container lives in; the root is its own parent.
    pub parent: PartitionId,
    /// Whether it takes commands.
    pub state: PartitionState,
    /// The highest revision that counts here; the next commit gets one above.
    pub clock: Revision,
    /// The SQL transaction that last changed rows here.
    pub last_commit: CommitId,
    /// The highest revision of that transaction: where the change log holds its id.
    pub last_revision: Revision,
    /// Below it, history and change log may have been pruned.
    pub horizon: Revision,
}

impl PartitionRow {
    /// A fresh live partition.
    pub fn new(id: PartitionId, parent: PartitionId) -> PartitionRow {
        PartitionRow {
            id,
            parent,
            state: PartitionState::Live,
            clock: Revision::ZERO,
            last_commit: CommitId::NONE,
            last_revision: Revision::ZERO,
            horizon: Revision::ZERO,
        }
    }
}
