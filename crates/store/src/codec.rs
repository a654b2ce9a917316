//! Stored numbers back into the enums that they came from.

use std::fmt::Display;

use crate::branch::BranchState;
use crate::entry::{BranchId, Class, Kind};
use crate::error::StoreError;
use crate::operation::OperationState;
use crate::partition::PartitionState;
use crate::revision::Revision;
use crate::write::Action;

/// A row that this program can't read: written by a newer one, or damaged.
pub(crate) fn unreadable(what: &str, found: impl Display) -> StoreError {
    StoreError::Failed {
        detail: format!("a row holds {what} {found}, which this program doesn't know"),
    }
}

pub(crate) fn class(number: i64) -> Result<Class, StoreError> {
    match number {
        1 => Ok(Class::Container),
        2 => Ok(Class::Table),
        3 => Ok(Class::Purge),
        4 => Ok(Class::Reference),
        5 => Ok(Class::Merge),
        6 => Ok(Class::Fork),
        other => Err(unreadable("class", other)),
    }
}

pub(crate) fn kind(number: i64) -> Result<Kind, StoreError> {
    match number {
        1 => Ok(Kind::Metalake),
        2 => Ok(Kind::Catalog),
        3 => Ok(Kind::Namespace),
        10 => Ok(Kind::IcebergTable),
        11 => Ok(Kind::IcebergView),
        20 => Ok(Kind::Purge),
        30 => Ok(Kind::Branch),
        31 => Ok(Kind::Tag),
        32 => Ok(Kind::Merge),
        33 => Ok(Kind::Fork),
        40 => Ok(Kind::Absent),
        other => Err(unreadable("kind", other)),
    }
}

pub(crate) fn partition_state(number: i64) -> Result<PartitionState, StoreError> {
    match number {
        1 => Ok(PartitionState::Live),
        2 => Ok(PartitionState::Dropped),
        other => Err(unreadable("partition state", other)),
    }
}

pub(crate) fn operation_state(number: i64) -> Result<OperationState, StoreError> {
    match number {
        1 => Ok(OperationState::Started),
        2 => Ok(OperationState::Done),
        other => Err(unreadable("operation state", other)),
    }
}

pub(crate) fn action(number: i64) -> Result<Action, StoreError> {
    match number {
        1 => Ok(Action::Create),
        2 => Ok(Action::Update),
        3 => Ok(Action::Drop),
        4 => Ok(Action::Rename),
        other => Err(unreadable("action", other)),
    }
}

/// `branch:revision` of each layer, with commas between.
pub(crate) fn write_lineage(lineage: &[BranchState]) -> String {
    let layers = lineage
        .iter()
        .map(|state| format!("{}:{}", state.branch.0, state.revision.0));
    layers.collect::<Vec<_>>().join(",")
}

pub(crate) fn lineage(text: &str) -> Result<Vec<BranchState>, StoreError> {
    let layer = |layer: &str| {
        let (branch, revision) = layer.split_once(':')?;
        Some(BranchState {
            branch: BranchId(branch.parse().ok()?),
            revision: Revision(revision.parse().ok()?),
        })
    };
    let layers = text.split(',').filter(|one| !one.is_empty());
    layers
        .map(|one| layer(one).ok_or_else(|| unreadable("lineage", one)))
        .collect()
}
