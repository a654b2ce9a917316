//! The three-way merge of whole versions: what the target's map becomes, by the table of the
//! seed. Pure: states in, a plan or its conflicts out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_store::{Class, Kind, ObjectId};
use serde::{Deserialize, Serialize};

/// A place in a database's map: scope, class and name.
pub type Place = (String, Class, String);

/// What stands under a name in one state. Two are the same if all of it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// What kind of thing.
    pub kind: Kind,
    /// Which thing: dropped and created again is another one.
    pub object: ObjectId,
    /// Its content.
    pub body: Arc<str>,
}

/// What a merge does with the source's changes of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Mode {
    /// They are taken unless the target changed the table otherwise.
    #[default]
    Normal,
    /// They are taken, whatever the target did.
    Force,
    /// They are left out, and don't come back.
    Drop,
}

/// The modes of one merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// Where nothing else is said.
    pub default: Mode,
    /// By name, as clients write it.
    pub tables: BTreeMap<String, Mode>,
}

/// What became of one table's changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Outcome {
    /// Neither side changed it.
    Unchanged,
    /// The source's version is the target's now.
    Taken,
    /// Only the target changed it.
    Kept,
    /// Left out by its mode.
    Dropped,
    /// The source's version replaced a change of the target.
    Forced,
    /// Both sides made the same of it.
    Identical,
}

/// Where a thing stands in a state, and as what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its name.
    pub place: Place,
    /// What stands there.
    pub version: Version,
}

/// One table that can't be merged: where it stands, and what in each state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The name that the answer speaks of.
    pub place: Place,
    /// In the merge base; `None` also where there are several that disagree.
    pub base: Option<Standing>,
    /// In the source.
    pub source: Option<Standing>,
    /// In the target.
    pub target: Option<Standing>,
    /// In words.
    pub why: Why,
}

/// Why a table can't be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Both sides changed it, each otherwise.
    BothChanged,
    /// There are several best common ancestors, and they disagree about it.
    BasesDisagree,
    /// The target has another thing under that name.
    NameTaken,
    /// The target has no such namespace.
    NoNamespace,
    /// The target has something in the namespace that the source dropped.
    NamespaceInUse,
}

/// What is refused before anything is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TwoModes {
    /// The two names of one table that ask for different modes.
    pub names: (String, String),
}

/// The states of every name that the source touched since the bases, and of those under which the
/// target has what was touched.
#[derive(Clone, Debug, Default)]
pub struct States {
    /// The merge bases' maps.
    pub bases: Vec<BTreeMap<Place, Version>>,
    /// The source's.
    pub source: BTreeMap<Place, Version>,
    /// The target's.
    pub target: BTreeMap<Place, Version>,
}

/// What a merge comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// What the target has to have under a name: a version, or nothing.
    pub writes: BTreeMap<Place, Option<Version>>,
    /// What became of each table, by the name that it has in the source, else in the target or
    /// base.
    pub outcomes: BTreeMap<Place, Outcome>,
    /// Names whose changes were left out, under which a later merge has to look again.
    pub left_out: BTreeSet<Place>,
    /// Tables that can't be merged; if there are any, nothing is written.
    pub conflicts: Vec<Conflict>,
}

/// A name as clients write it: levels and name with dots between.
pub fn written(place: &Place) -> String {
    match place.0.as_str() {
        "" => place.2.clone(),
        scope => format!("{}.{}", scope.replace('\u{1f}', "."), place.2),
    }
}

/// Where each thing stands in a map.
pub(crate) fn by_object(map: &BTreeMap<Place, Version>) -> BTreeMap<ObjectId, Standing> {
    let standing = map.iter().map(|(place, version)| {
        let standing = Standing {
            place: place.clone(),
            version: version.clone(),
        };
        (version.object, standing)
    });
    standing.collect()
}

/// One thing in all states.
struct Thing {
    /// Where the source has it, else the target, else the base.
    place: Place,
    bases: Vec<Option<Standing>>,
    source: Option<Standing>,
    target: Option<Standing>,
}

impl Thing {
    fn base(&self) -> Option<&Standing> {
        self.bases.first().and_then(Option::as_ref)
    }

