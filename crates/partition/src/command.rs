//! Commands: pure decisions over a view.

use anabranch_store::{BranchId, PartitionId, Read, Revision, StoreTime};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::refusal::Refusal;
use crate::view::View;

/// What a command may know besides its view.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    /// The store's time, read with the lock.
    pub now: StoreTime,
    /// The revision that the command gets if it is accepted.
    pub revision: Revision,
    /// Who asks.
    pub principal: &'a str,
}

/// Why `apply` ended without an outcome.
#[derive(Clone, Debug)]
pub enum Stop {
    /// The view doesn't hold these rows yet: they are read and the command is applied again.
    Read(Vec<Read>),
    /// The command decides by partitions that aren't held yet: they are taken and it is applied
    /// again.
    Hold(Vec<PartitionId>),
    /// Not accepted, for good.
    Refuse(Refusal),
    /// What was prepared outside the lock rests on a version that no longer stands: prepare again.
    /// Leaves no trace, not even under an operation key.
    Stale,
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refuse(refusal)
    }
}

/// A change of one or more partitions, decided without I/O, clock or randomness.
///
/// `apply` may run several times, on other states: it must depend on nothing but its arguments.
pub trait Command: Send + Sync + 'static {
    /// What the caller gets, and gets again when the request is repeated under its operation key.
    type Outcome: Serialize + DeserializeOwned + Send + 'static;

    /// A name for logs, metrics and traces.
    fn name(&self) -> &'static str;

    /// The branch whose map it changes; `main` for what isn't versioned.
    fn branch(&self) -> BranchId {
        BranchId::MAIN
    }

    /// Rows that `apply` is known to want, so that one statement reads them for a whole batch.
    fn reads(&self) -> Vec<Read>;

    /// Decides. Changes made to the view count only if it answers `Ok`.
    fn apply(&self, view: &mut View<'_>, context: &Context<'_>) -> Result<Self::Outcome, Stop>;
}
