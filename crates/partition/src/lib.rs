//! Partitions: the serial unit of the catalog. Commands that wait for the same partitions run in
//! one SQL transaction, one after the other, each in its own overlay; all are answered after its
//! COMMIT.
//!
//! This crate knows no kind of catalog object and no SQL: commands bring the rules, the store
//! brings the rows.
//!
//! ```text
//! submit ─ lane (same partitions) ─ gates ─ begin+lock ─ read ─ apply … apply ─ write+COMMIT ─ answer
//!                                     ▲                                            │
//!                                     └── lost race: again ── unknown: ask for the commit id
//! ```
//!
//! The types that matter:
//! - [`Command`]: a pure decision over a [`View`].
//! - [`Partitions`]: runs commands in group commits, reads at latest and at revisions, follows
//!   the change feed.
//! - [`Refusal`]: a final answer that is known not to have changed anything.
//! - [`RunError`]: everything else, told by what the caller can do.

mod answer;
mod attempt;
mod cache;
mod command;
mod config;
mod error;
mod executor;
mod feed;
mod gate;
mod layers;
mod look;
mod outcome;
mod read;
mod refusal;
mod retention;
mod view;
mod writes;

pub use answer::{Accepted, RecordedAnswer, RecordedOperation};
pub use command::{Command, Context, Stop};
pub use config::Config;
pub use error::RunError;
pub use executor::{OperationKey, Partitions, Request};
pub use feed::{Cursor, FeedPage};
pub use layers::{Layers, Listing, Merged, Name, decide};
pub use refusal::{Reason, Refusal, Subject};
pub use retention::Pruned;
pub use view::View;
