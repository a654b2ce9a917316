//! What the entries of references and merges hold, and how both are keyed.

use anabranch_store::{BranchId, BranchState, Class, Key, PartitionId, Revision};
use serde::{Deserialize, Serialize};

use super::past::Past;
use super::plan::Place;

/// A branch or a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ReferenceKind {
    /// It can be written.
    Branch,
    /// It never changes.
    Tag,
}

/// The entry of a branch or tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReferenceBody {
    /// The branch, or the one that a tag's state belongs to.
    pub(crate) branch: BranchId,
    /// The revision of a tag's state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revision: Option<Revision>,
    /// Whether it can't be deleted.
    #[serde(default)]
    pub(crate) protected: bool,
    /// Milliseconds since 1970 by the store's clock.
    pub(crate) created_at: i64,
    pub(crate) created_by: String,
}

/// A reference by its kind and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReferenceName {
    /// Branch or tag.
    #[serde(rename = "type")]
    pub kind: ReferenceKind,
    /// Its name.
    pub name: String,
}

/// The entry of a merge into a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MergeBody {
    /// As the merge named it.
    pub(crate) source: ReferenceName,
    /// The state that was merged.
    pub(crate) state: BranchState,
    /// What it was compared with.
    pub(crate) bases: Vec<BranchState>,
    /// All that is past of the target since.
    pub(crate) past: Past,
    /// Names whose changes were left out: a later merge looks at them again.
    pub(crate) left_out: Vec<Place>,
    /// Who merged.
    pub(crate) by: String,
    /// What the merge changed, as clients write it.
    pub(crate) tables: Vec<String>,
}

/// Where a branch comes from, in its own map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ForkBody {
    /// As its creation named it.
    pub(crate) source: ReferenceName,
    /// The state that it started from.
    pub(crate) state: BranchState,
    /// Who made it.
    pub(crate) by: String,
}

/// The name of the branch that every database has.
pub const MAIN: &str = "main";

/// Where a reference stands.
pub(crate) fn reference_key(database: PartitionId, name: &str) -> Key {
    Key {
        partition: database,
        branch: BranchId::MAIN,
        scope: String::new(),
        class: Class::Reference,
        name: name.to_owned(),
    }
}

/// Where a merge stands among those into its branch: the last one comes first.
pub(crate) fn merge_key(database: PartitionId, branch: BranchId, revision: Revision) -> Key {
    Key {
        partition: database,
        branch,
        scope: String::new(),
        class: Class::Merge,
        name: format!("{:016x}", !revision.0 & i64::MAX),
    }
}

/// Where a branch says where it comes from. The name is the branch's own, so that none is inherited.
pub(crate) fn fork_key(database: PartitionId, branch: BranchId) -> Key {
    Key {
        partition: database,
        branch,
        scope: String::new(),
        class: Class::Fork,
        name: format!("{:x}", branch.0),
    }
}

/// The opaque name of a state, in lower-case hexadecimal.
pub fn state_name(state: BranchState) -> String {
    format!("{:x}-{:x}", state.branch.0, state.revision.0)
}

/// The state that an opaque name names; `None` if it is none.
pub fn named_state(name: &str) -> Option<BranchState> {
    let (branch, revision) = name.split_once('-')?;
    let number = |text: &str| match i64::from_str_radix(text, 16) {
        Ok(number) if number >= 0 && format!("{number:x}") == text => Some(number),
        _ => None,
    };
    Some(BranchState {
        branch: BranchId(number(branch)?),
        revision: Revision(number(revision)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_one_name() {
        let state = BranchState {
            branch: BranchId(26),
            revision: Revision(255),
        };
        assert_eq!(state_name(state), "1a-ff");
        assert_eq!(named_state("1a-ff"), Some(state));
        for other in [
            "1A-ff", "01a-ff", "1a", "1a-", "-1a-ff", "1a-ff-0", "+1a-ff", "x-y",
        ] {
            assert_eq!(named_state(other), None, "{other}");
        }
    }

    #[test]
    fn the_last_merge_comes_first() {
        let key = |revision| merge_key(PartitionId(1), BranchId::MAIN, Revision(revision)).name;
        assert!(key(300) < key(200) && key(200) < key(1));
    }
}
