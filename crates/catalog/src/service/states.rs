//! Reading states: each read brings along what says that the state is still kept, in the same
//! snapshot, so that nothing is answered in part while it is pruned.

use anabranch_partition::{Layers, Listing, Merged, Reason, Refusal, RunError, decide};
use anabranch_store::{Answer, BranchState, Entry, Key, Read};

use crate::error::CatalogError;
use crate::reference::body::state_name;
use crate::reference::plan::Place;
use crate::reference::sides::Side;
use crate::service::Core;

impl Core {
    /// What a state has under a name.
    pub(crate) async fn shown(
        &self,
        side: &Side,
        (scope, class, name): &Place,
    ) -> Result<Option<Entry>, CatalogError> {
        let layers = Layers::at(&side.0, side.1.revision);
        let reads = layers.point(scope, *class, name);
        let answers = self.read_state(side, reads).await?;
        Ok(decide(answers.into_iter().map(|answer| match answer {
            Answer::Entry(entry) => entry,
            _ => None,
        })))
    }

    /// The names of a state that a listing wants.
    pub(crate) async fn list_state(
        &self,
        side: &Side,
        listing: Listing,
    ) -> Result<Vec<(Key, Entry)>, CatalogError> {
        let layers = Layers::at(&side.0, side.1.revision);
        let mut merged = Merged::new(&layers, listing);
        loop {
            if let Some(found) = merged.result() {
                return Ok(found);
            }
            let (places, reads): (Vec<usize>, Vec<Read>) = merged.wanted().into_iter().unzip();
            let answers = self.read_state(side, reads).await?;
            for (place, answer) in places.into_iter().zip(answers) {
                let Answer::Entries(entries) = answer else {
                    return Err(RunError::Failed.into());
                };
                merged.supply(place, &entries);
            }
        }
    }

    /// Refuses if a state isn't kept any more.
    pub(crate) async fn check_kept(&self, side: &Side) -> Result<(), CatalogError> {
        self.read_state(side, Vec::new()).await.map(drop)
    }

    async fn read_state(
        &self,
        (row, state): &Side,
        mut reads: Vec<Read>,
    ) -> Result<Vec<Answer>, CatalogError> {
        reads.push(Read::Branch(row.partition, row.branch));
        reads.push(Read::Pinned(row.partition, *state));
        let mut answers = self.partitions.read(&reads).await?;
        match (answers.pop(), answers.pop()) {
            (Some(Answer::Pinned(pinned)), Some(Answer::Branch(Some(row))))
                if pinned || row.keeps(state.revision) =>
            {
                Ok(answers)
            }
            _ => Err(gone(*state).into()),
        }
    }
}

/// "It isn't kept any more."
pub(crate) fn gone(state: BranchState) -> Refusal {
    Refusal::new(
        Reason::Gone,
        format!(
            "revision {} is older than what is kept; use a newer one, or a tag",
            state_name(state)
        ),
    )
}
