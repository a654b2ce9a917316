//! Iceberg table and view metadata: what a catalog reads, checks, changes and writes.
//!
//! **What it is.** The documents of format versions 1, 2 and 3 as types, and the rules of a commit as pure
//! functions over them. Whatever another writer put into a document survives a load, a commit and a store: unknown
//! fields stay where they were, unknown types and transforms are kept as written, snapshots and statistics keep
//! their text.
//!
//! **What it isn't.** No I/O, no clock, no randomness: times come in through [`UpdateContext`], uuids through
//! [`CreateTable`] and the updates. It reads no data files and knows no storage; where a table may live and who may
//! change it is decided by others.
//!
//! The types that matter:
//!
//! - [`TableMetadata`]: a table's document; [`TableMetadata::from_json`], [`TableMetadata::to_json`].
//! - [`TableUpdate`] and [`TableRequirement`]: what a commit does and what it depends on; [`apply`] runs the former,
//!   [`TableRequirement::check`] the latter.
//! - [`UpdateError`]: why a commit is refused, by what its sender can do about it.
//! - [`CreateTable`]: a table to be made, with field ids assigned afresh.
//! - [`ViewMetadata`], [`ViewUpdate`], [`apply_view`]: the same for views.
//!
//! Rules cited as "reference implementation" are the behaviour of Apache Iceberg's Java library, which clients rely
//! on; the wire names are those of the Iceberg REST specification.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod apply;
mod create;
mod error;
mod fresh_ids;
mod json;
mod logs;
mod next_id;
mod partition;
mod raw_object;
mod requirement;
mod schema;
mod schema_rules;
mod snapshot;
mod sort;
mod statistics;
mod table;
mod table_json;
mod transform_rules;
mod update;
mod view;

pub use apply::{UpdateContext, apply};
pub use create::CreateTable;
pub use error::{MetadataError, UpdateError};
pub use json::RawJson;
pub use logs::{MetadataLogEntry, SnapshotLogEntry};
pub use partition::{PartitionField, PartitionSpec};
pub use requirement::TableRequirement;
pub use schema::{Field, ListType, MapType, Schema, StructType, Type};
pub use snapshot::{MAIN_BRANCH, RefKind, Snapshot, SnapshotRef};
pub use sort::{SortField, SortOrder};
pub use statistics::{EncryptedKey, PartitionStatisticsFile, StatisticsFile};
pub use table::TableMetadata;
pub use update::{TableUpdate, created_uuid, snapshot_ids_added};
pub use view::{
    CreateView, ViewHistoryEntry, ViewMetadata, ViewRequirement, ViewUpdate, ViewVersion,
    apply_view,
};

/// The newest table format version that this crate reads and writes.
pub const MAX_FORMAT_VERSION: u8 = 3;

/// The table format version that a new table gets when its creator names none.
pub const DEFAULT_FORMAT_VERSION: u8 = 2;
