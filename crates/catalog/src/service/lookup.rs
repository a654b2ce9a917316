//! From names to what stands under them.

use anabranch_files::StorageSettings;
use anabranch_partition::{Refusal, Subject};
use anabranch_store::{Class, Entry, Leaf, PartitionId, Path, Resolved, Revision};

use crate::body::{self, CatalogBody};
use crate::error::CatalogError;
use crate::name::{Identifier, Namespace, Warehouse};
use crate::place::{Container, no_namespace, not_found};
use crate::service::Core;

/// What the header `Anabranch-Revision` says of `main` at a revision: the reference's id and the
/// time of its own last change, in lower-case hexadecimal.
pub fn reference_revision(revision: Revision) -> String {
    format!("{:x}-{:x}", anabranch_store::BranchId::MAIN.0, revision.0)
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
    pub(crate) last_revision: Revision,
}

/// The path of a warehouse, and of what is looked for in it.
pub(crate) fn path(warehouse: &Warehouse, database: Option<&str>, leaf: Option<Leaf>) -> Path {
    Path {
        metalake: warehouse.metalake.clone(),
        catalog: Some(warehouse.catalog.clone()),
        database: database.map(str::to_owned),
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
        metalake: Container {
            partition: PartitionId(metalake.object.0),
            name: warehouse.metalake.clone(),
        },
        container: Container {
            partition: PartitionId(entry.object.0),
            name: warehouse.catalog.clone(),
        },
        body,
        settings,
    })
}

/// The database of a resolved path.
pub(crate) fn found_database(
    namespace: &Namespace,
    resolved: &Resolved,
) -> Result<FoundDatabase, CatalogError> {
    let entry = resolved
        .database
        .clone()
        .ok_or_else(|| no_namespace(namespace))?;
    Ok(FoundDatabase {
        container: Container {
            partition: PartitionId(entry.object.0),
            name: namespace.database().to_owned(),
        },
        last_revision: resolved
            .partition
            .as_ref()
            .map(|row| row.last_revision)
            .unwrap_or_default(),
        entry,
    })
}

impl Core {
    pub(crate) async fn resolve_one(&self, path: Path) -> Result<Resolved, CatalogError> {
        let resolved = self.partitions.resolve(&[path]).await?;
        Ok(resolved.into_iter().next().unwrap_or_default())
    }

    pub(crate) async fn catalog(
        &self,
        warehouse: &Warehouse,
    ) -> Result<FoundCatalog, CatalogError> {
        let resolved = self.resolve_one(path(warehouse, None, None)).await?;
        found_catalog(warehouse, &resolved)
    }

    /// The catalog, the database and, for a nested namespace, its entry.
    pub(crate) async fn namespace(
        &self,
        warehouse: &Warehouse,
        namespace: &Namespace,
    ) -> Result<(FoundCatalog, FoundDatabase, Entry), CatalogError> {
        let resolved = self
            .resolve_one(namespace_path(warehouse, namespace))
            .await?;
        let catalog = found_catalog(warehouse, &resolved)?;
        let database = found_database(namespace, &resolved)?;
        let entry = if namespace.is_database() {
            database.entry.clone()
        } else {
            resolved.leaf.ok_or_else(|| no_namespace(namespace))?
        };
        Ok((catalog, database, entry))
    }
}
