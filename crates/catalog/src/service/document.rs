//! Metadata documents: the bytes as they lie in the store, parsed when somebody looks inside.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use anabranch_files::{LoadError, Location, StorageSettings};
use anabranch_iceberg::{MetadataError, TableMetadata, ViewMetadata};
use anabranch_partition::Refusal;
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::error::CatalogError;
use crate::name::Namespace;
use crate::reference::name::split_selector;
use crate::service::{Core, PointerKind};

/// What a document says.
#[derive(Clone, Debug)]
pub enum Content {
    /// Of a table.
    Table(Arc<TableMetadata>),
    /// Of a view.
    View(Arc<ViewMetadata>),
}

/// A metadata document. It never changes.
#[derive(Debug)]
pub struct Document {
    bytes: Bytes,
    content: OnceLock<Content>,
    refs_only: OnceLock<Bytes>,
    shown: [OnceLock<Bytes>; 4],
}

/// The property by which clients know that a table's files aren't theirs to delete.
const GC_ENABLED: &str = "gc.enabled";
/// The property by which clients delete metadata files that fall out of the log. Others may still
/// need them; the sweep removes those that nobody does.
const DELETE_AFTER_COMMIT: &str = "write.metadata.delete-after-commit.enabled";

/// The text with properties that keep clients from deleting what others need.
fn protected(bytes: &[u8], is_shared: bool) -> Result<Bytes, CatalogError> {
    // Everything else goes out as it is written there.
    let mut members: BTreeMap<String, Box<RawValue>> =
        serde_json::from_slice(bytes).map_err(CatalogError::damaged)?;
    let properties = members.get("properties").map(|raw| raw.get());
    let properties = properties.filter(|text| *text != "null").unwrap_or("{}");
    let mut properties: BTreeMap<String, String> =
        serde_json::from_str(properties).map_err(CatalogError::damaged)?;
    if is_shared {
        properties.insert(GC_ENABLED.to_owned(), "false".to_owned());
    }
    if let Some(deletes) = properties.get_mut(DELETE_AFTER_COMMIT) {
        "false".clone_into(deletes);
    }
    let properties = serde_json::value::to_raw_value(&properties);
    let properties = properties.map_err(CatalogError::damaged)?;
    members.insert("properties".to_owned(), properties);
    let bytes = serde_json::to_vec(&members).map_err(CatalogError::damaged)?;
    Ok(bytes.into())
}

/// The text of a view with another database in the default namespaces of its versions.
fn seen(bytes: &[u8], plain: &str, seen_at: &str) -> Result<Bytes, CatalogError> {
    const VERSIONS: &str = "versions";
    const DEFAULT_NAMESPACE: &str = "default-namespace";
    type Members = BTreeMap<String, Box<RawValue>>;
    let mut members: Members = serde_json::from_slice(bytes).map_err(CatalogError::damaged)?;
    let versions = members.get(VERSIONS).map_or("[]", |raw| raw.get());
    let mut versions: Vec<Members> =
        serde_json::from_str(versions).map_err(CatalogError::damaged)?;
    for version in &mut versions {
        let levels = version.get(DEFAULT_NAMESPACE).map_or("[]", |raw| raw.get());
        let mut levels: Vec<String> =
            serde_json::from_str(levels).map_err(CatalogError::damaged)?;
        if let Some(first) = levels.first_mut().filter(|first| *first == plain) {
            seen_at.clone_into(first);
            let levels = serde_json::value::to_raw_value(&levels);
            let levels = levels.map_err(CatalogError::damaged)?;
            version.insert(DEFAULT_NAMESPACE.to_owned(), levels);
        }
    }
    let versions = serde_json::value::to_raw_value(&versions).map_err(CatalogError::damaged)?;
    members.insert(VERSIONS.to_owned(), versions);
    let bytes = serde_json::to_vec(&members).map_err(CatalogError::damaged)?;
    Ok(bytes.into())
}

impl Document {
    fn unread(bytes: Bytes) -> Document {
        Document {
            bytes,
            content: OnceLock::new(),
            refs_only: OnceLock::new(),
            shown: Default::default(),
        }
    }

