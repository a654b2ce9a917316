//! Views: create, replace, register.

use std::sync::Arc;

use anabranch_iceberg::{
    CreateView, Schema, UpdateContext, ViewMetadata, ViewRequirement, ViewUpdate, ViewVersion,
};
use anabranch_partition::Refusal;
use uuid::Uuid;

use crate::body::Properties;
use crate::error::CatalogError;
use crate::name::{Identifier, Warehouse};
use crate::service::caller::Caller;
use crate::service::document::Content;
use crate::service::pointers::PointerKind;
use crate::service::prepare::{Committed, Edit};
use crate::service::{Catalog, location};

/// A view to be made.
#[derive(Clone, Debug)]
pub struct NewView {
    /// Its name.
    pub identifier: Identifier,
    /// Where its metadata goes; a place of its own if nothing is said.
    pub location: Option<String>,
    /// The schema of its rows.
    pub schema: Schema,
    /// Its first version.
    pub version: ViewVersion,
    /// Its properties.
    pub properties: Properties,
}

impl Catalog {
    /// Creates a view.
    pub async fn create_view(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        new: NewView,
    ) -> Result<Committed, CatalogError> {
        let target = self.core.target(warehouse, &new.identifier).await?;
        let uuid = Uuid::now_v7();
        let chosen = location::for_new_table(
            &target.catalog.body,
            &target.namespace,
            &new.identifier,
            uuid,
            new.location.as_deref(),
        )?;
        let context = UpdateContext {
            now_ms: target.now.millis(),
            previous_metadata_location: None,
        };
        let create = CreateView {
            uuid,
            location: chosen,
            schema: new.schema,
            version: new.version,
            properties: new.properties,
        };
        let metadata = ViewMetadata::create(create, &context)
            .map_err(|error| Refusal::invalid(error.to_string()))?;
        let edit = Edit::Create {
            content: Content::View(Arc::new(metadata)),
        };
        self.commit_one(caller, warehouse, new.identifier, PointerKind::View, edit)
            .await
    }

    /// Commits to a view: requirements are checked and updates applied on its newest metadata.
    pub async fn commit_view(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        identifier: Identifier,
        requirements: Vec<ViewRequirement>,
        updates: Vec<ViewUpdate>,
    ) -> Result<Committed, CatalogError> {
        let edit = Edit::UpdateView {
            requirements,
            updates,
        };
        self.commit_one(caller, warehouse, identifier, PointerKind::View, edit)
            .await
    }

    /// Makes a view of metadata that lies in the store already.
    pub async fn register_view(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        identifier: Identifier,
        metadata_location: &str,
    ) -> Result<Committed, CatalogError> {
        self.register(
            caller,
            warehouse,
            identifier,
            PointerKind::View,
            metadata_location,
            false,
        )
        .await
    }
}
