//! Tables and views as pointers at metadata: load, list, drop, rename.

use std::sync::Arc;

use anabranch_files::StorageSettings;
use anabranch_partition::{Refusal, RunError, Subject};
use anabranch_store::{BranchId, BranchState, Class, Kind, ObjectId};

use crate::body::{self, PointerBody};
use crate::command::{DropPointer, Published, RenamePointer};
use crate::error::CatalogError;
use crate::name::{Identifier, Namespace, Warehouse};
use crate::place::{Container, not_found};
use crate::reference::body::state_name;
use crate::service::caller::{Caller, Changed, changed};
use crate::service::document::Document;
use crate::service::listing::{Listing, Page, Shelf};
use crate::service::lookup::{absent_at, found_catalog, found_database, table_path};
use crate::service::prepare::Committed;
use crate::service::reach::Located;
use crate::service::{Catalog, Core};

/// A table or a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PointerKind {
    /// An Iceberg table.
    Table,
    /// An Iceberg view.
    View,
}

impl PointerKind {
    pub(crate) fn kind(self) -> Kind {
        match self {
            PointerKind::Table => Kind::IcebergTable,
            PointerKind::View => Kind::IcebergView,
        }
    }

    pub(crate) fn subject(self) -> Subject {
        match self {
            PointerKind::Table => Subject::Table,
            PointerKind::View => Subject::View,
        }
    }
}

/// Where a table or view stands.
#[derive(Clone, Debug)]
pub struct Pointer {
    /// Its name.
    pub identifier: Identifier,
    /// What it is.
    pub kind: PointerKind,
    /// Which thing it is.
    pub object: ObjectId,
    /// Rises with each of its versions.
    pub version: i64,
    /// Where its metadata document lies.
    pub metadata_location: String,
    /// Its own location.
    pub location: String,
    /// How its files are reached.
    pub settings: Arc<StorageSettings>,
    /// Whether its files may belong to other branches or tags of the database too.
    pub is_shared: bool,
    /// What the header `Anabranch-Revision` says.
    pub revision: String,
}

/// A table that was taken out of the catalog; its files are where they were.
#[derive(Clone, Debug)]
pub struct Unregistered {
    /// Where its last metadata document lies.
    pub metadata_location: String,
    /// What that says.
    pub document: Arc<Document>,
}

/// The pointer that a resolved path leads to.
pub(crate) fn found_pointer(
    warehouse: &Warehouse,
    identifier: &Identifier,
    kind: PointerKind,
    located: &Located,
) -> Result<Pointer, CatalogError> {
    let catalog = found_catalog(warehouse, &located.resolved)?;
    let absent = || not_found(kind.subject(), &identifier.to_string());
    let found = found_database(&identifier.namespace, located);
    let database = found.map_err(|error| absent_at(kind.subject(), identifier, &error))?;
    let leaf = &located.resolved.leaf;
    let entry = leaf
        .as_ref()
        .filter(|entry| entry.kind == kind.kind())
        .ok_or_else(absent)?;
    let body: PointerBody = body::read(entry)?;
    Ok(Pointer {
        identifier: identifier.clone(),
        kind,
        object: entry.object,
        version: entry.version,
        metadata_location: body.metadata_location,
        location: body.location,
        settings: Arc::new(catalog.settings),
        is_shared: located.is_shared(),
        revision: database.revision(),
    })
}

impl Core {
    /// What an earlier request published under a name: as it is now if it still stands there, else
    /// as that request left it.
    pub(crate) async fn committed_before(
        &self,
        warehouse: &Warehouse,
        identifier: &Identifier,
        kind: PointerKind,
        published: &Published,
    ) -> Result<Committed, CatalogError> {
        let now = self.pointer(warehouse, identifier, kind).await;
        let pointer = match now {
            Ok(pointer) if pointer.object == published.object => pointer,
            Err(error) if error.refusal().is_none() => return Err(error),
            _ => {
                let catalog = self.catalog(warehouse).await?;
                let left: PointerBody = serde_json::from_str(&published.body)
                    .map_err(|_| CatalogError::Run(RunError::Failed))?;
                Pointer {
                    identifier: identifier.clone(),
                    kind,
                    object: published.object,
                    version: published.version,
                    metadata_location: left.metadata_location,
                    location: left.location,
                    settings: Arc::new(catalog.settings),
                    is_shared: true,
                    revision: state_name(BranchState {
                        branch: published.branch,
                        revision: published.from,
                    }),
                }
            }
        };
        let document = self
            .document(&pointer.metadata_location, &pointer.settings)
            .await?;
        Ok(Committed { pointer, document })
    }

    pub(crate) async fn pointer(
        &self,
        warehouse: &Warehouse,
        identifier: &Identifier,
        kind: PointerKind,
    ) -> Result<Pointer, CatalogError> {
        let located = self.locate_one(table_path(warehouse, identifier)).await?;
        found_pointer(warehouse, identifier, kind, &located)
    }
}

impl Catalog {
    /// Where a table or view stands: one statement, no file.
    pub async fn pointer(
        &self,
        warehouse: &Warehouse,
        identifier: &Identifier,
        kind: PointerKind,
    ) -> Result<Pointer, CatalogError> {
        self.core.pointer(warehouse, identifier, kind).await
    }

    /// The metadata document that a pointer names.
    pub async fn document(&self, pointer: &Pointer) -> Result<Arc<Document>, CatalogError> {
        self.core
            .document(&pointer.metadata_location, &pointer.settings)
            .await
    }