    fn bases_agree(&self) -> bool {
        self.bases.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// All names that it has anywhere.
    fn places(&self) -> BTreeSet<&Place> {
        let all = self.bases.iter().flatten();
        let all = all.chain(&self.source).chain(&self.target);
        all.map(|standing| &standing.place).collect()
    }

    fn mode(&self, modes: &Modes) -> Result<Mode, TwoModes> {
        let mut found: Option<(String, Mode)> = None;
        for place in self.places() {
            let name = written(place);
            let Some(mode) = modes.tables.get(&name).copied() else {
                continue;
            };
            match found {
                Some((other, known)) if known != mode => {
                    return Err(TwoModes {
                        names: (other, name),
                    });
                }
                _ => found = Some((name, mode)),
            }
        }
        Ok(found.map_or(modes.default, |(_, mode)| mode))
    }

    /// The row of the seed's table that applies.
    fn outcome(&self, mode: Mode) -> Result<Outcome, Why> {
        let base = self.base();
        if self.bases_agree() && self.source.as_ref() == base {
            return Ok(match self.target.as_ref() == base {
                true => Outcome::Unchanged,
                false => Outcome::Kept,
            });
        }
        let target_is_base = self.bases_agree() && self.target.as_ref() == base;
        match mode {
            Mode::Drop => Ok(Outcome::Dropped),
            _ if target_is_base => Ok(Outcome::Taken),
            _ if self.source == self.target => Ok(Outcome::Identical),
            Mode::Force => Ok(Outcome::Forced),
            Mode::Normal if self.bases_agree() => Err(Why::BothChanged),
            Mode::Normal => Err(Why::BasesDisagree),
        }
    }

    fn conflict(&self, why: Why) -> Conflict {
        Conflict {
            place: self.place.clone(),
            base: self.base().cloned(),
            source: self.source.clone(),
            target: self.target.clone(),
            why,
        }
    }
}

fn things(states: &States) -> Vec<Thing> {
    let bases: Vec<_> = states.bases.iter().map(by_object).collect();
    let source = by_object(&states.source);
    let target = by_object(&states.target);
    let everywhere = bases.iter().chain([&source, &target]);
    let objects: BTreeSet<ObjectId> = everywhere.flat_map(BTreeMap::keys).copied().collect();
    let thing = |object: &ObjectId| {
        let (source, target) = (source.get(object), target.get(object));
        let bases: Vec<_> = bases.iter().map(|base| base.get(object).cloned()).collect();
        let anywhere = source.or(target).or(bases.iter().flatten().next());
        Some(Thing {
            place: anywhere?.place.clone(),
            source: source.cloned(),
            target: target.cloned(),
            bases,
        })
    };
    objects.iter().filter_map(thing).collect()
}

/// What the target's map becomes.
pub fn plan(states: &States, modes: &Modes) -> Result<Plan, TwoModes> {
    let mut plan = Plan::default();
    let mut taken: Vec<(&Thing, Mode)> = Vec::new();
    let things = things(states);
    for thing in &things {
        let mode = thing.mode(modes)?;
        let outcome = match thing.outcome(mode) {
            Ok(outcome) => outcome,
            Err(why) => {
                plan.conflicts.push(thing.conflict(why));
                continue;
            }
        };
        match outcome {
            Outcome::Taken | Outcome::Forced => taken.push((thing, mode)),
            Outcome::Dropped => plan.left_out.extend(thing.places().into_iter().cloned()),
            Outcome::Unchanged | Outcome::Kept | Outcome::Identical => {}
        }
        // One name may have had several things: what the source did to one of them is told.
        match outcome {
            Outcome::Unchanged | Outcome::Kept => {
                plan.outcomes.entry(thing.place.clone()).or_insert(outcome);
            }
            _ => drop(plan.outcomes.insert(thing.place.clone(), outcome)),
        }
    }
    // What leaves goes first, so that what comes finds its name free.
    for (thing, _) in &taken {
        if let Some(target) = &thing.target {
            plan.writes.insert(target.place.clone(), None);
        }
    }
    for (thing, mode) in &taken {
        let Some(source) = &thing.source else {
            continue;
        };
        let is_left = plan.writes.get(&source.place) == Some(&None);
        let other = states.target.get(&source.place);
        let other = other.filter(|other| !is_left && other.object != source.version.object);
        if other.is_some() {
            if *mode != Mode::Force {
                plan.conflicts.push(thing.conflict(Why::NameTaken));
                continue;
            }
            plan.outcomes.insert(thing.place.clone(), Outcome::Forced);
        }
        let version = Some(source.version.clone());
        plan.writes.insert(source.place.clone(), version);
    }
    Ok(plan)
}
