//! The shapes of `/v1/config` (specification: `CatalogConfig`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ConfigQuery {
    pub(crate) warehouse: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct CatalogConfig {
    pub(crate) overrides: BTreeMap<&'static str, String>,
    pub(crate) defaults: BTreeMap<&'static str, String>,
    pub(crate) endpoints: Vec<&'static str>,
    pub(crate) idempotency_key_lifetime: String,
}
