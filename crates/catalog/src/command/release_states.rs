//! Lets go of states that merges kept and that nothing needs any longer.

use anabranch_partition::{Command, Context, Stop, View};
use anabranch_store::{PartitionId, Read};

use crate::reference::release::released;

/// Locks the database's partition: no reference comes into being and nothing is merged while it
/// is decided what is needed.
pub(crate) struct ReleaseStates {
    pub(crate) database: PartitionId,
}

impl Command for ReleaseStates {
    type Outcome = ();

    fn name(&self) -> &'static str {
        "release_states"
    }

    fn reads(&self) -> Vec<Read> {
        vec![
            Read::Branches(self.database),
            Read::PinningMerges(self.database),
        ]
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<(), Stop> {
        for owner in released(view, self.database)? {
            view.unpin(owner);
        }
        Ok(())
    }
}
