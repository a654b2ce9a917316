//! Publishes prepared metadata: the tables and views of one commit, all or none.

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_files::Location;
use anabranch_partition::{Command, Context, Stop, Subject, View};
use anabranch_store::{
    BranchId, Entry, Kind, ObjectId, PartitionId, Read, Revision, StoreTime, TaskId,
};
use serde::{Deserialize, Serialize};

use crate::command::mark_purge::{guard_against_purge, marks_read};
use crate::place::{Container, guard_scope, scope_key, table_key};

/// What the change was prepared on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Nothing stands under the name.
    Absent,
    /// This object with this body. The version number wouldn't do: two servers that prepare chains
    /// at once predict the same numbers for different contents. A body names its metadata
    /// document, whose name never comes again.
    Standing(ObjectId, Arc<str>),
}

/// What the name shows afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Becomes {
    /// This.
    Version { object: ObjectId, body: Arc<str> },
    /// What it was: only requirements were stated. It takes part in the check all the same.
    Same,
}

/// One table or view of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PointerChange {
    pub(crate) database: Container,
    pub(crate) scope: String,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) expected: Expected,
    pub(crate) becomes: Becomes,
}

/// Locks the databases of all its tables. What was prepared outside is only compared and swapped
/// here; if another version stands, everything is prepared again.
pub(crate) struct CommitPointers {
    pub(crate) changes: Vec<PointerChange>,
    /// Further keys under which the outcome is found again, with the request's digest.
    pub(crate) derived: Vec<String>,
    pub(crate) fingerprint: String,
    /// Places with files that are there already and that this makes tables of.
    pub(crate) adopted: Vec<Location>,
    /// The task that would remove the files of this creation, which it ends.
    pub(crate) forget: Option<TaskId>,
    /// From then on the files that were written for this may be swept away as left over.
    pub(crate) valid_until: StoreTime,
}

impl CommitPointers {
    pub(crate) fn partitions(&self) -> Vec<PartitionId> {
        let partitions: BTreeSet<PartitionId> = self
            .changes
            .iter()
            .map(|change| change.database.partition)
            .chain((!self.adopted.is_empty()).then_some(PartitionId::ROOT))
            .collect();
        partitions.into_iter().collect()
    }
}

impl CommitPointers {
    /// Whether an adopted place and a marked one overlap; what can't be parsed might.
    fn meets(&self, marked: &str) -> bool {
        Location::parse(marked).map_or(true, |marked| {
            self.adopted.iter().any(|adopted| adopted.overlaps(&marked))
        })
    }
}

/// What one change made of its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Published {
    pub(crate) object: ObjectId,
    pub(crate) version: i64,
    pub(crate) from: Revision,
    /// The branch that it stands on.
    #[serde(default)]
    pub(crate) branch: BranchId,
    /// The body of the entry.
    pub(crate) body: String,
}

impl Published {
    fn of(branch: BranchId, entry: &Entry) -> Published {
        Published {
            branch,
            object: entry.object,
            version: entry.version,
            from: entry.from,
            body: entry.body.to_string(),
        }
    }
}

impl Command for CommitPointers {
    type Outcome = Vec<Published>;

    fn name(&self) -> &'static str {
        "commit_tables"
    }

    fn branch(&self) -> BranchId {
        self.changes
            .first()
            .map_or(BranchId::MAIN, |change| change.database.map().1)
    }

    fn reads(&self) -> Vec<Read> {
        let mut reads: BTreeSet<_> = BTreeSet::new();
        for change in &self.changes {
            let map = change.database.map();
            reads.insert(table_key(map, &change.scope, &change.name));
            reads.extend(scope_key(map, &change.scope));
        }
        let databases: BTreeSet<PartitionId> = self
            .changes
            .iter()
            .map(|change| change.database.partition)
            .collect();
        let containers = databases.into_iter().map(Read::Container);
        let marks = (!self.adopted.is_empty()).then(marks_read);
        let operations = self.derived.iter().cloned().map(Read::Operation);
        reads
            .into_iter()
            .map(Read::Point)
            .chain(containers)
            .chain(operations)
            .chain(marks)
            .collect()
    }

    fn apply(&self, view: &mut View<'_>, context: &Context<'_>) -> Result<Vec<Published>, Stop> {
        let mut published = Vec::with_capacity(self.changes.len());
        if context.now >= self.valid_until {
            return Err(Stop::Stale);
        }
        if !self.adopted.is_empty() {
            guard_against_purge(view, |marked| self.meets(marked))?;
        }
        for change in &self.changes {
            change.database.guard(view, Subject::Namespace)?;
            guard_scope(view, &change.database, &change.scope)?;
            let key = table_key(change.database.map(), &change.scope, &change.name);
            let standing = view.get(&key)?;
            let as_expected = match (&change.expected, &standing) {
                (Expected::Absent, None) => true,
                (Expected::Standing(object, body), Some(entry)) => {
                    entry.object == *object && entry.body == *body
                }
                _ => false,
            };
            if !as_expected {
                return Err(Stop::Stale);
            }
            let branch = key.branch;
            let stands = match &change.becomes {
                Becomes::Version { object, body } => {
                    Some(view.put(key, change.kind, *object, body.clone())?)
                }
                Becomes::Same => standing,
            };
            published.extend(stands.map(|entry| Published::of(branch, &entry)));
        }
        if let Some(task) = self.forget {
            view.finish_task(task);
        }
        for key in &self.derived {
            if view.operation(key)?.is_none() {
                view.record_operation(key.clone(), self.fingerprint.clone());
            }
        }
        Ok(published)
    }
}
