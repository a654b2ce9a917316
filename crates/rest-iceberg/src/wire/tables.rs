//! The shapes of tables (specification: `CreateTableRequest`, `CommitTableRequest`,
//! `CommitTransactionRequest`, `RegisterTableRequest`, `LoadCredentialsResponse`).

use anabranch_catalog::Properties;
use anabranch_iceberg::{PartitionSpec, Schema, SortOrder, TableRequirement, TableUpdate};
use serde::{Deserialize, Serialize};

use super::identifiers::WireIdentifier;
use crate::answer::{Snapshots, StorageCredential};
use crate::error::Problem;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct CreateTableRequest {
    pub(crate) name: String,
    pub(crate) location: Option<String>,
    pub(crate) schema: Schema,
    pub(crate) partition_spec: Option<PartitionSpec>,
    pub(crate) write_order: Option<SortOrder>,
    pub(crate) stage_create: Option<bool>,
    pub(crate) properties: Option<Properties>,
}

/// Requirements and updates have to be there, if empty: a commit whose requirements are lost to a
/// misspelling must not run without them.
#[derive(Debug, Deserialize)]
pub(crate) struct CommitTableRequest {
    pub(crate) identifier: Option<WireIdentifier>,
    pub(crate) requirements: Vec<TableRequirement>,
    pub(crate) updates: Vec<TableUpdate>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TransactionChange {
    pub(crate) identifier: WireIdentifier,
    pub(crate) requirements: Vec<TableRequirement>,
    pub(crate) updates: Vec<TableUpdate>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct CommitTransactionRequest {
    pub(crate) table_changes: Vec<TransactionChange>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct RegisterTableRequest {
    pub(crate) name: String,
    pub(crate) metadata_location: String,
    pub(crate) overwrite: Option<bool>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct LoadCredentialsResponse {
    pub(crate) storage_credentials: Vec<StorageCredential>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct LoadTableQuery {
    snapshots: Option<String>,
}

impl LoadTableQuery {
    pub(crate) fn snapshots(&self) -> Result<Snapshots, Problem> {
        match self.snapshots.as_deref() {
            None | Some("all") => Ok(Snapshots::All),
            Some("refs") => Ok(Snapshots::Refs),
            Some(_) => Err(Problem::invalid("`snapshots` is `all` or `refs`")),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DropTableQuery {
    purge_requested: Option<String>,
}

impl DropTableQuery {
    /// Absent is false: data is removed only for who says so. PyIceberg writes `True`.
    pub(crate) fn purge(&self) -> Result<bool, Problem> {
        let text = self.purge_requested.as_deref().unwrap_or("false");
        match text.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(Problem::invalid("`purgeRequested` is `true` or `false`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purge(text: Option<&str>) -> Result<bool, u16> {
        let query = DropTableQuery {
            purge_requested: text.map(str::to_owned),
        };
        query.purge().map_err(|problem| problem.status.as_u16())
    }

    #[test]
    fn data_is_purged_only_if_that_is_said() {
        assert_eq!(purge(None), Ok(false));
        assert_eq!(purge(Some("False")), Ok(false));
        assert_eq!(purge(Some("True")), Ok(true));
        assert_eq!(purge(Some("true")), Ok(true));
        assert_eq!(purge(Some("")), Err(400));
        assert_eq!(purge(Some("1")), Err(400));
    }
}
