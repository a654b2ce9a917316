//! Lets go of states that merges kept and that nothing needs any longer.

use anabranch_partition::{Command, Context, Stop, View};
use anabranch_store::{ObjectId, Read};

/// Locks the database's partition, so that no merge loses what it compares with.
pub(crate) struct ReleaseStates {
    pub(crate) owners: Vec<ObjectId>,
}

impl Command for ReleaseStates {
    type Outcome = ();

    fn name(&self) -> &'static str {
        "release_states"
    }

    fn reads(&self) -> Vec<Read> {
        Vec::new()
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<(), Stop> {
        for owner in &self.owners {
            view.unpin(*owner);
        }
        Ok(())
    }
}
