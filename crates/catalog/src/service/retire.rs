//! What is left of references: states that merges kept, and branches that were deleted.

use anabranch_partition::View;
use anabranch_store::PartitionId;

use crate::command::ReleaseStates;
use crate::error::CatalogError;
use crate::reference::release::released;
use crate::service::Core;
use crate::service::caller::Caller;

impl Core {
    /// Lets go of what no reference needs any longer; answers how many rows went.
    pub(crate) async fn retire(&self) -> Result<u64, CatalogError> {
        let mut removed = 0;
        for database in self.databases(None).await? {
            self.release(database).await?;
            removed += self.partitions.retire_branches(database).await?;
        }
        Ok(removed)
    }

    async fn release(&self, database: PartitionId) -> Result<(), CatalogError> {
        let rule = |view: &View<'_>| released(view, database);
        let owners = self.partitions.look(rule).await?;
        if !owners.is_empty() {
            let command = ReleaseStates { owners };
            self.run(&Caller::server(), vec![database], command).await?;
        }
        Ok(())
    }
}
