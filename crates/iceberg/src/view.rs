//! Views: their document, and the rules of a commit to one.

mod apply;
mod metadata;
mod update;
mod version;

pub use apply::{CreateView, apply_view};
pub use metadata::{ViewHistoryEntry, ViewMetadata};
pub use update::{ViewRequirement, ViewUpdate};
pub use version::ViewVersion;
