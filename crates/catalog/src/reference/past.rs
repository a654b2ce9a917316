//! What counts as the past of a state, and the states that two pasts have in common.
//!
//! A branch is a line, so all that is past of a state is, for each branch, everything up to some
//! revision of it. Forks and recorded merges add branches.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_store::{BranchId, BranchState, Revision};
use serde::{Deserialize, Serialize};

/// For each branch the last revision that counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Past(Vec<BranchState>);

impl Past {
    /// The past of a state: itself, and what its branch had joined by then.
    pub fn of(state: BranchState, joined: &Past) -> Past {
        let mut past = joined.clone();
        past.add(state);
        past
    }

    /// Both pasts.
    pub fn and(mut self, other: &Past) -> Past {
        for state in &other.0 {
            self.add(*state);
        }
        self
    }

    fn add(&mut self, state: BranchState) {
        match self.0.binary_search_by_key(&state.branch, |one| one.branch) {
            Ok(place) => {
                let known = &mut self.0[place].revision;
                *known = (*known).max(state.revision);
            }
            Err(place) => self.0.insert(place, state),
        }
    }

    /// The last revision of a branch that counts; zero if none does.
    pub fn reaches(&self, branch: BranchId) -> Revision {
        match self.0.binary_search_by_key(&branch, |one| one.branch) {
            Ok(place) => self.0[place].revision,
            Err(_) => Revision::ZERO,
        }
    }

    /// The branches in it.
    pub fn branches(&self) -> impl Iterator<Item = BranchId> {
        self.0.iter().map(|state| state.branch)
    }

    /// What it says of some branches.
    pub fn of_branches(mut self, branches: &BTreeSet<BranchId>) -> Past {
        self.0.retain(|state| branches.contains(&state.branch));
        self
    }

    /// Whether a state is part of it.
    pub fn includes(&self, state: BranchState) -> bool {
        self.reaches(state.branch) >= state.revision
    }

    /// What both have, the last state of each branch, the youngest first: among them are the best
    /// common ancestors, those that no other includes.
    pub fn common(&self, other: &Past) -> Vec<BranchState> {
        let both = self.0.iter().map(|state| BranchState {
            branch: state.branch,
            revision: state.revision.min(other.reaches(state.branch)),
        });
        let mut common: Vec<BranchState> = both
            .filter(|state| state.revision > Revision::ZERO)
            .collect();
        common.sort_by_key(|state| std::cmp::Reverse((state.revision, state.branch)));
        common
    }

    /// What of this past isn't part of any of the others: for each branch the stretch behind what
    /// all of them have.
    pub fn beyond(&self, others: &[Past]) -> BTreeMap<BranchId, (Revision, Revision)> {
        let stretch = |state: &BranchState| {
            let known = others.iter().map(|other| other.reaches(state.branch));
            let from = known.min().unwrap_or_default();
            (from < state.revision).then_some((state.branch, (from, state.revision)))
        };
        self.0.iter().filter_map(stretch).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(branch: i64, revision: i64) -> BranchState {
        BranchState {
            branch: BranchId(branch),
            revision: Revision(revision),
        }
    }

    fn past(states: &[(i64, i64)]) -> Past {
        let states = states
            .iter()
            .map(|(branch, revision)| state(*branch, *revision));
        states.fold(Past::default(), |past, state| Past::of(state, &past))
    }

    #[test]
    fn a_fork_has_its_fork_point_in_common() {
        let main = past(&[(0, 9)]);
        let fork = past(&[(1, 8), (0, 5)]);
        assert_eq!(main.common(&fork), [state(0, 5)]);
        assert!(!fork.includes(state(0, 6)));
    }

    #[test]
    fn a_merge_joins_the_source() {
        let merged = past(&[(0, 9)]).and(&past(&[(1, 8), (0, 5)]));
        let later = past(&[(1, 12), (0, 5)]);
        assert_eq!(merged.common(&later), [state(1, 8), state(0, 5)]);
        let beyond = later.beyond(&[merged]);
        assert_eq!(
            beyond,
            BTreeMap::from([(BranchId(1), (Revision(8), Revision(12)))])
        );
    }
}
