//! What can go wrong in a store, told by what the caller can do.

use thiserror::Error;

/// Why an SQL transaction lost: each is known not to have been applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictReason {
    /// Another transaction holds what this one wanted, beyond the lock timeout (55P03, SQLITE_BUSY).
    LockTimeout,
    /// The database chose this transaction as a deadlock's victim (40P01).
    Deadlock,
    /// Another transaction committed to a partition after this one's snapshot (40001).
    Serialization,
    /// A row with a unique key of our own came first (23505).
    UniqueKey,
    /// The connection went away, or a statement ran into its timeout, before COMMIT was sent.
    ConnectionLost,
}

/// An error of a store call. The detail is for the log, never for a client.
#[derive(Clone, Debug, Error)]
pub enum StoreError {
    /// Known not applied; the same call may succeed if it is made again.
    #[error("transaction lost ({reason:?}): {detail}")]
    Conflict {
        /// Which race it lost.
        reason: ConflictReason,
        /// The database's own words.
        detail: String,
    },
    /// Known not applied: the store can't be reached or has no free connection in time.
    #[error("store unavailable: {detail}")]
    Unavailable {
        /// The driver's own words.
        detail: String,
    },
    /// COMMIT was sent and its answer is missing: applied or not, ask for the commit id.
    #[error("outcome of the commit is unknown: {detail}")]
    Unknown {
        /// The driver's own words.
        detail: String,
    },
    /// The store can't be used by this program: newer schema, a clock far away, a damaged file.
    #[error("{message}")]
    Unusable {
        /// One line that says what, where and how to mend it; shown to the operator.
        message: String,
    },
    /// Known not applied: the store's disk is full, over a quota, read-only or broken. What fits is
    /// still written, and all is when the operator has made room.
    #[error("store can't be written: {detail}")]
    Unwritable {
        /// The database's own words.
        detail: String,
    },
    /// Known not applied; making the call again won't help: a defect.
    #[error("store failed: {detail}")]
    Failed {
        /// The database's own words.
        detail: String,
    },
}

impl StoreError {
    /// Whether the same transaction may be tried again at once.
    pub fn is_retryable(&self) -> bool {
        matches!(self, StoreError::Conflict { .. })
    }

    /// Whether the effect may have been applied.
    pub fn is_unknown(&self) -> bool {
        matches!(self, StoreError::Unknown { .. })
    }
}