    /// Names of the tables, or of the views, of a namespace.
    pub async fn list_pointers(
        &self,
        warehouse: &Warehouse,
        namespace: &Namespace,
        kind: PointerKind,
        page: &Page,
    ) -> Result<Listing<Identifier>, CatalogError> {
        let (_, database, located, _) = self.core.namespace(warehouse, namespace).await?;
        let shelf = Shelf {
            partition: database.container.partition,
            scope: namespace.scope(),
            class: Class::Table,
            kinds: vec![kind.kind()],
        };
        let shelved = self
            .core
            .list_at(shelf, located.reach.as_ref(), page)
            .await?;
        let identifiers = shelved.entries.into_iter().map(|(key, _)| Identifier {
            namespace: namespace.clone(),
            name: key.name,
        });
        Ok(Listing {
            items: identifiers.collect(),
            next: shelved.next,
            revision: Some(shelved.revision),
        })
    }

    /// Drops a table or view. With `purge`, its files are removed in the background once nothing
    /// that is kept can read them.
    pub async fn drop_pointer(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        identifier: &Identifier,
        kind: PointerKind,
        purge: bool,
    ) -> Result<Changed<()>, CatalogError> {
        let dropped = self.drop_standing(caller, warehouse, identifier, kind, purge);
        let Changed { revision, .. } = dropped.await?;
        let value = ();
        Ok(Changed { value, revision })
    }

    /// Drops a table whose files stay, and answers the metadata that it had last: with every
    /// commit that was applied before, and none can be applied after.
    pub async fn unregister_table(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        identifier: &Identifier,
    ) -> Result<Changed<Unregistered>, CatalogError> {
        let kind = PointerKind::Table;
        let settings = self.core.catalog(warehouse).await?.settings;
        // Read first: a table whose metadata can't be read stays, and mostly this is the document
        // that is answered.
        match self.core.pointer(warehouse, identifier, kind).await {
            Ok(pointer) => drop(self.document(&pointer).await?),
            // It may have been dropped by this very request; the drop knows.
            Err(error) if error.refusal().is_some() => {}
            Err(error) => return Err(error),
        }
        let dropped = self.drop_standing(caller, warehouse, identifier, kind, false);
        let Changed { value, revision } = dropped.await?;
        let metadata_location = value.metadata_location;
        let document = self.core.document(&metadata_location, &settings).await;
        // It is dropped, so no error may say that nothing was changed.
        let document = document.map_err(|_| CatalogError::Run(RunError::Unknown))?;
        let value = Unregistered {
            metadata_location,
            document,
        };
        Ok(Changed { value, revision })
    }

    async fn drop_standing(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        identifier: &Identifier,
        kind: PointerKind,
        purge: bool,
    ) -> Result<Changed<PointerBody>, CatalogError> {
        let tried = self.try_drop_standing(caller, warehouse, identifier, kind, purge);
        self.core.answer(caller, tried.await).await
    }

    async fn try_drop_standing(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        identifier: &Identifier,
        kind: PointerKind,
        purge: bool,
    ) -> Result<Changed<PointerBody>, CatalogError> {
        let core = &self.core;
        let located = core.locate_one(table_path(warehouse, identifier)).await?;
        let catalog = found_catalog(warehouse, &located.resolved)?;
        let absent = |error| absent_at(kind.subject(), identifier, &error);
        let database = found_database(&identifier.namespace, &located).map_err(absent)?;
        let database = database.writable()?;
        let map = database.container.map();
        let retention = core.limits.history_retention.as_micros();
        let command = DropPointer {
            kind: kind.kind(),
            subject: kind.subject(),
            database: database.container.clone(),
            identifier: identifier.clone(),
            // What is dropped on a branch may stand on others: its files are left to `gc`.
            purge: (purge && map.1 == BranchId::MAIN)
                .then(|| i64::try_from(retention).unwrap_or(i64::MAX)),
            catalog: catalog.container,
        };
        let partitions = vec![database.container.partition];
        let accepted = core.run(caller, partitions, command).await?;
        Ok(changed(accepted.outcome.clone(), &accepted))
    }

    /// Renames a table or view, also into another namespace of the same warehouse.
    pub async fn rename_pointer(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        kind: PointerKind,
        from: &Identifier,
        to: &Identifier,
    ) -> Result<Changed<()>, CatalogError> {
        let tried = self.try_rename(caller, warehouse, kind, from, to).await;
        self.core.answer(caller, tried).await
    }

    async fn try_rename(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        kind: PointerKind,
        from: &Identifier,
        to: &Identifier,
    ) -> Result<Changed<()>, CatalogError> {
        let core = &self.core;
        let paths = vec![table_path(warehouse, from), table_path(warehouse, to)];
        let located = core.locate(paths).await?;
        let [source, target] = located.as_slice() else {
            return Err(Refusal::invalid("a rename has a source and a destination").into());
        };
        found_catalog(warehouse, &source.resolved)?;
        let absent = |error| absent_at(kind.subject(), from, &error);
        let source = found_database(&from.namespace, source).map_err(absent)?;
        let source = source.writable()?;
        let target = found_database(&to.namespace, target)?.writable()?;
        check_same_reference(&source.container, &target.container)?;
        let partitions = vec![source.container.partition, target.container.partition];
        let command = RenamePointer {
            kind: kind.kind(),
            subject: kind.subject(),
            from: (source.container, from.clone()),
            to: (target.container, to.clone()),
        };
        let accepted = core.run(caller, partitions, command).await?;
        Ok(changed((), &accepted))
    }
}

/// A table is carried from one branch to another by a merge, never by a rename; from one database
/// to another only on `main`.
fn check_same_reference(source: &Container, target: &Container) -> Result<(), Refusal> {
    if source.map() == target.map() || (source.branch.is_none() && target.branch.is_none()) {
        return Ok(());
    }
    Err(Refusal::invalid(format!(
        "a rename stays on one branch of one database, and leads from {} to {}; merge the branch \
         to bring its tables to another one",
        source.shown(),
        target.shown()
    )))
}
