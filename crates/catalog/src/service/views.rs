//! Views: create, replace, register.

use std::sync::Arc;

use anabranch_iceberg::{
    CreateView, Schema, UpdateContext, ViewMetadata, ViewRequirement, ViewUpdate, ViewVersion,
};
use anabranch_partition::Refusal;

use crate::body::Properties;
use crate::error::CatalogError;
use crate::name::{Identifier, Warehouse};
use crate::reference::name::split_selector;
use crate::service::Catalog;
use crate::service::caller::Caller;
use crate::service::document::Content;
use crate::service::pointers::PointerKind;
use crate::service::prepare::{Committed, Edit};

/// Names that a view doesn't qualify are looked for where the view is seen: what is kept of a view
/// that was made at `db$branch_x` names `db`, and after a merge it reads what `main` has.
fn of_any_branch(identifier: &Identifier, mut version: ViewVersion) -> ViewVersion {
    let seen_at = identifier.namespace.database();
    if let Some(first) = version.default_namespace.first_mut()
        && first == seen_at
        && let Ok((plain, Some(_))) = split_selector(seen_at)
    {
        plain.clone_into(first);
    }
    version
}

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
        let identifier = new.identifier.clone();
        let metadata = match self.make_view(warehouse, new).await {
            Ok(metadata) => metadata,
            Err(error) => {
                let kind = PointerKind::View;
                return self
                    .refuse_creation(caller, warehouse, &identifier, kind, error)
                    .await;
            }
        };
        let edit = Edit::Create {
            content: Content::View(Arc::new(metadata)),
        };
        self.commit_one(caller, warehouse, identifier, PointerKind::View, edit)
            .await
    }

    /// The metadata of a new view, with its location chosen.
    async fn make_view(
        &self,
        warehouse: &Warehouse,
        new: NewView,
    ) -> Result<ViewMetadata, CatalogError> {
        let target = self.core.target(warehouse, &new.identifier).await?;
        let (uuid, location) = target.home(&new.identifier, new.location.as_deref())?;
        let context = UpdateContext {
            now_ms: target.now.millis(),
            previous_metadata_location: None,
        };
        let create = CreateView {
            uuid,
            location,
            schema: new.schema,
            version: of_any_branch(&new.identifier, new.version),
            properties: new.properties,
        };
        let made = ViewMetadata::create(create, &context);
        Ok(made.map_err(|error| Refusal::invalid(error.to_string()))?)
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
        let of_any_branch = |update| match update {
            ViewUpdate::AddViewVersion { view_version } => ViewUpdate::AddViewVersion {
                view_version: of_any_branch(&identifier, view_version),
            },
            other => other,
        };
        let edit = Edit::UpdateView {
            requirements,
            updates: updates.into_iter().map(of_any_branch).collect(),
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
