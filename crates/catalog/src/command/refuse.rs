//! Records a refusal that was found outside the lock under the request's operation key.

use anabranch_partition::{Command, Context, Refusal, Stop, View};
use anabranch_store::Read;

/// The refusal was true of a state that stood after the request arrived; what is left to do is to
/// give it again to whoever repeats the request. An earlier answer under the key wins.
pub(crate) struct Refuse {
    pub(crate) refusal: Refusal,
}

impl Command for Refuse {
    type Outcome = ();

    fn name(&self) -> &'static str {
        "refuse"
    }

    fn reads(&self) -> Vec<Read> {
        Vec::new()
    }

    fn apply(&self, _: &mut View<'_>, _: &Context<'_>) -> Result<(), Stop> {
        Err(Stop::Refuse(self.refusal.clone()))
    }
}
