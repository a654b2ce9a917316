//! Protects a branch or tag from being deleted, or lets it be.

use anabranch_partition::{Command, Context, Reason, Stop, Subject, View};
use anabranch_store::{Kind, Read};
use serde_json::json;

use crate::place::Container;
use crate::reference::body::{ReferenceBody, ReferenceKind, reference_key};
use crate::reference::find::{Found, Missing, ReferenceInfo, branch_named, find, no_reference};

/// Locks the database's partition.
pub(crate) struct ProtectReference {
    pub(crate) database: Container,
    pub(crate) name: String,
    pub(crate) protected: bool,
}

impl Command for ProtectReference {
    type Outcome = ReferenceInfo;

    fn name(&self) -> &'static str {
        "protect_reference"
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
        let Some(object) = found.object else {
            return match self.protected {
                true => Ok(found.info()),
                false => {
                    let message = format!("branch {} is always protected", self.name);
                    Err(found.refuse(Reason::Conflict, message, json!({})).into())
                }
            };
        };
        let body = ReferenceBody {
            protected: self.protected,
            ..found.body.clone()
        };
        let kind = match found.name.kind {
            ReferenceKind::Branch => Kind::Branch,
            ReferenceKind::Tag => Kind::Tag,
        };
        let key = reference_key(partition, &self.name);
        view.put(key, kind, object, crate::body::write(&body))?;
        Ok(Found { body, ..found }.info())
    }
}
