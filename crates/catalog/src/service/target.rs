//! Where a new table or view is to stand.

use anabranch_files::StorageSettings;
use anabranch_partition::Refusal;
use anabranch_store::StoreTime;
use uuid::Uuid;

use crate::body::{self, NamespaceBody, Properties};
use crate::error::CatalogError;
use crate::name::{Identifier, Warehouse};
use crate::place::{already_exists, no_namespace, subject_of};
use crate::service::lookup::{
    FoundCatalog, found_catalog, found_database, namespace_path, table_path,
};
use crate::service::{Core, location};

/// The surroundings of a free name.
pub(crate) struct Target {
    pub(crate) catalog: FoundCatalog,
    pub(crate) namespace: Properties,
    /// What the header `Anabranch-Revision` says.
    pub(crate) revision: String,
    /// The store's time when this was read.
    pub(crate) now: StoreTime,
    /// Whether something stands under the name.
    pub(crate) taken: Option<CatalogError>,
}

impl Target {
    /// An identity and a location for what is to be made.
    pub(crate) fn home(
        &self,
        identifier: &Identifier,
        asked: Option<&str>,
    ) -> Result<(Uuid, String), Refusal> {
        let uuid = Uuid::now_v7();
        let (catalog, namespace) = (&self.catalog.body, &self.namespace);
        let location = location::for_new_table(catalog, namespace, identifier, uuid, asked)?;
        Ok((uuid, location))
    }
}

impl Core {
    /// Finds the namespace of a new table or view, in one statement.
    pub(crate) async fn target(
        &self,
        warehouse: &Warehouse,
        identifier: &Identifier,
    ) -> Result<Target, CatalogError> {
        let namespace = &identifier.namespace;
        let paths = vec![
            namespace_path(warehouse, namespace),
            table_path(warehouse, identifier),
        ];
        let mut located = self.locate(paths).await?;
        let leaf = located.pop().and_then(|table| table.resolved.leaf);
        let place = located.pop().unwrap_or_default();
        let catalog = found_catalog(warehouse, &place.resolved)?;
        let database = found_database(namespace, &place)?.writable()?;
        let revision = database.revision();
        let entry = if namespace.is_database() {
            database.entry
        } else {
            let leaf = place.resolved.leaf;
            leaf.ok_or_else(|| no_namespace(namespace))?
        };
        let body: NamespaceBody = body::read(&entry)?;
        let taken = leaf.map(|entry| {
            CatalogError::from(already_exists(subject_of(&entry), &identifier.to_string()))
        });
        Ok(Target {
            catalog,
            namespace: body.properties,
            revision,
            now: place.resolved.now,
            taken,
        })
    }

    /// Makes the folders that some writers expect to be there.
    pub(crate) async fn make_folders(
        &self,
        settings: &StorageSettings,
        table_location: &str,
    ) -> Result<(), CatalogError> {
        let location = location::parse("location", table_location)?;
        let files = self.files.with_settings(settings);
        let made = files.ensure_table_folders(&location).await;
        made.map_err(|error| CatalogError::unwritten(&error))
    }
}
