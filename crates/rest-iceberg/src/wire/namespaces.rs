//! The shapes of namespaces (specification: `CreateNamespaceRequest`, `GetNamespaceResponse`,
//! `UpdateNamespacePropertiesRequest` and `…Response`).

use anabranch_catalog::{NamespaceInfo, Properties, PropertiesChanged};
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize)]
pub(crate) struct CreateNamespaceRequest {
    pub(crate) namespace: Vec<String>,
    pub(crate) properties: Option<Properties>,
}

#[derive(Debug, Serialize)]
pub(crate) struct NamespaceResponse {
    namespace: Vec<String>,
    properties: Properties,
}

impl From<NamespaceInfo> for NamespaceResponse {
    fn from(info: NamespaceInfo) -> NamespaceResponse {
        NamespaceResponse {
            namespace: info.namespace.levels().to_vec(),
            properties: info.properties,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct UpdatePropertiesRequest {
    pub(crate) removals: Option<Vec<String>>,
    pub(crate) updates: Option<Properties>,
}

#[derive(Debug, Serialize)]
pub(crate) struct UpdatePropertiesResponse {
    updated: Vec<String>,
    removed: Vec<String>,
    missing: Vec<String>,
}

impl From<PropertiesChanged> for UpdatePropertiesResponse {
    fn from(changed: PropertiesChanged) -> UpdatePropertiesResponse {
        UpdatePropertiesResponse {
            updated: changed.updated,
            removed: changed.removed,
            missing: changed.missing,
        }
    }
}
