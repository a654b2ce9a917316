//! Deletes a branch or a tag. What others need of it stays.

use anabranch_partition::{Command, Context, Reason, Stop, Subject, View};
use anabranch_store::Read;
use serde_json::json;

use crate::place::Container;
use crate::reference::body::{ReferenceKind, reference_key};
use crate::reference::find::{Missing, ReferenceInfo, branch_named, find, no_reference, noun};

/// Locks the database's partition.
pub(crate) struct DeleteReference {
    pub(crate) database: Container,
    pub(crate) name: String,
    /// What it has to be.
    pub(crate) kind: Option<ReferenceKind>,
    /// What it has to show.
    pub(crate) expected: Option<String>,
}

impl Command for DeleteReference {
    /// What was deleted.
    type Outcome = ReferenceInfo;

    fn name(&self) -> &'static str {
        "delete_reference"
    }

    fn reads(&self) -> Vec<Read> {
        let key = reference_key(self.database.partition, &self.name);
        vec![self.database.read(), Read::Point(key)]
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<ReferenceInfo, Stop> {
        self.database.guard(view, Subject::Namespace)?;
        let partition = self.database.partition;
        let found = find(view, partition, &self.name)?
            .ok_or_else(|| no_reference(&branch_named(&self.name), Missing::Target))?;
        let is = noun(found.name.kind);
        if self.kind.is_some_and(|kind| kind != found.name.kind) {
            let message = format!("{} is a {is}; ask for its deletion as one", self.name);
            return Err(found.refuse(Reason::Conflict, message, json!({})).into());
        }
        let Some(object) = found.object.filter(|_| !found.body.protected) else {
            let message = format!("{is} {} is protected and can't be deleted", self.name);
            return Err(found.refuse(Reason::Conflict, message, json!({})).into());
        };
        found.expect(self.expected.as_deref())?;
        if found.name.kind == ReferenceKind::Branch {
            view.end_branch(found.row.clone());
        }
        view.unpin(object);
        view.remove(reference_key(partition, &self.name))?;
        Ok(found.info())
    }
}
