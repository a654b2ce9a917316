//! What entries hold, as JSON in the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_store::Entry;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::CatalogError;

/// Properties of a container.
pub type Properties = BTreeMap<String, String>;

/// A metalake.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetalakeBody {
    /// Free properties.
    #[serde(default)]
    pub properties: Properties,
}

/// A catalog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogBody {
    /// Where tables go that name no location of their own.
    pub location: String,
    /// Storage settings and free properties.
    #[serde(default)]
    pub properties: Properties,
}

/// A database or a nested namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceBody {
    /// Free properties; `location` is where tables go that name none.
    #[serde(default)]
    pub properties: Properties,
}

/// An Iceberg table or view: a pointer at a metadata document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PointerBody {
    /// The Iceberg uuid.
    pub uuid: Uuid,
    /// Where the current metadata document lies.
    pub metadata_location: String,
    /// The table's or view's own location.
    pub location: String,
}

/// A body as the store keeps it.
pub(crate) fn write<T: Serialize>(body: &T) -> Arc<str> {
    // Maps with string keys and plain fields always have a JSON form.
    serde_json::to_string(body).unwrap_or_default().into()
}

/// A body read back; what can't be read is damage that `doctor` names.
pub(crate) fn read<T: DeserializeOwned>(entry: &Entry) -> Result<T, CatalogError> {
    serde_json::from_str(&entry.body).map_err(|error| {
        tracing::error!(object = entry.object.0, %error, "the body of an entry can't be read");
        CatalogError::Run(anabranch_partition::RunError::Failed)
    })
}
