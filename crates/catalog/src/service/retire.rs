//! What is left of references: states that merges kept, and branches that were deleted.

use anabranch_partition::View;

use crate::command::ReleaseStates;
use crate::error::CatalogError;
use crate::reference::release::released;
use crate::service::Core;
use crate::service::caller::Caller;

impl Core {
    /// Lets go of states that merges kept and no two references need any longer.
    pub(crate) async fn release(&self) -> Result<(), CatalogError> {
        for database in self.databases(None).await? {
            // Most have none, which is found without taking anything.
            let rule = |view: &View<'_>| released(view, database);
            if !self.partitions.look(rule).await?.is_empty() {
                let command = ReleaseStates { database };
                self.run(&Caller::server(), vec![database], command).await?;
            }
        }
        Ok(())
    }

    /// Removes what is left of deleted branches that nothing needs; answers how many rows went.
    pub(crate) async fn retire(&self) -> Result<u64, CatalogError> {
        let mut removed = 0;
        for database in self.databases(None).await? {
            removed += self.partitions.retire_branches(database).await?;
        }
        Ok(removed)
    }
}
