//! Databases and the namespaces nested in them.

use std::collections::BTreeMap;

use anabranch_partition::{Refusal, Subject};
use anabranch_store::{Class, Kind, ObjectId, PartitionId, PartitionKind};

use crate::body::{self, NamespaceBody, Properties};
use crate::command::{
    CreateContainer, CreateNested, DropContainer, DropNested, PropertiesChanged, SetProperties,
};
use crate::error::CatalogError;
use crate::name::{Namespace, Warehouse};
use crate::place::{container_key, nested_key};
use crate::properties;
use crate::reference::name::split_selector;
use crate::service::caller::{Caller, Changed, changed};
use crate::service::listing::{Listing, Page, Shelf};
use crate::service::lookup::{FoundDatabase, found_catalog, found_database, namespace_path};
use crate::service::{Catalog, location};

/// A namespace as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceInfo {
    /// Its name.
    pub namespace: Namespace,
    /// Its properties.
    pub properties: Properties,
    /// What the header `Anabranch-Revision` says.
    pub revision: String,
}

impl Catalog {
    /// Databases of a warehouse, or the namespaces directly below one.
    pub async fn list_namespaces(
        &self,
        warehouse: &Warehouse,
        parent: Option<&Namespace>,
        page: &Page,
    ) -> Result<Listing<Namespace>, CatalogError> {
        let Some(parent) = parent else {
            let catalog = self.core.catalog(warehouse).await?;
            let shelf = container_shelf(catalog.container.partition, String::new());
            let shelved = self.core.list(shelf, page).await?;
            let entries = shelved.entries.iter();
            let databases = entries.map(|(key, _)| Namespace::of_database(&key.name));
            return Ok(Listing {
                items: databases.collect(),
                next: shelved.next,
                revision: None,
            });
        };
        let (_, database, located, _) = self.core.namespace(warehouse, parent).await?;
        let shelf = container_shelf(database.container.partition, parent.scope());
        let shelved = self
            .core
            .list_at(shelf, located.reach.as_ref(), page)
            .await?;
        let entries = shelved.entries.iter();
        Ok(Listing {
            items: entries.map(|(key, _)| parent.child(&key.name)).collect(),
            next: shelved.next,
            revision: Some(shelved.revision),
        })
    }

    /// A namespace with its properties.
    pub async fn load_namespace(
        &self,
        warehouse: &Warehouse,
        namespace: &Namespace,
    ) -> Result<NamespaceInfo, CatalogError> {
        let (_, database, _, entry) = self.core.namespace(warehouse, namespace).await?;
        let body: NamespaceBody = body::read(&entry)?;
        Ok(NamespaceInfo {
            namespace: namespace.clone(),
            properties: body.properties,
            revision: database.revision(),
        })
    }

    /// Creates a database, or a namespace nested in an existing one.
    pub async fn create_namespace(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        namespace: &Namespace,
        properties: Properties,
    ) -> Result<Changed<NamespaceInfo>, CatalogError> {
        let tried = self.try_create(caller, warehouse, namespace, &properties);
        let Changed { revision, .. } = self.core.answer(caller, tried.await).await?;
        let info = NamespaceInfo {
            namespace: namespace.clone(),
            properties,
            revision: revision.clone(),
        };
        Ok(Changed {
            value: info,
            revision,
        })
    }

    async fn try_create(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        namespace: &Namespace,
        properties: &Properties,
    ) -> Result<Changed<i64>, CatalogError> {
        let path = namespace_path(warehouse, namespace);
        let located = self.core.locate_one(path).await?;
        let catalog = found_catalog(warehouse, &located.resolved)?;
        properties::check(properties)?;
        if let Some(text) = properties.get(location::LOCATION_PROPERTY) {
            location::allowed(&catalog.body, "properties.location", text)?;
        }
        let written = body::write(&NamespaceBody {
            properties: properties.clone(),
        });
        let accepted = if let Some((scope, name)) = namespace.nested_place() {
            let parent = namespace.parent().unwrap_or_else(|| namespace.clone());
            let database = found_database(&parent, &located)?.writable()?;
            let command = CreateNested {
                scope,
                name: name.to_owned(),
                object: ObjectId::new(rand::random()),
                body: written,
                database: database.container.clone(),
            };
            let partitions = vec![database.container.partition];
            let accepted = self.core.run(caller, partitions, command).await?;
            return Ok(changed(accepted.outcome, &accepted));
        } else {
            refuse_selector(namespace, "created")?;
            let command = CreateContainer {
                parent: Some((catalog.container.clone(), Subject::Catalog)),
                kind: Kind::Namespace,
                name: namespace.database().to_owned(),
                partition: PartitionId::new(PartitionKind::Database, rand::random()),
                body: written,
            };
            let partitions = vec![catalog.container.partition];
            self.core.run(caller, partitions, command).await?
        };
        Ok(changed(accepted.outcome, &accepted))
    }

