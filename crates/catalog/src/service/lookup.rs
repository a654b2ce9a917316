//! From names to what stands under them.

use anabranch_files::StorageSettings;
use anabranch_partition::{Reason, Refusal, Subject};
use anabranch_store::{
    BranchId, BranchState, Class, Entry, Leaf, PartitionId, Path, Resolved, Revision,
};

use crate::body::{self, CatalogBody};
use crate::error::CatalogError;
use crate::name::{Identifier, Namespace, Warehouse};
use crate::place::{Container, SelectedBranch, no_namespace, not_found};
use crate::reference::body::state_name;
use crate::reference::find::noun;
use crate::reference::name::{Selector, split_selector};
use crate::service::Core;
use crate::service::reach::{Located, Reach};

/// What the header `Anabranch-Revision` says of `main` at a revision.
pub fn reference_revision(revision: Revision) -> String {
    state_name(BranchState {
        branch: BranchId::MAIN,
        revision,
    })
}

/// A catalog found by name.
#[derive(Clone, Debug)]
pub(crate) struct FoundCatalog {
    pub(crate) metalake: Container,
    pub(crate) container: Container,
    pub(crate) body: CatalogBody,
    pub(crate) settings: StorageSettings,
}

/// A first-level database found by name.
#[derive(Clone, Debug)]
pub(crate) struct FoundDatabase {
    pub(crate) container: Container,
    pub(crate) entry: Entry,
    /// The state that was found.
    pub(crate) state: BranchState,
    /// What it was found at, if that never changes.
    read_only: Option<Refusal>,
}

impl FoundDatabase {
    /// Refuses if it was found at a tag or a pin.
    pub(crate) fn writable(self) -> Result<FoundDatabase, Refusal> {
        match self.read_only {
            Some(refusal) => Err(refusal),
            None => Ok(self),
        }
    }

    /// What the header `Anabranch-Revision` says.
    pub(crate) fn revision(&self) -> String {
        state_name(self.state)
    }
}

/// The path of a warehouse, and of what is looked for in it.
pub(crate) fn path(warehouse: &Warehouse, database: Option<&str>, leaf: Option<Leaf>) -> Path {
    Path {
        metalake: warehouse.metalake.clone(),
        catalog: Some(warehouse.catalog.clone()),
        database: database.map(|name| warehouse.at(name)),
        leaf,
    }
}

/// The path of a table or view.
pub(crate) fn table_path(warehouse: &Warehouse, identifier: &Identifier) -> Path {
    let leaf = Leaf {
        scope: identifier.namespace.scope(),
        class: Class::Table,
        name: identifier.name.clone(),
    };
    path(warehouse, Some(identifier.namespace.database()), Some(leaf))
}

/// The path of a namespace; its leaf is the nested namespace, if it is one.
pub(crate) fn namespace_path(warehouse: &Warehouse, namespace: &Namespace) -> Path {
    let leaf = namespace.nested_place().map(|(scope, name)| Leaf {
        scope,
        class: Class::Container,
        name: name.to_owned(),
    });
    path(warehouse, Some(namespace.database()), leaf)
}

/// The catalog of a resolved path.
pub(crate) fn found_catalog(
    warehouse: &Warehouse,
    resolved: &Resolved,
) -> Result<FoundCatalog, CatalogError> {
    let metalake = resolved
        .metalake
        .as_ref()
        .ok_or_else(|| not_found(Subject::Metalake, &warehouse.metalake))?;
    let entry = resolved
        .catalog
        .as_ref()
        .ok_or_else(|| not_found(Subject::Catalog, &warehouse.prefix()))?;
    let body: CatalogBody = body::read(entry)?;
    let settings = StorageSettings::from_properties(&body.properties)
        .map_err(|error| Refusal::invalid(error.to_string()))?;
    Ok(FoundCatalog {
        metalake: Container::new(PartitionId(metalake.object.0), &warehouse.metalake),
        container: Container::new(PartitionId(entry.object.0), &warehouse.catalog),
        body,
        settings,
    })
}

/// The database of a resolved path, at what its name selects.
pub(crate) fn found_database(
    namespace: &Namespace,
    located: &Located,
) -> Result<FoundDatabase, CatalogError> {
    let absent = || no_namespace(namespace);
    let entry = located.resolved.database.clone().ok_or_else(absent)?;
    let (plain, _) = split_selector(namespace.database())?;
    let mut container = Container::new(PartitionId(entry.object.0), plain);
    let mut read_only = None;
    let state = match &located.reach {
        None => BranchState {
            branch: BranchId::MAIN,
            revision: located.resolved.main,
        },
        Some(Reach::Missing(selector)) => {
            return Err(nothing_selected(namespace, plain, selector).into());
        }
        Some(Reach::Branch { name, row }) => {
            container.branch = Some(SelectedBranch {
                name: name.clone(),
                id: row.branch,
            });
            BranchState {
                branch: row.branch,
                revision: row.head,
            }
        }
        Some(Reach::State { subject, state, .. }) => {
            let message = format!(
                "{} never changes; write to a branch, such as {plain}, instead",
                namespace.database()
            );
            read_only = Some(Refusal::new(Reason::ReadOnly(*subject), message));
            *state
        }
    };
    Ok(FoundDatabase {
        container,
        entry,
        state,
        read_only,
    })
}

/// "There is no such branch, tag or state", where a namespace is looked for.
fn nothing_selected(namespace: &Namespace, database: &str, selector: &Selector) -> Refusal {
    let what = match selector {
        Selector::Reference(name) => format!("{} {}", noun(name.kind), name.name),
        Selector::Pin(state) => format!("state {}", state_name(*state)),
    };
    let message = format!(
        "namespace {namespace} does not exist: database {database} has no {what}; \
         GET …/databases/{database}/trees lists its branches and tags"
    );
    Refusal::new(Reason::NotFound(Subject::Namespace), message)
}

/// The same of something that would stand there.
pub(crate) fn absent_at(
    subject: Subject,
    identifier: &Identifier,
    found: &CatalogError,
) -> Refusal {
    let absent = not_found(subject, &identifier.to_string());
    match found.refusal() {
        Some(refusal) => Refusal {
            message: format!("{}; {}", absent.message, refusal.message),
            ..absent
        },
        None => absent,
    }
}

impl Core {
    pub(crate) async fn catalog(
        &self,
        warehouse: &Warehouse,
    ) -> Result<FoundCatalog, CatalogError> {
        let located = self.locate_one(path(warehouse, None, None)).await?;
        found_catalog(warehouse, &located.resolved)
    }

    /// The catalog, the database and, for a nested namespace, its entry.
    pub(crate) async fn namespace(
        &self,
        warehouse: &Warehouse,
        namespace: &Namespace,
    ) -> Result<(FoundCatalog, FoundDatabase, Located, Entry), CatalogError> {
        let located = self
            .locate_one(namespace_path(warehouse, namespace))
            .await?;
        let catalog = found_catalog(warehouse, &located.resolved)?;
        let database = found_database(namespace, &located)?;
        let entry = if namespace.is_database() {
            database.entry.clone()
        } else {
            let leaf = located.resolved.leaf.clone();
            leaf.ok_or_else(|| no_namespace(namespace))?
        };
        Ok((catalog, database, located, entry))
    }
}
