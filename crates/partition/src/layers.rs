//! What a branch shows: its own entries over the states that it was forked from.
//!
//! A layer that has an entry under a key decides; one of kind [`Kind::Absent`] says that there is
//! nothing. Lower layers are states, and never change.

use std::collections::BTreeMap;

use anabranch_store::{
    BranchId, BranchRow, BranchState, Class, Entry, Key, Kind, PartitionId, Read, Revision,
};

/// Names beyond those that are wanted that are read of each layer first: so many may be hidden
/// without a second look.
const SPARE: u32 = 16;
/// Names that are read at once from a layer whose first ones didn't do, at least.
const PAGE: u32 = 256;

/// The layers of one reference, its own first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layers {
    partition: PartitionId,
    layers: Vec<Layer>,
}

/// A branch as it is now, or as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layer {
    branch: BranchId,
    at: Option<Revision>,
}

impl Layers {
    /// A branch as it is now.
    pub fn now(row: &BranchRow) -> Layers {
        Layers::new(row, None)
    }

    /// A branch as it was at a revision.
    pub fn at(row: &BranchRow, revision: Revision) -> Layers {
        Layers::new(row, Some(revision))
    }

    fn new(row: &BranchRow, at: Option<Revision>) -> Layers {
        let own = Layer {
            branch: row.branch,
            at,
        };
        let below = row.lineage.iter().map(|state| Layer {
            branch: state.branch,
            at: Some(state.revision),
        });
        Layers {
            partition: row.partition,
            layers: std::iter::once(own).chain(below).collect(),
        }
    }

    /// A branch as it is now, over its lineage.
    pub fn over(partition: PartitionId, branch: BranchId, lineage: &[BranchState]) -> Layers {
        let mut layers = Layers::below(partition, lineage);
        layers.layers.insert(0, Layer { branch, at: None });
        layers
    }

    /// One state, without what lies below it.
    pub fn only(partition: PartitionId, state: BranchState) -> Layers {
        Layers::below(partition, &[state])
    }

    pub(crate) fn partition(&self) -> PartitionId {
        self.partition
    }

    /// Each layer's number, branch, and revision if it is a state.
    pub(crate) fn places(&self) -> impl Iterator<Item = (usize, BranchId, Option<Revision>)> {
        let layers = self.layers.iter().enumerate();
        layers.map(|(number, layer)| (number, layer.branch, layer.at))
    }

    /// States over each other, the topmost first.
    pub fn below(partition: PartitionId, lineage: &[BranchState]) -> Layers {
        let below = lineage.iter().map(|state| Layer {
            branch: state.branch,
            at: Some(state.revision),
        });
        Layers {
            partition,
            layers: below.collect(),
        }
    }

    /// The reads that together say what stands under a name; [`decide`] does.
    pub fn point(&self, scope: &str, class: Class, name: &str) -> Vec<Read> {
        let one = |layer: &Layer| {
            layer.read(Read::Point(Key {
                partition: self.partition,
                branch: layer.branch,
                scope: scope.to_owned(),
                class,
                name: name.to_owned(),
            }))
        };
        self.layers.iter().map(one).collect()
    }

    /// How many names are read at once.
    fn page_size(&self, listing: &Listing, is_first: bool) -> u32 {
        match (is_first, self.layers.len()) {
            (true, 1) => listing.limit(),
            (true, _) => listing.limit().saturating_add(SPARE),
            (false, _) => listing.limit().max(PAGE),
        }
    }

    fn page(&self, layer: usize, listing: &Listing, end: Option<&Name>) -> Read {
        let Layer { branch, .. } = self.layers[layer];
        let limit = self.page_size(listing, end.is_none());
        let start = listing.after();
        let after = end.or(start.as_ref());
        let read = match listing {
            Listing::Range {
                scope,
                class,
                kinds,
                ..
            } => Read::Range {
                partition: self.partition,
                branch,
                scope: scope.clone(),
                class: *class,
                // An entry of another kind hides the names below it.
                kinds: match layer + 1 == self.layers.len() {
                    true => kinds.clone(),
                    false => Vec::new(),
                },
                after: after.map(|(.., name)| name.clone()),
                limit,
            },
            Listing::Under { scope, .. } => Read::Under {
                partition: self.partition,
                branch,
                scope: scope.clone(),
                after: after.cloned(),
                limit,
            },
        };
        self.layers[layer].read(read)
    }
}

impl Layer {
    fn read(&self, read: Read) -> Read {
        match self.at {
            Some(revision) => Read::Past(revision, Box::new(read)),
            None => read,
        }
    }
}

/// What the layers, from the top down, say together.
pub fn decide(found: impl IntoIterator<Item = Option<Entry>>) -> Option<Entry> {
    let first = found.into_iter().flatten().next();
    first.filter(|entry| entry.kind != Kind::Absent)
}

/// A place in the order of a listing.
pub type Name = (String, Class, String);

/// Which names are wanted.
#[derive(Clone, Debug)]
pub enum Listing {
    /// Names of one scope and class.
    Range {
        /// The scope.
        scope: String,
        /// The name space.
        class: Class,
        /// Only these kinds; all if empty.
        kinds: Vec<Kind>,
        /// Strictly behind this name.
        after: Option<String>,
        /// At most this many.
        limit: u32,
    },
    /// Everything in a scope and the scopes below it.
    Under {
        /// The scope.
        scope: String,
        /// Strictly behind this name.
        after: Option<Name>,
        /// At most this many.
        limit: u32,
    },
}

