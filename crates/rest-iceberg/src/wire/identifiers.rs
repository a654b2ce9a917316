//! Tables and views by name (specification: `TableIdentifier`, `RenameTableRequest`).

use anabranch_catalog::{Identifier, Namespace};
use serde::{Deserialize, Serialize};

use crate::error::Problem;

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct WireIdentifier {
    pub(crate) namespace: Vec<String>,
    pub(crate) name: String,
}

impl WireIdentifier {
    pub(crate) fn checked(self) -> Result<Identifier, Problem> {
        let namespace = Namespace::new(self.namespace)?;
        Ok(Identifier::new(namespace, self.name)?)
    }
}

impl From<Identifier> for WireIdentifier {
    fn from(identifier: Identifier) -> WireIdentifier {
        WireIdentifier {
            namespace: identifier.namespace.levels().to_vec(),
            name: identifier.name,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct RenameRequest {
    pub(crate) source: WireIdentifier,
    pub(crate) destination: WireIdentifier,
}