    pub(crate) fn of(bytes: Bytes, content: Content) -> Document {
        Document {
            bytes,
            content: OnceLock::from(content),
            refs_only: OnceLock::new(),
            shown: Default::default(),
        }
    }

    /// The JSON text.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// What it says, as the metadata of a table or a view; parsed at most once.
    pub fn content(&self, kind: PointerKind) -> Result<Content, MetadataError> {
        if let Some(content) = self.content.get() {
            return Ok(content.clone());
        }
        let content = match kind {
            PointerKind::Table => Content::Table(Arc::new(TableMetadata::from_json(&self.bytes)?)),
            PointerKind::View => Content::View(Arc::new(ViewMetadata::from_json(&self.bytes)?)),
        };
        Ok(self.content.get_or_init(|| content).clone())
    }

    /// The JSON text with only those snapshots that a branch or tag points at; made at most once,
    /// so that a load costs the same however many there are.
    pub fn refs_only(&self) -> Result<Bytes, CatalogError> {
        if let Some(bytes) = self.refs_only.get() {
            return Ok(bytes.clone());
        }
        let slim = self.table()?.with_snapshots_refs_only();
        let made = || Bytes::from(slim.to_json());
        Ok(self.refs_only.get_or_init(made).clone())
    }

    /// The JSON text as clients get it: with properties that keep them from deleting files which
    /// other branches, tags or earlier states need. What is stored stays as it is.
    pub fn shown(&self, is_shared: bool, refs_only: bool) -> Result<Bytes, CatalogError> {
        let place = &self.shown[2 * usize::from(is_shared) + usize::from(refs_only)];
        if let Some(bytes) = place.get() {
            return Ok(bytes.clone());
        }
        let bytes = match refs_only {
            true => self.refs_only()?,
            false => self.bytes.clone(),
        };
        let text = String::from_utf8_lossy(&bytes);
        let made = match is_shared || text.contains(DELETE_AFTER_COMMIT) {
            true => protected(&bytes, is_shared)?,
            false => bytes,
        };
        Ok(place.get_or_init(|| made).clone())
    }

    /// The JSON text of a view as it is seen in a namespace: on a branch, names that it doesn't
    /// qualify are looked for there.
    pub fn view_seen_in(&self, namespace: &Namespace) -> Result<Bytes, CatalogError> {
        let seen_at = namespace.database();
        match split_selector(seen_at)? {
            (plain, Some(_)) => seen(&self.bytes, plain, seen_at),
            _ => Ok(self.bytes.clone()),
        }
    }

    /// As the metadata of a table.
    pub fn table(&self) -> Result<Arc<TableMetadata>, CatalogError> {
        match self.content(PointerKind::Table) {
            Ok(Content::Table(metadata)) => Ok(metadata),
            Ok(Content::View(_)) => Err(CatalogError::damaged("it is the metadata of a view")),
            Err(error) => Err(CatalogError::damaged(error)),
        }
    }
}

impl Core {
    /// The document at a location, from memory or from the files.
    pub(crate) async fn document(
        &self,
        location: &str,
        settings: &StorageSettings,
    ) -> Result<Arc<Document>, CatalogError> {
        let location = Location::parse(location)
            .map_err(|error| Refusal::invalid(format!("`metadata-location`: {error}")))?;
        let unread = |bytes: &Bytes| Ok::<_, MetadataError>(Document::unread(bytes.clone()));
        let loaded = self
            .documents
            .get_or_load(&location, settings, unread)
            .await;
        loaded.map_err(|error| match error.as_ref() {
            LoadError::File(error) => CatalogError::unreadable(error),
            LoadError::Parse(error) => CatalogError::damaged(error),
        })
    }

    /// The document at a location as the files have it now, past the memory.
    pub(crate) async fn stored_document(
        &self,
        location: &str,
        settings: &StorageSettings,
    ) -> Result<Document, CatalogError> {
        let location = Location::parse(location)
            .map_err(|error| Refusal::invalid(format!("`metadata-location`: {error}")))?;
        let files = self.files.with_settings(settings);
        let bytes = files.get(&location, self.limits.document_bytes).await;
        let bytes = bytes.map_err(|error| CatalogError::unreadable(&error))?;
        Ok(Document::unread(bytes))
    }
}
