//! Catalog rows: where they stand and what one version of them holds.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::partition::PartitionId;
use crate::revision::Revision;

/// Names an object for ever; never used again. Containers share it with their partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ObjectId(pub i64);

const OBJECT_SHIFT: u32 = 60;
const OBJECT_RANK: i64 = 6;

impl ObjectId {
    /// An id of a thing that is no partition, from 60 random bits.
    pub fn new(random: u64) -> ObjectId {
        let low = (random & ((1 << OBJECT_SHIFT) - 1)) as i64;
        ObjectId((OBJECT_RANK << OBJECT_SHIFT) | low)
    }
}

impl From<PartitionId> for ObjectId {
    fn from(partition: PartitionId) -> ObjectId {
        ObjectId(partition.0)
    }
}

/// The reference whose map an entry belongs to; [`BranchId::MAIN`], the default, for what isn't
/// versioned.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct BranchId(pub i64);

impl BranchId {
    /// The branch `main`.
    pub const MAIN: BranchId = BranchId(0);

    /// An id of another branch, from 60 random bits.
    pub fn new(random: u64) -> BranchId {
        let low = (random & ((1 << OBJECT_SHIFT) - 1)) as i64;
        BranchId(low.max(1))
    }
}

/// The name space within a scope in which names are unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Class {
    /// Metalakes, catalogs, databases, nested namespaces.
    Container = 1,
    /// Tables and views of every format.
    Table = 2,
    /// Places whose files are being removed.
    Purge = 3,
    /// Branches and tags of a database, on `main`.
    Reference = 4,
    /// Merges into a branch, by their revision.
    Merge = 5,
    /// Where a branch comes from.
    Fork = 6,
}

/// What an entry is. The numbers are stored: they may only grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// A metalake.
    Metalake = 1,
    /// A catalog.
    Catalog = 2,
    /// A database or a nested namespace of one.
    Namespace = 3,
    /// An Iceberg table.
    IcebergTable = 10,
    /// An Iceberg view.
    IcebergView = 11,
    /// A place whose files are being removed.
    Purge = 20,
    /// A branch of a database.
    Branch = 30,
    /// A tag of a database.
    Tag = 31,
    /// A merge into a branch.
    Merge = 32,
    /// Where a branch comes from.
    Fork = 33,
    /// Nothing, where a layer below has something: how a branch drops what it inherited. Its
    /// object is the negative of the one that it hides.
    Absent = 40,
}

/// Where an entry stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The partition it lives in.
    pub partition: PartitionId,
    /// The reference whose map it belongs to.
    pub branch: BranchId,
    /// The path of nested namespaces below the partition's container, levels joined by `\x1f`;
    /// empty for the container itself.
    pub scope: String,
    /// The name space.
    pub class: Class,
    /// The name in it.
    pub name: String,
}

/// One version of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// Which thing it is.
    pub object: ObjectId,
    /// Rises by one with every change of this object; for the callers' own optimistic writes.
    pub version: i64,
    /// The revision at which this version began.
    pub from: Revision,
    /// JSON text, written by the domain.
    pub body: Arc<str>,
}
