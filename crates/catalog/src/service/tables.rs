//! Tables: create, stage, commit, register, unregister.

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_files::StorageSettings;
use anabranch_iceberg::{
    CreateTable, PartitionSpec, Schema, SortOrder, TableMetadata, UpdateContext,
};
use anabranch_partition::{Refusal, RunError};
use bytes::Bytes;

use crate::body::Properties;
use crate::command::Published;
use crate::error::CatalogError;
use crate::name::{Identifier, Warehouse};
use crate::place::not_found;
use crate::service::caller::{Caller, Changed};
use crate::service::committer::NamedEdit;
use crate::service::document::{Content, Document};
use crate::service::pointers::PointerKind;
use crate::service::prepare::{Committed, Edit, TableChange};
use crate::service::target::Target;
use crate::service::{Catalog, location};

/// A table to be made.
#[derive(Clone, Debug)]
pub struct NewTable {
    /// Its name.
    pub identifier: Identifier,
    /// Where its files go; a place of its own if nothing is said.
    pub location: Option<String>,
    /// Its schema; ids are given anew.
    pub schema: Schema,
    /// How it is partitioned.
    pub partition_spec: Option<PartitionSpec>,
    /// How writers sort.
    pub write_order: Option<SortOrder>,
    /// Its properties; `format-version` among them picks the version.
    pub properties: Properties,
}

impl Catalog {
    /// Creates a table.
    pub async fn create_table(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        new: NewTable,
    ) -> Result<Committed, CatalogError> {
        let identifier = new.identifier.clone();
        let (target, metadata) = match self.make_table(warehouse, new).await {
            Ok(made) => made,
            Err(error) => {
                let kind = PointerKind::Table;
                return self
                    .refuse_creation(caller, warehouse, &identifier, kind, error)
                    .await;
            }
        };
        let settings = &target.catalog.settings;
        self.core
            .make_folders(settings, metadata.location())
            .await?;
        let edit = Edit::Create {
            content: Content::Table(Arc::new(metadata)),
        };
        self.commit_one(caller, warehouse, identifier, PointerKind::Table, edit)
            .await
    }

    /// Makes the metadata of a table that a later commit will create; nothing is changed.
    pub async fn stage_table(
        &self,
        warehouse: &Warehouse,
        new: NewTable,
    ) -> Result<Changed<(Arc<Document>, Arc<StorageSettings>)>, CatalogError> {
        let (target, metadata) = self.make_table(warehouse, new).await?;
        if let Some(error) = target.taken {
            return Err(error);
        }
        let settings = target.catalog.settings;
        self.core
            .make_folders(&settings, metadata.location())
            .await?;
        let bytes = Bytes::from(metadata.to_json());
        let document = Document::of(bytes, Content::Table(Arc::new(metadata)));
        Ok(Changed {
            value: (Arc::new(document), Arc::new(settings)),
            revision: target.revision,
        })
    }

    /// Commits to one table: requirements are checked and updates applied on its newest metadata.
    pub async fn commit_table(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        change: TableChange,
    ) -> Result<Committed, CatalogError> {
        let edit = Edit::UpdateTable {
            requirements: change.requirements,
            updates: change.updates,
        };
        self.commit_one(
            caller,
            warehouse,
            change.identifier,
            PointerKind::Table,
            edit,
        )
        .await
    }

    /// Commits to many tables, all or none. A change that only states requirements takes part.
    pub async fn commit_tables(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        changes: Vec<TableChange>,
    ) -> Result<Vec<Committed>, CatalogError> {
        let most = self.core.limits.tables_per_commit;
        if changes.is_empty() || changes.len() > most {
            return Err(Refusal::invalid(format!(
                "`table-changes` names 1 to {most} tables, not {}",
                changes.len()
            ))
            .into());
        }
        let mut seen = BTreeSet::new();
        for change in &changes {
            if !seen.insert(&change.identifier) {
                return Err(Refusal::invalid(format!(
                    "`table-changes` names {} twice; put all its updates into one change",
                    change.identifier
                ))
                .into());
            }
        }
        let edits = changes.into_iter().map(|change| NamedEdit {
            identifier: change.identifier,
            kind: PointerKind::Table,
            edit: Edit::UpdateTable {
                requirements: change.requirements,
                updates: change.updates,
            },
        });
        self.committer
            .commit(warehouse, edits.collect(), caller)
            .await
    }

    /// Makes a table of metadata that lies in the store already.
    pub async fn register_table(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        identifier: Identifier,
        metadata_location: &str,
        overwrite: bool,
    ) -> Result<Committed, CatalogError> {
        self.register(
            caller,
            warehouse,
            identifier,
            PointerKind::Table,
            metadata_location,
            overwrite,
        )
        .await
    }

