//! Versioned databases: branches, tags, and merges.
//!
//! - `past`: which states are part of which others, and what two have in common.
//! - `sides`: two states, their best common ancestors, and what each touched since.
//! - `plan`: what a merge makes of the target's map.
//! - `diff`: what differs between two states; `log`: what happened to a branch; `shown`: what a
//!   state shows, as clients are told.
//! - `name`: what may name a reference.
//! - `body`: what is stored of references and merges; `find`: what stands, as commands see it.

pub(crate) mod body;
pub(crate) mod diff;
pub(crate) mod find;
pub(crate) mod log;
pub(crate) mod name;
pub(crate) mod past;
pub(crate) mod plan;
pub(crate) mod shown;
pub(crate) mod sides;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub use body::{MAIN, ReferenceKind, ReferenceName, named_state, state_name};
pub use diff::{Difference, TableChange, TableDifference};
pub use find::ReferenceInfo;
pub use log::{Event, LogEntry, LogSource};
pub use plan::{Mode, Modes, Outcome};
pub use shown::{ReferenceTable, Thing};
