//! Drops a metalake, a catalog or a first-level database.

use anabranch_partition::{Command, Context, Reason, Refusal, Stop, Subject, View};
use anabranch_store::{BranchId, Class, Entry, Key, Kind, PartitionId, Read};

use crate::place::{Container, container_key, noun};
use crate::reference::body::ReferenceBody;
use crate::reference::find::unreadable;

/// Entries that one step of a cascade removes.
const STEP: u32 = 500;

/// Locks the parent's partition, the container's own, and every partition below, listed under
/// those locks: whoever creates something deeper down meets one of them.
pub(crate) struct DropContainer {
    pub(crate) parent: PartitionId,
    pub(crate) container: Container,
    pub(crate) subject: Subject,
    /// Whether what is in it goes too; else it must be empty.
    pub(crate) cascade: bool,
}

impl Command for DropContainer {
    type Outcome = ();

    fn name(&self) -> &'static str {
        "drop_container"
    }

    fn reads(&self) -> Vec<Read> {
        vec![
            self.container.read(),
            Read::Point(container_key(self.parent, &self.container.name)),
            Read::Children(self.container.partition),
        ]
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<(), Stop> {
        view.partition(self.parent)?;
        self.container.guard(view, self.subject)?;
        self.clear(view, self.container.partition)?;
        view.drop_partition(self.container.partition)?;
        view.remove(container_key(self.parent, &self.container.name))?;
        Ok(())
    }
}

impl DropContainer {
    /// Marks everything below dropped, or refuses if there is anything.
    fn clear(&self, view: &mut View<'_>, partition: PartitionId) -> Result<(), Stop> {
        let children = view.children(partition)?;
        let missing: Vec<PartitionId> = children
            .iter()
            .copied()
            .filter(|child| matches!(view.partition(*child), Err(Stop::Hold(_))))
            .collect();
        if !self.cascade && !children.is_empty() {
            return Err(self.not_empty());
        }
        if !missing.is_empty() {
            return Err(Stop::Hold(missing));
        }
        for child in children {
            self.clear(view, child)?;
            view.drop_partition(child)?;
        }
        loop {
            let entries = view.under(partition, BranchId::MAIN, "", STEP)?;
            if entries.is_empty() {
                return Ok(());
            }
            for (key, entry) in entries {
                match key.class {
                    // What was merged into `main` is no content of its own.
                    Class::Merge => {}
                    Class::Reference if !self.cascade => return Err(self.has_references()),
                    _ if !self.cascade => return Err(self.not_empty()),
                    _ => {}
                }
                self.let_go(view, &key, &entry)?;
                view.remove(key)?;
            }
        }
    }

    /// Ends a branch, and lets go of what a reference or merge kept.
    fn let_go(&self, view: &mut View<'_>, key: &Key, entry: &Entry) -> Result<(), Stop> {
        if entry.kind == Kind::Branch {
            let body: ReferenceBody =
                serde_json::from_str(&entry.body).map_err(|_| unreadable("reference"))?;
            if let Some(row) = view.branch(key.partition, body.branch)? {
                view.end_branch(row);
            }
        }
        if matches!(key.class, Class::Reference | Class::Merge) {
            view.unpin(entry.object);
        }
        Ok(())
    }

    fn has_references(&self) -> Stop {
        let message = format!(
            "{} {} has branches or tags; delete them first",
            noun(self.subject),
            self.container.name
        );
        Stop::Refuse(Refusal::new(Reason::NotEmpty(self.subject), message))
    }

    fn not_empty(&self) -> Stop {
        let message = format!(
            "{} {} is not empty; drop what is in it first",
            noun(self.subject),
            self.container.name
        );
        Stop::Refuse(Refusal::new(Reason::NotEmpty(self.subject), message))
    }
}
