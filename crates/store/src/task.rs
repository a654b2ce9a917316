//! Durable background work that any server may take.

use uuid::Uuid;

use crate::revision::StoreTime;

/// Names a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskId(pub Uuid);

/// A piece of work that is done at least once, by whichever server leases it first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// Which job does it.
    pub kind: String,
    /// What the job needs to know, as JSON.
    pub body: String,
    /// Not before this instant.
    pub due: StoreTime,
    /// How often it was leased so far.
    pub attempts: i32,
}
