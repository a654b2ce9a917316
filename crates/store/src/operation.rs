//! Operation records: what makes a repeated request harmless.

use crate::revision::StoreTime;

/// How far an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationState {
    /// Its outside step may have begun; the authority has to be asked.
    Started = 1,
    /// It ended; the answer stands.
    Done = 2,
}

/// The record of one mutation under its key, written in the mutation's own SQL transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationRecord {
    /// The key: the caller's, or one that an adapter derived from an id in the request.
    pub key: String,
    /// Who asked.
    pub principal: String,
    /// A digest of what was asked; the same key with another one is refused.
    pub fingerprint: String,
    /// How far it is.
    pub state: OperationState,
    /// The outcome or the final refusal, as JSON.
    pub answer: String,
    /// When it was written, by the store's clock.
    pub at: StoreTime,
    /// From then on it may be removed.
    pub expires: StoreTime,
}
