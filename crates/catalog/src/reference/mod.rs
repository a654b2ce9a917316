//! Versioned databases: branches, tags, and merges.
//!
//! - [`past`]: which states are part of which others, and what two have in common.
//! - [`plan`]: what a merge makes of the target's map.

pub mod past;
pub mod plan;
