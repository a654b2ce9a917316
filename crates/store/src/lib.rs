//! The store: engines that keep partitions, versioned entries, the change log, operation records
//! and tasks in an SQL database.
//!
//! An engine knows rows and transactions; it knows no rule of the catalog. SQL text lives here and
//! only here. Every engine passes one behavioural suite (`suite`, feature `testing`), bare and
//! under the fault decorator (`fault`).
//!
//! Where what is: `sqlite` and `postgres` are the engines, each with its own SQL; `segment` turns
//! listings into stretches of the key order; `audit` holds the invariants, in SQL for both; `schema`
//! decides about versions; `migrations/` has the schema itself, one numbered file per step, never
//! changed once released. Names hold no NUL character: PostgreSQL refuses it.
//!
//! The types that matter:
//! - [`Store`]: one engine; opens transactions and answers reads from one database snapshot.
//! - [`Transaction`]: partitions held by this server until COMMIT or ROLLBACK.
//! - [`WriteSet`]: everything that one SQL transaction writes, decided before it is sent.
//! - [`Key`] and [`Entry`]: the address and one version of a catalog row.
//! - [`StoreError`]: says whether the effect is known not to have been applied, or unknown.

mod audit;
mod branch;
mod codec;
mod entry;
mod error;
#[cfg(feature = "testing")]
pub mod fault;
mod interface;
mod open;
mod operation;
mod partition;
mod postgres;
mod read;
mod revision;
mod schema;
mod segment;
mod sqlite;
#[cfg(feature = "testing")]
pub mod suite;
mod task;
#[cfg(feature = "testing")]
pub mod testing;
mod write;

pub use branch::{BranchRow, BranchState, Head, Pin};
pub use entry::{BranchId, Class, Entry, Key, Kind, ObjectId};
pub use error::{ConflictReason, StoreError};
pub use interface::{Store, Transaction, Violation};
pub use open::{OpenOptions, open};
pub use operation::{OperationRecord, OperationState};
pub use partition::{PartitionId, PartitionKind, PartitionRow, PartitionState};
pub use postgres::{LockMode, PostgresOptions, PostgresStore};
pub use read::{Answer, At, Feed, FeedPosition, Leaf, Path, Read, Resolved};
pub use revision::{CommitId, Revision, StoreTime};
pub use sqlite::{SqliteOptions, SqliteStore};
pub use task::{Task, TaskId};
pub use write::{Action, Change, WriteSet};
