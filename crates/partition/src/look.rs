//! Rules that only look.

use std::collections::BTreeMap;

use anabranch_store::{Answer, PartitionId, PartitionRow, Read, Revision};

use crate::command::Stop;
use crate::error::RunError;
use crate::executor::Partitions;
use crate::view::{Overlay, Rows, View};

/// Rounds of reads, at most.
const MAX_ROUNDS: u32 = 10_000;

impl Partitions {
    /// Lets a rule look at what stands without taking anything. Rows are read as it asks for them,
    /// each round in a snapshot of its own: a rule whose answer is to be of one state reads the
    /// heads of branches first, and then states.
    pub async fn look<T>(
        &self,
        rule: impl Fn(&View<'_>) -> Result<T, Stop>,
    ) -> Result<T, RunError> {
        let mut rows = Rows::default();
        let mut partitions: BTreeMap<PartitionId, Option<PartitionRow>> = BTreeMap::new();
        for _ in 0..MAX_ROUNDS {
            let wanted = {
                let nothing = Overlay::default();
                let view = View::new(&rows, &partitions, &nothing, Revision::ZERO);
                match rule(&view) {
                    Ok(seen) => return Ok(seen),
                    Err(Stop::Refuse(refusal)) => return Err(RunError::Refused(refusal)),
                    Err(Stop::Stale) => return Err(RunError::Stale),
                    Err(Stop::Read(reads)) => reads,
                    Err(Stop::Hold(ids)) => ids.into_iter().map(Read::Partition).collect(),
                }
            };
            let answers = self.read(&wanted).await?;
            for (read, answer) in wanted.into_iter().zip(answers) {
                match (read, answer) {
                    (Read::Partition(id), Answer::Partition(row)) => {
                        partitions.insert(id, row);
                    }
                    (read, answer) => rows.add(read, answer),
                }
            }
        }
        tracing::error!("a rule that looks never decides");
        Err(RunError::Failed)
    }
}
