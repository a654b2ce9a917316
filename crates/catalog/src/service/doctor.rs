//! The catalog's own invariants, on top of the store's.

use anabranch_partition::RunError;
use anabranch_store::Violation;
use futures::{FutureExt, StreamExt};

use crate::error::CatalogError;
use crate::service::document::Content;
use crate::service::inventory::Held;
use crate::service::{Catalog, Page};

/// Documents read side by side, at most.
const CHECKS_AT_ONCE: usize = 16;

impl Catalog {
    /// Checks the store; with `files` also that every metadata document is there and says what
    /// the store says. Each violation is named.
    pub async fn doctor(&self, files: bool) -> Result<Vec<Violation>, CatalogError> {
        let audit = self.core.partitions.store().audit().await;
        let mut violations = audit.map_err(|error| RunError::from_store(&error))?;
        if !files {
            return Ok(violations);
        }
        for metalake in self.list_metalakes().await? {
            for catalog in self.list_catalogs(&metalake, &Page::default()).await?.items {
                for database in self.core.databases(Some(catalog.id)).await? {
                    let standing = self.core.standing_pointers(database).await?;
                    let checks = standing
                        .iter()
                        .map(|held| self.check_document(held, &catalog.settings).boxed());
                    let checks: Vec<_> = checks.collect();
                    let found: Vec<_> = futures::stream::iter(checks)
                        .buffer_unordered(CHECKS_AT_ONCE)
                        .collect()
                        .await;
                    violations.extend(found.into_iter().flatten());
                }
            }
        }
        Ok(violations)
    }

    async fn check_document(
        &self,
        held: &Held,
        settings: &anabranch_files::StorageSettings,
    ) -> Option<Violation> {
        let violation = |invariant, detail: String| {
            Some(Violation {
                invariant,
                detail: format!("object {}: {detail}", held.object.0),
            })
        };
        let location = &held.pointer.metadata_location;
        let document = match self.core.stored_document(location, settings).await {
            Ok(document) => document,
            Err(error) => return violation("metadata-document-is-readable", error.to_string()),
        };
        let (uuid, own) = match document.content(held.kind) {
            Ok(Content::Table(metadata)) => (metadata.uuid(), metadata.location().to_owned()),
            Ok(Content::View(metadata)) => (metadata.uuid(), metadata.location().to_owned()),
            Err(error) => return violation("metadata-document-is-valid", error.to_string()),
        };
        if uuid != held.pointer.uuid || own != held.pointer.location {
            let detail = format!("{location} is the document of another table or place");
            return violation("metadata-document-is-the-tables-own", detail);
        }
        None
    }
}
