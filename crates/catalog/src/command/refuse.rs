//! Records a refusal that was found outside the lock under the request's operation key.

use anabranch_partition::{Command, Context, Refusal, Stop, View};
use anabranch_store::Read;
use serde_json::Value;

/// The refusal was true of a state that stood after the request arrived; what is left to do is to
/// give it again to whoever repeats the request. An earlier answer under the key wins.
pub(crate) struct Refuse {
    pub(crate) refusal: Refusal,
}

impl Command for Refuse {
    /// Of whichever command was accepted under the key.
    type Outcome = Value;

    fn name(&self) -> &'static str {
        "refuse"
    }

    fn reads(&self) -> Vec<Read> {
        Vec::new()
    }

    fn apply(&self, _: &mut View<'_>, _: &Context<'_>) -> Result<Value, Stop> {
        Err(Stop::Refuse(self.refusal.clone()))
    }
}