    /// Drops an empty namespace.
    pub async fn drop_namespace(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        namespace: &Namespace,
    ) -> Result<Changed<()>, CatalogError> {
        let tried = self.try_drop(caller, warehouse, namespace).await;
        self.core.answer(caller, tried).await
    }

    async fn try_drop(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        namespace: &Namespace,
    ) -> Result<Changed<()>, CatalogError> {
        let path = namespace_path(warehouse, namespace);
        let located = self.core.locate_one(path).await?;
        let catalog = found_catalog(warehouse, &located.resolved)?;
        let database = found_database(namespace, &located)?.writable()?;
        let accepted = match namespace.nested_place() {
            Some((scope, name)) => {
                let partitions = vec![database.container.partition];
                let command = DropNested {
                    namespace: namespace.clone(),
                    scope,
                    name: name.to_owned(),
                    database: database.container,
                };
                let accepted = self.core.run(caller, partitions, command).await?;
                return Ok(changed((), &accepted));
            }
            None => {
                refuse_selector(namespace, "dropped")?;
                let parent = catalog.container.partition;
                let partitions = vec![parent, database.container.partition];
                let command = DropContainer {
                    parent,
                    container: database.container,
                    subject: Subject::Namespace,
                    cascade: false,
                };
                self.core.run(caller, partitions, command).await?
            }
        };
        Ok(changed((), &accepted))
    }

    /// Removes and sets properties of a namespace; keys that aren't named stay as they are.
    pub async fn update_namespace_properties(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        namespace: &Namespace,
        removals: Vec<String>,
        updates: Properties,
    ) -> Result<Changed<PropertiesChanged>, CatalogError> {
        let tried = self.try_update(caller, warehouse, namespace, removals, updates);
        self.core.answer(caller, tried.await).await
    }

    async fn try_update(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        namespace: &Namespace,
        removals: Vec<String>,
        updates: Properties,
    ) -> Result<Changed<PropertiesChanged>, CatalogError> {
        let path = namespace_path(warehouse, namespace);
        let located = self.core.locate_one(path).await?;
        let catalog = found_catalog(warehouse, &located.resolved)?;
        properties::check(&updates)?;
        if let Some(text) = updates.get(location::LOCATION_PROPERTY) {
            location::allowed(&catalog.body, "updates.location", text)?;
        }
        let database = found_database(namespace, &located)?.writable()?;
        if namespace.is_database() {
            refuse_selector(namespace, "altered")?;
        }
        let found = database.revision();
        let command = set_properties(namespace, catalog.container, database, removals, updates);
        let partitions = vec![command.holder.partition];
        let mut accepted = self.core.run(caller, partitions, command).await?;
        let value = std::mem::take(&mut accepted.outcome);
        if namespace.is_database() {
            // Its properties belong to the catalog: what its `main` shows is as it was.
            let revision = found;
            return Ok(Changed { value, revision });
        }
        Ok(changed(value, &accepted))
    }
}

/// A database is one thing on all its branches.
fn refuse_selector(namespace: &Namespace, what: &str) -> Result<(), Refusal> {
    let name = namespace.database();
    match split_selector(name)? {
        (_, None) => Ok(()),
        (plain, Some(_)) => Err(Refusal::invalid(format!(
            "{name} names a reference of database {plain}, and a database is {what} without one; \
             branches and tags are made and deleted by /v1/catalogs/…/databases/{plain}/trees"
        ))),
    }
}

fn set_properties(
    namespace: &Namespace,
    catalog: crate::place::Container,
    database: FoundDatabase,
    removals: Vec<String>,
    updates: BTreeMap<String, String>,
) -> SetProperties {
    let (holder, holder_subject, key) = match namespace.nested_place() {
        Some((scope, name)) => {
            let key = nested_key(database.container.map(), &scope, name);
            (database.container, Subject::Namespace, key)
        }
        None => {
            let key = container_key(catalog.partition, namespace.database());
            (catalog, Subject::Catalog, key)
        }
    };
    SetProperties {
        holder,
        holder_subject,
        key,
        shown: namespace.to_string(),
        removals,
        updates,
    }
}

fn container_shelf(partition: PartitionId, scope: String) -> Shelf {
    Shelf {
        partition,
        scope,
        class: Class::Container,
        kinds: Vec::new(),
    }
}
