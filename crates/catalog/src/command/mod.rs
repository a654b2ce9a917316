//! The commands: one file each, pure decisions over a view.

mod commit_pointers;
mod create_container;
mod create_nested;
mod create_reference;
mod delete_reference;
mod drop_container;
mod drop_nested;
mod drop_pointer;
mod mark_purge;
mod merge_branch;
mod protect_reference;
mod refuse;
mod release_states;
mod rename_container;
mod rename_pointer;
mod set_properties;

pub(crate) use commit_pointers::{Becomes, CommitPointers, Expected, PointerChange, Published};
pub(crate) use create_container::CreateContainer;
pub(crate) use create_nested::CreateNested;
pub(crate) use create_reference::CreateReference;
pub(crate) use delete_reference::DeleteReference;
pub(crate) use drop_container::DropContainer;
pub(crate) use drop_nested::DropNested;
pub(crate) use drop_pointer::{DropPointer, PURGE_TASK, Purge};
pub(crate) use mark_purge::MarkPurge;
pub(crate) use merge_branch::MergeBranch;
pub use merge_branch::{Merged, MergedTable};
pub(crate) use protect_reference::ProtectReference;
pub(crate) use refuse::Refuse;
pub(crate) use release_states::ReleaseStates;
pub(crate) use rename_container::RenameContainer;
pub(crate) use rename_pointer::RenamePointer;
pub use set_properties::PropertiesChanged;
pub(crate) use set_properties::SetProperties;
