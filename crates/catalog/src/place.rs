//! Where things stand: keys made from names, and the guards that make them hold under the lock.

use anabranch_partition::{Reason, Refusal, Stop, Subject, View};
use anabranch_store::{BranchId, Class, Entry, Key, ObjectId, PartitionId, Read};
use serde::{Deserialize, Serialize};

use crate::name::{LEVEL_SEPARATOR, Namespace};
use crate::reference::body::{ReferenceBody, reference_key};

/// A container as a command found it by name: checked again under its own lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Container {
    /// Its partition.
    pub partition: PartitionId,
    /// The name under which it was found.
    pub name: String,
    /// Of a database: the branch that was selected, if it isn't `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<SelectedBranch>,
}

/// A branch as it was found by its name: checked again under the lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SelectedBranch {
    /// The name under which it was found.
    pub name: String,
    /// Which branch that was.
    pub id: BranchId,
}

/// A branch's map in a database's partition.
pub(crate) type Map = (PartitionId, BranchId);

impl Container {
    /// A container without branches, or the `main` of a database.
    pub(crate) fn new(partition: PartitionId, name: &str) -> Container {
        Container {
            partition,
            name: name.to_owned(),
            branch: None,
        }
    }

    /// The map of a database that its names are looked up and changed in.
    pub(crate) fn map(&self) -> Map {
        let branch = self
            .branch
            .as_ref()
            .map_or(BranchId::MAIN, |branch| branch.id);
        (self.partition, branch)
    }

    /// What the guard wants to read.
    pub(crate) fn read(&self) -> Read {
        Read::Container(self.partition)
    }

    /// Its entry, if the container still stands under its name. Exact, because who renames or
    /// drops a container holds the container's own partition.
    fn standing(&self, view: &View<'_>) -> Result<Option<(Key, Entry)>, Stop> {
        if !view.is_live(self.partition)? {
            return Ok(None);
        }
        if !self.branch_stands(view)? {
            return Ok(None);
        }
        let found = view.container(self.partition)?;
        Ok(found.filter(|(key, _)| key.name == self.name))
    }

    /// Whether the selected branch, if one is, still stands under its name.
    fn branch_stands(&self, view: &View<'_>) -> Result<bool, Stop> {
        let Some(selected) = &self.branch else {
            return Ok(true);
        };
        let entry = view.get(&reference_key(self.partition, &selected.name))?;
        let body = entry.and_then(|entry| serde_json::from_str::<ReferenceBody>(&entry.body).ok());
        Ok(body.is_some_and(|body| body.branch == selected.id && body.revision.is_none()))
    }

    /// Its name with what is selected of it.
    pub(crate) fn shown(&self) -> String {
        match &self.branch {
            Some(branch) => format!("{}$branch_{}", self.name, branch.name),
            None => self.name.clone(),
        }
    }

    /// Whether the container still stands under its name.
    pub(crate) fn stands(&self, view: &View<'_>) -> Result<bool, Stop> {
        Ok(self.standing(view)?.is_some())
    }

    /// Refuses unless the container still stands under its name.
    pub(crate) fn guard(&self, view: &View<'_>, subject: Subject) -> Result<(Key, Entry), Stop> {
        let standing = self.standing(view)?;
        standing.ok_or_else(|| not_found(subject, &self.shown()).into())
    }
}

/// The key of a container in its parent's partition.
pub(crate) fn container_key(parent: PartitionId, name: &str) -> Key {
    Key {
        partition: parent,
        branch: BranchId::MAIN,
        scope: String::new(),
        class: Class::Container,
        name: name.to_owned(),
    }
}

/// The key of a namespace nested in a database.
pub(crate) fn nested_key((partition, branch): Map, scope: &str, name: &str) -> Key {
    Key {
        partition,
        branch,
        scope: scope.to_owned(),
        class: Class::Container,
        name: name.to_owned(),
    }
}

/// The key of a table or view.
pub(crate) fn table_key((partition, branch): Map, scope: &str, name: &str) -> Key {
    Key {
        partition,
        branch,
        scope: scope.to_owned(),
        class: Class::Table,
        name: name.to_owned(),
    }
}

/// The key of the nested namespace that a scope names; `None` for the database itself.
pub(crate) fn scope_key(map: Map, scope: &str) -> Option<Key> {
    if scope.is_empty() {
        return None;
    }
    let (parents, name) = scope.rsplit_once(LEVEL_SEPARATOR).unwrap_or(("", scope));
    Some(nested_key(map, parents, name))
}

/// Refuses unless the nested namespace that the scope names stands.
pub(crate) fn guard_scope(view: &View<'_>, database: &Container, scope: &str) -> Result<(), Stop> {
    if let Some(key) = scope_key(database.map(), scope)
        && view.get(&key)?.is_none()
    {
        let shown = format!(
            "{}.{}",
            database.shown(),
            scope.replace(LEVEL_SEPARATOR, ".")
        );
        return Err(not_found(Subject::Namespace, &shown).into());
    }
    Ok(())
}

/// "There is no such thing."
pub(crate) fn not_found(subject: Subject, name: &str) -> Refusal {
    let what = noun(subject);
    Refusal::new(
        Reason::NotFound(subject),
        format!("{what} {} does not exist", shortened(name)),
    )
}

/// As much of a client's text as a message needs to name it.
pub(crate) fn shortened(text: &str) -> &str {
    const MOST: usize = 300;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// "The name is taken."
pub(crate) fn already_exists(subject: Subject, name: &str) -> Refusal {
    let what = noun(subject);
    Refusal::new(
        Reason::AlreadyExists(subject),
        format!("{what} {name} already exists; use another name, or drop it first"),
    )
}

/// "The namespace does not exist."
pub(crate) fn no_namespace(namespace: &Namespace) -> Refusal {
    not_found(Subject::Namespace, &namespace.to_string())
}

/// The word for a subject.
pub(crate) fn noun(subject: Subject) -> &'static str {
    match subject {
        Subject::Metalake => "metalake",
        Subject::Catalog => "catalog",
        Subject::Namespace => "namespace",
        Subject::Table => "table",
        Subject::View => "view",
        Subject::Branch => "branch",
        Subject::Tag => "tag",
    }
}

/// The key of the mark that the files of a dropped table are being removed.
pub(crate) fn purge_key(table: ObjectId) -> Key {
    Key {
        partition: PartitionId::ROOT,
        branch: BranchId::MAIN,
        scope: String::new(),
        class: Class::Purge,
        name: table.0.to_string(),
    }
}

/// What a table or view excludes by its name, for messages.
pub(crate) fn subject_of(entry: &Entry) -> Subject {
    use anabranch_store::Kind;
    match entry.kind {
        Kind::Metalake => Subject::Metalake,
        Kind::Catalog => Subject::Catalog,
        Kind::Namespace => Subject::Namespace,
        Kind::IcebergTable | Kind::Purge | Kind::Absent => Subject::Table,
        Kind::IcebergView => Subject::View,
        Kind::Branch | Kind::Merge | Kind::Fork => Subject::Branch,
        Kind::Tag => Subject::Tag,
    }
}
