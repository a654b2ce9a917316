//! Reads, and what they answer.

use crate::branch::{BranchRow, BranchState};
use crate::entry::{BranchId, Class, Entry, Key, Kind};
use crate::operation::OperationRecord;
use crate::partition::{PartitionId, PartitionRow};
use crate::revision::{Revision, StoreTime};
use crate::write::Change;

/// Which state a read sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// What stands now.
    Latest,
    /// What stood at a revision that the partition's clock has reached.
    Revision(Revision),
}

/// One read. All reads of one call see one database snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Read {
    /// The version under one key → [`Answer::Entry`].
    Point(Key),
    /// Where a thing stands on the `main` of whichever partition, by its id, always the latest: a
    /// container's own entry in its parent's partition
    /// → [`Answer::Entries`] (one or none).
    Container(PartitionId),
    /// Names of one scope and class in byte order → [`Answer::Entries`].
    Range {
        /// The partition.
        partition: PartitionId,
        /// The reference.
        branch: BranchId,
        /// The scope.
        scope: String,
        /// The name space.
        class: Class,
        /// Only these kinds; all if empty.
        kinds: Vec<Kind>,
        /// Strictly behind this name; from the start if `None`.
        after: Option<String>,
        /// At most this many.
        limit: u32,
    },
    /// Everything in the given scope and the scopes below it, ordered by (scope, class, name)
    /// → [`Answer::Entries`]. An empty scope means the whole partition's branch.
    Under {
        /// The partition.
        partition: PartitionId,
        /// The reference.
        branch: BranchId,
        /// The scope.
        scope: String,
        /// Strictly behind this key's (scope, class, name); from the start if `None`.
        after: Option<(String, Class, String)>,
        /// At most this many.
        limit: u32,
    },
    /// The partition's row → [`Answer::Partition`].
    Partition(PartitionId),
    /// Live partitions directly below, ascending → [`Answer::Partitions`].
    Children(PartitionId),
    /// The operation record of a key → [`Answer::Operation`].
    Operation(String),
    /// A branch → [`Answer::Branch`].
    Branch(PartitionId, BranchId),
    /// A point, range or under read of what stood at a revision → as that read.
    Past(Revision, Box<Read>),
    /// The keys of a branch under which another version stands at one revision than at an earlier
    /// one, and maybe some where it is the same → [`Answer::Keys`], ordered by (scope, class, name).
    Touched {
        /// The partition.
        partition: PartitionId,
        /// The branch.
        branch: BranchId,
        /// The earlier revision.
        from: Revision,
        /// The later one.
        to: Revision,
        /// Strictly behind this (scope, class, name); from the start if `None`.
        after: Option<(String, Class, String)>,
        /// At most this many.
        limit: u32,
    },
    /// The changes of a branch, the last first, strictly before this revision → [`Answer::Changes`].
    Log {
        /// The partition.
        partition: PartitionId,
        /// The branch.
        branch: BranchId,
        /// Strictly before this revision.
        before: Revision,
        /// At most this many.
        limit: u32,
    },
    /// All branches of a partition, those that ended too, by id → [`Answer::Branches`].
    Branches(PartitionId),
    /// Merges, on whichever branch, whose entries hold pins → [`Answer::Entries`].
    PinningMerges(PartitionId),
    /// Whether a pin keeps this state → [`Answer::Pinned`].
    Pinned(PartitionId, BranchState),
}

/// What a [`Read`] found.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Of a point read.
    Entry(Option<Entry>),
    /// Of a range read or a container read.
    Entries(Vec<(Key, Entry)>),
    /// Of a partition read.
    Partition(Option<PartitionRow>),
    /// Of a children read.
    Partitions(Vec<PartitionId>),
    /// Of an operation read.
    Operation(Option<OperationRecord>),
    /// Of a branch read.
    Branch(Option<BranchRow>),
    /// Of a branches read.
    Branches(Vec<BranchRow>),
    /// Of a touched read.
    Keys(Vec<Key>),
    /// Of a log read.
    Changes(Vec<Change>),
    /// Of a pinned read.
    Pinned(bool),
}

/// A leaf below a database: a nested namespace, a table or a view.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leaf {
    /// Nested levels below the database, joined by `\x1f`; empty if there are none.
    pub scope: String,
    /// The name space.
    pub class: Class,
    /// The name.
    pub name: String,
}

/// Names from the top down, resolved at latest in one statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// The metalake.
    pub metalake: String,
    /// The catalog in it.
    pub catalog: Option<String>,
    /// The first-level database in the catalog.
    pub database: Option<String>,
    /// What is looked for in the database's partition, on `main`.
    pub leaf: Option<Leaf>,
}

/// What stands along a [`Path`]; a level is `None` from the first missing name on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolved {
    /// The metalake's entry; its object id is its partition.
    pub metalake: Option<Entry>,
    /// The catalog's entry.
    pub catalog: Option<Entry>,
    /// The database's entry.
    pub database: Option<Entry>,
    /// The row of the database's partition.
    pub partition: Option<PartitionRow>,
    /// The revision of the last change of the database's `main`.
    pub main: Revision,
    /// Whether the database has branches or tags beside `main`.
    pub has_references: bool,
    /// The leaf's entry.
    pub leaf: Option<Entry>,
    /// The store's time when this was read.
    pub now: StoreTime,
}

/// Where a reader of the change log is within one partition: everything up to and including this
/// place has been seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedPosition {
    /// The partition.
    pub partition: PartitionId,
    /// The revision of the last seen change.
    pub revision: Revision,
    /// Its place within that revision; [`i32::MAX`] if the whole revision was seen.
    pub place: i32,
    /// The transaction of the last seen change, if known: a log that no longer holds it has been
    /// pruned, restored or failed over.
    pub commit: Option<crate::CommitId>,
}

/// A page of the change log.
#[derive(Clone, Debug, PartialEq)]
pub struct Feed {
    /// In ascending order of (revision, partition, place).
    pub changes: Vec<Change>,
    /// Partitions in which the given position lies below the horizon, or whose last seen
    /// transaction the log no longer holds.
    pub lost: Vec<PartitionId>,
}