impl Listing {
    fn limit(&self) -> u32 {
        match self {
            Listing::Range { limit, .. } | Listing::Under { limit, .. } => *limit,
        }
    }

    fn after(&self) -> Option<Name> {
        match self {
            Listing::Range {
                scope,
                class,
                after,
                ..
            } => after
                .as_ref()
                .map(|name| (scope.clone(), *class, name.clone())),
            Listing::Under { after, .. } => after.clone(),
        }
    }

    fn covers(&self, key: &Key) -> bool {
        let is_inside = match self {
            Listing::Range { scope, class, .. } => key.scope == *scope && key.class == *class,
            Listing::Under { scope, .. } => {
                let below = key.scope.strip_prefix(scope.as_str());
                scope.is_empty()
                    || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('\u{1f}'))
            }
        };
        is_inside && self.after().is_none_or(|after| name_of(key) > after)
    }

    fn wants(&self, kind: Kind) -> bool {
        match self {
            Listing::Range { kinds, .. } => kinds.is_empty() || kinds.contains(&kind),
            Listing::Under { .. } => true,
        }
    }
}

/// A listing over layers, read page by page: asks for what it lacks until it can tell.
pub struct Merged<'a> {
    layers: &'a Layers,
    listing: Listing,
    read: Vec<Column>,
}

/// What was read of one layer.
#[derive(Default)]
struct Column {
    entries: BTreeMap<Name, (Key, Entry)>,
    /// What the layer has, or hasn't, whatever is stored.
    changed: BTreeMap<Name, (Key, Option<Entry>)>,
    /// The last name that was read.
    end: Option<Name>,
    exhausted: bool,
}

pub(crate) fn name_of(key: &Key) -> Name {
    (key.scope.clone(), key.class, key.name.clone())
}

impl<'a> Merged<'a> {
    /// Nothing is read yet.
    pub fn new(layers: &'a Layers, listing: Listing) -> Merged<'a> {
        let read = layers.layers.iter().map(|_| Column::default()).collect();
        Merged {
            layers,
            listing,
            read,
        }
    }

    /// The key has this entry in a layer, or has none there, whatever is stored.
    pub(crate) fn change(&mut self, layer: usize, key: &Key, entry: Option<Entry>) {
        if self.listing.covers(key) {
            let changed = &mut self.read[layer].changed;
            changed.insert(name_of(key), (key.clone(), entry));
        }
    }

    /// The layers' pages that are needed next, with the layer of each; nothing if it can tell.
    pub fn wanted(&self) -> Vec<(usize, Read)> {
        if self.result().is_some() {
            return Vec::new();
        }
        let edge = self.edge();
        let mut wanted = Vec::new();
        for (index, column) in self.read.iter().enumerate() {
            if !column.exhausted && column.end <= edge {
                let page = self.layers.page(index, &self.listing, column.end.as_ref());
                wanted.push((index, page));
            }
        }
        wanted
    }

    /// Takes the answer to a wanted page.
    pub fn supply(&mut self, layer: usize, page: &[(Key, Entry)]) {
        let column = &mut self.read[layer];
        let asked = self.layers.page_size(&self.listing, column.end.is_none());
        column.exhausted = page.len() < asked as usize;
        for (key, entry) in page {
            column.end = Some(name_of(key));
            let found = (key.clone(), entry.clone());
            column.entries.insert(name_of(key), found);
        }
    }

    /// Up to here every layer is known; `None` if one isn't known at all, or all to their ends.
    fn edge(&self) -> Option<Name> {
        let open = self.read.iter().filter(|column| !column.exhausted);
        open.map(|column| column.end.clone()).min().flatten()
    }

    /// The first entries of the listing, each with the key under which its layer has it; `None`
    /// while pages are wanted.
    pub fn result(&self) -> Option<Vec<(Key, Entry)>> {
        let is_complete = self.read.iter().all(|column| column.exhausted);
        let edge = self.edge();
        if !is_complete && edge.is_none() {
            return None;
        }
        let is_known = |name: &Name| is_complete || Some(name) <= edge.as_ref();
        let mut merged: BTreeMap<&Name, (&Key, &Entry)> = BTreeMap::new();
        for column in &self.read {
            for (name, (key, entry)) in &column.changed {
                if let Some(entry) = entry {
                    merged.entry(name).or_insert((key, entry));
                }
            }
            for (name, (key, entry)) in &column.entries {
                if !column.changed.contains_key(name) {
                    merged.entry(name).or_insert((key, entry));
                }
            }
        }
        let limit = self.listing.limit() as usize;
        let shown: Vec<(Key, Entry)> = merged
            .into_iter()
            .filter(|(name, _)| is_known(name))
            .filter(|(_, (_, entry))| entry.kind != Kind::Absent && self.listing.wants(entry.kind))
            .map(|(_, (key, entry))| (key.clone(), entry.clone()))
            .take(limit)
            .collect();
        (is_complete || shown.len() == limit).then_some(shown)
    }
}
