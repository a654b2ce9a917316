//! Everything that one SQL transaction writes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::branch::{BranchRow, Head, Pin};
use crate::entry::{Entry, Key, Kind, ObjectId};
use crate::operation::OperationRecord;
use crate::partition::{PartitionId, PartitionRow};
use crate::revision::{CommitId, Revision, StoreTime};
use crate::task::{Task, TaskId};

/// What happened to an entry, in the words of the change feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Action {
    /// It is new under this name.
    Create = 1,
    /// It has a new version.
    Update = 2,
    /// It is gone from this name.
    Drop = 3,
    /// It left this name or came to it; both names carry the same object and revision.
    Rename = 4,
}

/// One line of a partition's change log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where it happened.
    pub key: Key,
    /// The revision of the command that did it.
    pub revision: Revision,
    /// Its place among the changes of that revision in this partition, from 0.
    pub place: i32,
    /// The SQL transaction.
    pub commit: CommitId,
    /// When, by the store's clock.
    pub at: StoreTime,
    /// Who.
    pub principal: String,
    /// What.
    pub action: Action,
    /// To what kind of thing.
    pub kind: Kind,
    /// To which thing.
    pub object: ObjectId,
    /// The body before, if there was one.
    pub before: Option<Arc<str>>,
    /// The body after, if there is one.
    pub after: Option<Arc<str>>,
}

/// All writes of one SQL transaction. The engine applies it as it stands: what follows from what
/// was decided by the layer above.
#[derive(Clone, Debug)]
pub struct WriteSet {
    /// Names the SQL transaction; also in every change.
    pub commit: CommitId,
    /// New values of partition rows that this transaction holds.
    pub partitions: Vec<PartitionRow>,
    /// Partitions that come into being.
    pub new_partitions: Vec<PartitionRow>,
    /// Current versions, new or in place of the one that stands under the same key.
    pub upserts: Vec<(Key, Entry)>,
    /// Keys that no longer have a current version.
    pub removals: Vec<Key>,
    /// Versions that ended, each with the revision at which it did.
    pub history: Vec<(Key, Entry, Revision)>,
    /// The change log's new lines.
    pub changes: Vec<Change>,
    /// Operation records; a key that exists is a lost race ([`crate::ConflictReason::UniqueKey`]).
    pub operations: Vec<OperationRecord>,
    /// Work for later.
    pub tasks: Vec<Task>,
    /// Tasks that this transaction makes needless; each must still be there.
    pub finished_tasks: Vec<TaskId>,
    /// Branches that come into being. A `main` does so with its first head.
    pub new_branches: Vec<BranchRow>,
    /// Branches that changed, none of them new but `main`.
    pub heads: Vec<Head>,
    /// Partitions whose horizon this raises: the floors of their branches rise with it.
    pub raised: Vec<(PartitionId, Revision)>,
    /// Keys that got an entry where there was none, each with the revision at which it did.
    pub births: Vec<(Key, Revision)>,
    /// New pins.
    pub pins: Vec<Pin>,
    /// Owners whose pins go.
    pub unpinned: Vec<ObjectId>,
}

impl WriteSet {
    /// Nothing, under the given commit id.
    pub fn empty(commit: CommitId) -> WriteSet {
        WriteSet {
            commit,
            partitions: Vec::new(),
            new_partitions: Vec::new(),
            upserts: Vec::new(),
            removals: Vec::new(),
            history: Vec::new(),
            changes: Vec::new(),
            operations: Vec::new(),
            tasks: Vec::new(),
            finished_tasks: Vec::new(),
            new_branches: Vec::new(),
            heads: Vec::new(),
            raised: Vec::new(),
            births: Vec::new(),
            pins: Vec::new(),
            unpinned: Vec::new(),
        }
    }
}
