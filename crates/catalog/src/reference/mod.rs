//! Versioned databases: branches, tags, and merges.
//!
//! - `past`: which states are part of which others, and what two have in common.
//! - `plan`: what a merge makes of the target's map.
//! - `name`: what may name a reference.
//! - `body`: what is stored of references and merges; `find`: what stands, as commands see it.

pub(crate) mod body;
pub(crate) mod find;
pub(crate) mod name;
pub(crate) mod past;
pub(crate) mod plan;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub use body::{MAIN, ReferenceKind, ReferenceName, named_state, state_name};
pub use find::ReferenceInfo;
pub use plan::{Mode, Modes, Outcome};
