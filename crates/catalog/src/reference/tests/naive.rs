//! The naive implementation: a graph of commits, each with a full copy of its map.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_store::{BranchId, BranchState};

use crate::reference::body::state_name;
use crate::reference::plan::{Mode, Modes, Outcome};

/// What stands under each name: which thing, and its content.
pub(super) type Map = BTreeMap<String, (i64, String)>;

/// A commit of the naive graph.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) map: Map,
    pub(super) parents: Vec<usize>,
    /// What the store calls this state.
    pub(super) state: BranchState,
}

/// What a merge comes to.
pub(super) struct Expected {
    pub(super) map: Map,
    pub(super) bases: BTreeSet<String>,
    pub(super) outcomes: BTreeMap<String, Outcome>,
}

#[derive(Default)]
pub(super) struct Naive {
    pub(super) nodes: Vec<Node>,
    pub(super) branches: BTreeMap<String, (BranchId, usize)>,
    pub(super) tags: BTreeMap<String, usize>,
}

impl Naive {
    pub(super) fn add(&mut self, map: Map, parents: Vec<usize>, state: BranchState) -> usize {
        self.nodes.push(Node {
            map,
            parents,
            state,
        });
        self.nodes.len() - 1
    }

    pub(super) fn ancestors(&self, node: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::from([node]);
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            for parent in &self.nodes[node].parents {
                if found.insert(*parent) {
                    open.push(*parent);
                }
            }
        }
        found
    }

    pub(super) fn bases(&self, source: usize, target: usize) -> Vec<usize> {
        let (of_source, of_target) = (self.ancestors(source), self.ancestors(target));
        let common: BTreeSet<usize> = of_source.intersection(&of_target).copied().collect();
        let is_best = |node: &&usize| {
            let mut others = common.iter().filter(|other| other != node);
            !others.any(|other| self.ancestors(*other).contains(node))
        };
        let mut best: Vec<usize> = common.iter().filter(is_best).copied().collect();
        // Whichever comes first names what is left in neither side.
        let age = |node: &usize| {
            let BranchState { branch, revision } = self.nodes[*node].state;
            std::cmp::Reverse((revision, branch))
        };
        best.sort_by_key(age);
        best
    }

    /// Where a thing stands in a map, and as what.
    pub(super) fn thing(map: &Map, object: i64) -> Option<(String, String)> {
        let found = map.iter().find(|(_, (one, _))| *one == object);
        found.map(|(name, (_, body))| (name.clone(), body.clone()))
    }

    /// `None` if it is refused.
    pub(super) fn merge(&self, source: usize, target: usize, modes: &Modes) -> Option<Expected> {
        let bases = self.bases(source, target);
        let base_names = bases.iter().map(|node| state_name(self.nodes[*node].state));
        let (s, t) = (&self.nodes[source].map, &self.nodes[target].map);
        let maps: Vec<&Map> = bases.iter().map(|node| &self.nodes[*node].map).collect();
        let all = maps.iter().copied().chain([s, t]).flat_map(Map::values);
        let objects: BTreeSet<i64> = all.map(|(object, _)| *object).collect();
        let mut outcomes = BTreeMap::new();
        let (mut gone, mut come) = (Vec::new(), Vec::new());
        for object in objects {
            let of_bases: Vec<_> = maps.iter().map(|map| Naive::thing(map, object)).collect();
            let agreed = of_bases.windows(2).all(|pair| pair[0] == pair[1]);
            let base = of_bases[0].clone();
            let (in_s, in_t) = (Naive::thing(s, object), Naive::thing(t, object));
            if agreed && in_s == base {
                continue;
            }
            let everywhere = of_bases.iter().chain([&in_s, &in_t]).flatten();
            let wanted: BTreeSet<Mode> = everywhere
                .filter_map(|(name, _)| modes.tables.get(name).copied())
                .collect();
            if wanted.len() > 1 {
                return None;
            }
            let mode = wanted.into_iter().next().unwrap_or(modes.default);
            let anywhere = in_s.iter().chain(&in_t).chain(of_bases.iter().flatten());
            let (name, _) = anywhere.into_iter().next().unwrap().clone();
            let outcome = if mode == Mode::Drop {
                Outcome::Dropped
            } else if agreed && in_t == base {
                Outcome::Taken
            } else if in_s == in_t {
                Outcome::Identical
            } else if mode == Mode::Force {
                Outcome::Forced
            } else {
                return None;
            };
            if matches!(outcome, Outcome::Taken | Outcome::Forced) {
                gone.extend(in_t.map(|(name, _)| name));
                come.extend(in_s.map(|(name, body)| (name, object, body, mode)));
            }
            outcomes.insert(name, outcome);
        }
        let mut map = t.clone();
        for name in gone {
            map.remove(&name);
        }
        for (name, object, body, mode) in come {
            if map.contains_key(&name) {
                if mode != Mode::Force {
                    return None;
                }
                outcomes.insert(name.clone(), Outcome::Forced);
            }
            map.insert(name, (object, body));
        }
        Some(Expected {
            map,
            bases: base_names.collect(),
            outcomes,
        })
    }
}
