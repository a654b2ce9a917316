//! Why a request has no outcome.

use thiserror::Error;

use crate::refusal::Refusal;

/// Told by what the caller can do. Details of the store are in the log, not here.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum RunError {
    /// Known not applied, for good.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// Known not applied: what was prepared rests on an older version; prepare again.
    #[error("the prepared change rests on an older version")]
    Stale,
    /// Known not applied: too much waits, or the races were lost too often; wait and try again.
    #[error("the server is busy; nothing was changed, try again")]
    Overloaded,
    /// Known not applied: the store can't be reached; wait and try again.
    #[error("the store can't be reached; nothing was changed, try again")]
    Unavailable,
    /// Known not applied: the store's disk takes no more; wait until its operator has made room.
    #[error(
        "the store's disk is full or takes no more writes; nothing was changed, try again when \
         there is room"
    )]
    Unwritable,
    /// COMMIT was sent, and whether it was applied couldn't be found out in time.
    #[error("whether the change was applied is not known yet; ask again with the same request")]
    Unknown,
    /// Known not applied: a defect; the log has the detail.
    #[error("the store failed; nothing was changed")]
    Failed,
}

impl From<Refusal> for RunError {
    fn from(refusal: Refusal) -> RunError {
        RunError::Refused(refusal)
    }
}

impl RunError {
    /// What a failed read or a known-not-applied write means for the caller; the detail is logged.
    pub fn from_store(error: &anabranch_store::StoreError) -> RunError {
        use anabranch_store::StoreError;
        match error {
            StoreError::Conflict { .. } => RunError::Overloaded,
            StoreError::Unavailable { .. } => {
                tracing::warn!(%error, "store unavailable");
                RunError::Unavailable
            }
            StoreError::Unwritable { .. } => {
                tracing::error!(%error, "the store's disk takes no more writes");
                RunError::Unwritable
            }
            StoreError::Unknown { .. } => RunError::Unknown,
            StoreError::Unusable { .. } | StoreError::Failed { .. } => {
                tracing::error!(%error, "store failed");
                RunError::Failed
            }
        }
    }
}
