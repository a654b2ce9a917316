//! Drops a table or a view.

use anabranch_partition::{Command, Context, Stop, Subject, View};
use anabranch_store::{BranchId, Kind, ObjectId, Read};
use serde::{Deserialize, Serialize};

use crate::body::PointerBody;
use crate::name::Identifier;
use crate::place::{Container, not_found, table_key};

/// The job that removes the files of a purged table.
pub(crate) const PURGE_TASK: &str = "purge";

/// Locks the database's partition. The purge is a task that commits with the drop.
pub(crate) struct DropPointer {
    pub(crate) kind: Kind,
    pub(crate) subject: Subject,
    pub(crate) database: Container,
    pub(crate) identifier: Identifier,
    /// The purge task's body and delay in microseconds, if files are to be removed.
    pub(crate) purge: Option<i64>,
    /// The catalog whose storage settings the purge uses.
    pub(crate) catalog: Container,
}

/// What a purge has to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Purge {
    pub(crate) catalog: Container,
    pub(crate) object: ObjectId,
    pub(crate) location: String,
    pub(crate) metadata_location: String,
}

impl Command for DropPointer {
    /// What stood there last.
    type Outcome = PointerBody;

    fn name(&self) -> &'static str {
        "drop_table"
    }

    fn branch(&self) -> BranchId {
        self.database.map().1
    }

    fn reads(&self) -> Vec<Read> {
        let scope = self.identifier.namespace.scope();
        let own = table_key(self.database.map(), &scope, &self.identifier.name);
        vec![self.database.read(), Read::Point(own)]
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<PointerBody, Stop> {
        let absent = || Stop::from(not_found(self.subject, &self.identifier.to_string()));
        if !self.database.stands(view)? {
            return Err(absent());
        }
        let scope = self.identifier.namespace.scope();
        let key = table_key(self.database.map(), &scope, &self.identifier.name);
        let standing = view.get(&key)?.filter(|entry| entry.kind == self.kind);
        let Some(entry) = standing else {
            return Err(absent());
        };
        let pointer: PointerBody = serde_json::from_str(&entry.body).map_err(|_| {
            anabranch_partition::Refusal::invalid("the table's row can't be read; run doctor")
        })?;
        view.remove(key)?;
        if let Some(delay_micros) = self.purge {
            let purge = Purge {
                catalog: self.catalog.clone(),
                object: entry.object,
                location: pointer.location.clone(),
                metadata_location: pointer.metadata_location.clone(),
            };
            let body = serde_json::to_string(&purge).unwrap_or_default();
            view.add_task(PURGE_TASK, body, delay_micros);
        }
        Ok(pointer)
    }
}