    pub(crate) async fn register(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        identifier: Identifier,
        kind: PointerKind,
        metadata_location: &str,
        overwrite: bool,
    ) -> Result<Committed, CatalogError> {
        let catalog = self.core.catalog(warehouse).await?;
        let allowed = location::allowed(&catalog.body, "metadata-location", metadata_location)?;
        let document = self
            .core
            .document(allowed.as_str(), &catalog.settings)
            .await
            .map_err(|error| unusable_metadata(&error))?;
        // A document that was read before is what it was read as, whatever is asked for now.
        let (uuid, own) = match (kind, document.content(kind)) {
            (PointerKind::Table, Ok(Content::Table(metadata))) => {
                (metadata.uuid(), metadata.location().to_owned())
            }
            (PointerKind::View, Ok(Content::View(metadata))) => {
                (metadata.uuid(), metadata.location().to_owned())
            }
            (PointerKind::Table, Ok(Content::View(_))) => {
                let message = "`metadata-location` names the metadata of a view; register a view";
                return Err(Refusal::invalid(message).into());
            }
            (PointerKind::View, Ok(Content::Table(_))) => {
                let message = "`metadata-location` names the metadata of a table; register a table";
                return Err(Refusal::invalid(message).into());
            }
            (_, Err(error)) => {
                let message = format!("`metadata-location`: {error}");
                return Err(Refusal::invalid(message).into());
            }
        };
        location::allowed_for_table(&catalog.body, "location", &own)?;
        let edit = Edit::Register {
            uuid,
            location: own,
            metadata_location: metadata_location.to_owned(),
            overwrite,
            document,
        };
        self.commit_one(caller, warehouse, identifier, kind, edit)
            .await
    }

    /// A creation that is refused before it gets to the commit: under the request's key an earlier
    /// one may have been accepted, and then what stands is the answer.
    pub(crate) async fn refuse_creation(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        identifier: &Identifier,
        kind: PointerKind,
        error: CatalogError,
    ) -> Result<Committed, CatalogError> {
        let earlier = self.core.refuse(caller, error).await?;
        let published = serde_json::from_value::<Vec<Published>>(earlier.outcome)
            .ok()
            .and_then(|all| all.into_iter().next())
            .ok_or(CatalogError::Run(RunError::Unknown))?;
        let committed = self
            .core
            .committed_before(warehouse, identifier, kind, &published);
        // It was made, so no error may say that nothing was changed.
        committed.await.map_err(|_| RunError::Unknown.into())
    }

    pub(crate) async fn commit_one(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        identifier: Identifier,
        kind: PointerKind,
        edit: Edit,
    ) -> Result<Committed, CatalogError> {
        // Whoever commits has written files, and would delete them if told that nothing was
        // applied, also if the table only has another name by now.
        let gone = match edit {
            Edit::UpdateTable { .. } | Edit::UpdateView { .. } => RunError::Unknown,
            Edit::Create { .. } | Edit::Register { .. } => {
                not_found(kind.subject(), &identifier.to_string()).into()
            }
        };
        let edits = vec![NamedEdit {
            identifier,
            kind,
            edit,
        }];
        let committed = self.committer.commit(warehouse, edits, caller).await?;
        let first = committed.into_iter().next();
        first.ok_or(CatalogError::Run(gone))
    }

    /// The metadata of a new table, with its location chosen.
    async fn make_table(
        &self,
        warehouse: &Warehouse,
        new: NewTable,
    ) -> Result<(Target, TableMetadata), CatalogError> {
        let target = self.core.target(warehouse, &new.identifier).await?;
        let (uuid, location) = target.home(&new.identifier, new.location.as_deref())?;
        let context = UpdateContext {
            now_ms: target.now.millis(),
            previous_metadata_location: None,
        };
        let create = CreateTable {
            uuid,
            location,
            schema: new.schema,
            partition_spec: new.partition_spec,
            write_order: new.write_order,
            properties: new.properties,
            format_version: None,
        };
        let metadata = TableMetadata::create(create, &context)
            .map_err(|error| Refusal::invalid(error.to_string()))?;
        Ok((target, metadata))
    }
}

/// A document that can't be registered is the caller's to mend, unless the store didn't answer.
fn unusable_metadata(error: &CatalogError) -> CatalogError {
    match error {
        CatalogError::Storage {
            message,
            may_pass: false,
        } => Refusal::invalid(format!("`metadata-location`: {message}")).into(),
        other => other.clone(),
    }
}
