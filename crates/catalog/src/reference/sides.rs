//! Two states of a database side by side: what they have in common, what each touched since, and
//! what stands in them under those names.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_partition::{Layers, Reason, Refusal, Stop, View};
use anabranch_store::{BranchRow, BranchState, Class, Entry, ObjectId, PartitionId};

use super::body::{MergeBody, state_name};
use super::find::{past_of, unreadable};
use super::past::Past;
use super::plan::{Modes, Place, Plan, States, TwoModes, Version, plan};

/// A base: the branch, its state, and all that is past of it.
pub(crate) type Base = (BranchRow, BranchState, Past);

/// A branch, and a state of it or of what it was forked from.
pub(crate) type Side = (BranchRow, BranchState);

/// A source and a target.
pub(crate) struct Sides {
    pub(crate) partition: PartitionId,
    pub(crate) source: Side,
    pub(crate) target: Side,
}

impl Sides {
    /// The source's and the target's.
    pub(crate) fn pasts(&self, view: &View<'_>) -> Result<(Past, Past), Stop> {
        let past = |(row, state): &Side| past_of(view, row, state.revision);
        Ok((past(&self.source)?, past(&self.target)?))
    }

    /// The best common ancestors: those that no other one has in its past. An ancestor is always
    /// older, so the youngest is one.
    pub(crate) fn bases(
        &self,
        view: &View<'_>,
        (source, target): &(Past, Past),
    ) -> Result<Vec<Base>, Stop> {
        let mut bases: Vec<Base> = Vec::new();
        for state in source.common(target) {
            if bases.iter().any(|(.., past)| past.includes(state)) {
                continue;
            }
            let row = view.branch(self.partition, state.branch)?;
            // An older one wouldn't do: it would bring back what was undone since.
            let row = match row {
                Some(row) if view.is_kept(&row, state.revision)? => row,
                _ => return Err(forgotten(state).into()),
            };
            let past = past_of(view, &row, state.revision)?;
            bases.push((row, state, past));
        }
        if bases.is_empty() {
            let message = "the two have no state in common, so there is nothing to compare with";
            return Err(Refusal::new(Reason::Conflict, message).into());
        }
        Ok(bases)
    }

    pub(crate) fn plan(
        &self,
        view: &View<'_>,
        (source, target): &(Past, Past),
        bases: &[Base],
        modes: &Modes,
    ) -> Result<Plan, Stop> {
        let known: Vec<Past> = bases.iter().map(|(.., past)| past.clone()).collect();
        let names = touched(view, self.partition, source, &known)?;
        let mut states = self.states(view, bases, &names)?;
        let strayed = strayed(&states);
        if !strayed.is_empty() {
            let mut names = names;
            let moved = touched(view, self.partition, target, &known)?;
            let moved: Vec<Place> = moved.into_iter().collect();
            let layers = Layers::at(&self.target.0, self.target.1.revision);
            let found = view.find_all(&layers, &moved)?;
            for (place, entry) in moved.into_iter().zip(found) {
                if entry.is_some_and(|entry| strayed.contains(&entry.object)) {
                    names.insert(place);
                }
            }
            states = self.states(view, bases, &names)?;
        }
        plan(&states, modes).map_err(|TwoModes { names }| {
            let message = format!(
                "`tableMergeModes` has different modes for {} and {}, which are one table; give \
                 one of them",
                names.0, names.1
            );
            Refusal::invalid(message).into()
        })
    }

    pub(crate) fn states(
        &self,
        view: &View<'_>,
        bases: &[Base],
        names: &BTreeSet<Place>,
    ) -> Result<States, Stop> {
        let names: Vec<Place> = names.iter().cloned().collect();
        let of = |row: &BranchRow, state: BranchState| {
            let found = view.find_all(&Layers::at(row, state.revision), &names)?;
            let named = names.iter().cloned().zip(found);
            let versions = named.filter_map(|(place, entry)| Some((place, Version::of(entry?))));
            Ok::<_, Stop>(versions.collect::<BTreeMap<Place, Version>>())
        };
        let bases = bases.iter().map(|(row, state, _)| of(row, *state));
        Ok(States {
            bases: bases.collect::<Result<_, _>>()?,
            source: of(&self.source.0, self.source.1)?,
            target: of(&self.target.0, self.target.1)?,
        })
    }
}

fn forgotten(state: BranchState) -> Refusal {
    Refusal::new(
        Reason::Gone,
        format!(
            "what both have in common, {}, is older than what is kept; merge a newer state",
            state_name(state)
        ),
    )
}

impl Version {
    pub(crate) fn of(entry: Entry) -> Version {
        Version {
            kind: entry.kind,
            object: entry.object,
            body: entry.body,
        }
    }
}

/// The names that a past touched beyond others, and those whose changes its merges left out: under
/// all others it shows what they do.
pub(crate) fn touched(
    view: &View<'_>,
    partition: PartitionId,
    past: &Past,
    known: &[Past],
) -> Result<BTreeSet<Place>, Stop> {
    let mut names = BTreeSet::new();
    for (branch, (from, to)) in past.beyond(known) {
        let mut merges = Vec::new();
        for place in view.touched(partition, branch, from, to)? {
            match place.1 {
                Class::Merge => merges.push(place),
                Class::Container | Class::Table => drop(names.insert(place)),
                Class::Purge | Class::Reference | Class::Fork => {}
            }
        }
        let state = BranchState {
            branch,
            revision: to,
        };
        for entry in view.find_all(&Layers::only(partition, state), &merges)? {
            let entry = entry.ok_or_else(|| unreadable("merge"))?;
            let merge: MergeBody =
                serde_json::from_str(&entry.body).map_err(|_| unreadable("merge"))?;
            names.extend(merge.left_out);
        }
    }
    Ok(names)
}

/// Things of the bases or the source that the target doesn't have under any of their names there.
fn strayed(states: &States) -> BTreeSet<ObjectId> {
    let maps = states.bases.iter().chain([&states.source]);
    let known: BTreeSet<ObjectId> = maps
        .flat_map(BTreeMap::values)
        .map(|version| version.object)
        .collect();
    let found: BTreeSet<ObjectId> = states.target.values().map(|one| one.object).collect();
    known.difference(&found).copied().collect()
}
