//! Renames a catalog or a database.

use anabranch_partition::{Command, Context, Stop, Subject, View};
use anabranch_store::{PartitionId, Read};

use crate::place::{Container, already_exists, container_key};

/// Locks the parent's partition, in which the row lives, and the container's own, so that whoever
/// creates something in it under the old name meets the rename.
pub(crate) struct RenameContainer {
    pub(crate) parent: PartitionId,
    pub(crate) container: Container,
    pub(crate) subject: Subject,
    pub(crate) new_name: String,
}

impl Command for RenameContainer {
    type Outcome = ();

    fn name(&self) -> &'static str {
        "rename_container"
    }

    fn reads(&self) -> Vec<Read> {
        vec![
            self.container.read(),
            Read::Point(container_key(self.parent, &self.container.name)),
            Read::Point(container_key(self.parent, &self.new_name)),
        ]
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<(), Stop> {
        view.partition(self.parent)?;
        let (key, entry) = self.container.guard(view, self.subject)?;
        if key.name == self.new_name {
            return Ok(());
        }
        let renamed = container_key(self.parent, &self.new_name);
        if view.get(&renamed)?.is_some() {
            return Err(already_exists(self.subject, &self.new_name).into());
        }
        view.rename(key, renamed, entry.body)?;
        Ok(())
    }
}
