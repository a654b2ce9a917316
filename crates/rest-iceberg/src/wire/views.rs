//! The shapes of views (specification: `CreateViewRequest`, `CommitViewRequest`,
//! `RegisterViewRequest`, `LoadViewResult`).

use std::collections::BTreeMap;

use anabranch_catalog::Properties;
use anabranch_iceberg::{Schema, ViewRequirement, ViewUpdate, ViewVersion};
use serde::{Deserialize, Serialize};

use super::identifiers::WireIdentifier;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct CreateViewRequest {
    pub(crate) name: String,
    pub(crate) location: Option<String>,
    pub(crate) schema: Schema,
    pub(crate) view_version: ViewVersion,
    pub(crate) properties: Option<Properties>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CommitViewRequest {
    pub(crate) identifier: Option<WireIdentifier>,
    pub(crate) requirements: Option<Vec<ViewRequirement>>,
    pub(crate) updates: Vec<ViewUpdate>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct RegisterViewRequest {
    pub(crate) name: String,
    pub(crate) metadata_location: String,
}

/// What an answer has besides the metadata.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ViewAccess {
    pub(crate) config: BTreeMap<String, String>,
}
