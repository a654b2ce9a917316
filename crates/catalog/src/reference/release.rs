//! Which merges needn't keep the states that they merged any longer.
//!
//! Such a state is kept because two references may have it in common, and be compared with it. It
//! can be let go once, for each two that stand, something younger that they have in common has it
//! in its past: merging and forking never bring it back as a best common ancestor, since they only
//! add to pasts. References are looked at as they are now, as they were at the horizon and behind
//! each merge since, and where they were forked; merges younger than the horizon keep what they have.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_partition::{Stop, View};
use anabranch_store::{
    BranchId, BranchRow, BranchState, Class, Entry, Key, ObjectId, PartitionId, PartitionState,
    Revision,
};

use super::body::{MergeBody, ReferenceBody};
use super::find::{oldest_name, past_of, unreadable};
use super::past::Past;

/// With more states than this to look at, everything is kept.
const MOST_STATES: usize = 512;
/// With as many references as this, everything is kept too: many may show one state.
const MOST_REFERENCES: u32 = 10_000;

/// The owners of the pins that aren't needed.
pub(crate) fn released(view: &View<'_>, database: PartitionId) -> Result<Vec<ObjectId>, Stop> {
    let merges = view.pinning_merges(database)?;
    let horizon = match view.partition(database)? {
        Some(row) if row.state == PartitionState::Live => row.horizon,
        // Nothing of a dropped database is merged any more.
        _ => return Ok(merges.iter().map(|(_, entry)| entry.object).collect()),
    };
    let old = merges.iter().filter(|(_, entry)| entry.from <= horizon);
    let old: Vec<&(Key, Entry)> = old.collect();
    if old.is_empty() {
        return Ok(Vec::new());
    }
    let rows: BTreeMap<_, BranchRow> = view
        .branches(database)?
        .iter()
        .map(|row| (row.branch, row.clone()))
        .collect();
    let Some(mut states) = standing(view, database, &rows, horizon)? else {
        return Ok(Vec::new());
    };
    for (key, entry) in merges.iter().filter(|(_, entry)| entry.from > horizon) {
        // What branches came through since.
        let row = rows.get(&key.branch);
        states.extend(row.map(|row| oldest_name(row, entry.from)));
    }
    if states.len() > MOST_STATES {
        return Ok(Vec::new());
    }
    let needed = needed(view, &rows, &states)?;
    let mut released = Vec::new();
    for (_, entry) in old {
        let merge: MergeBody =
            serde_json::from_str(&entry.body).map_err(|_| unreadable("merge"))?;
        let lineage = rows
            .get(&merge.state.branch)
            .map(|row| row.lineage.as_slice());
        let mut kept = std::iter::once(&merge.state).chain(lineage.unwrap_or_default());
        if !kept.any(|state| needed.contains(state)) {
            released.push(entry.object);
        }
    }
    Ok(released)
}

/// The states that can be merged or merged into: of each branch the newest, the oldest, and those
/// that it was forked from, and those of tags; `None` if there are too many references.
fn standing(
    view: &View<'_>,
    database: PartitionId,
    rows: &BTreeMap<BranchId, BranchRow>,
    horizon: Revision,
) -> Result<Option<BTreeSet<BranchState>>, Stop> {
    let mut states = BTreeSet::new();
    for row in rows.values() {
        if row.ended.is_none_or(|ended| ended > horizon) {
            states.insert(oldest_name(row, row.floor));
            states.insert(oldest_name(row, row.head));
            states.extend(row.lineage.iter().copied());
        }
    }
    let main = BranchId::MAIN;
    let references = view.range(database, main, "", Class::Reference, MOST_REFERENCES)?;
    if references.len() >= MOST_REFERENCES as usize {
        return Ok(None);
    }
    for (_, entry) in references {
        let body: ReferenceBody =
            serde_json::from_str(&entry.body).map_err(|_| unreadable("reference"))?;
        if let (Some(revision), Some(row)) = (body.revision, rows.get(&body.branch)) {
            states.insert(oldest_name(row, revision));
        }
    }
    Ok(Some(states))
}

/// The best common ancestors of each two.
fn needed(
    view: &View<'_>,
    rows: &BTreeMap<BranchId, BranchRow>,
    states: &BTreeSet<BranchState>,
) -> Result<BTreeSet<BranchState>, Stop> {
    let mut pasts: BTreeMap<BranchState, Past> = BTreeMap::new();
    let mut past = |state: BranchState| -> Result<Option<Past>, Stop> {
        if let Some(known) = pasts.get(&state) {
            return Ok(Some(known.clone()));
        }
        let Some(row) = rows.get(&state.branch) else {
            return Ok(None);
        };
        let found = past_of(view, row, state.revision)?;
        pasts.insert(state, found.clone());
        Ok(Some(found))
    };
    let mut of_states = Vec::with_capacity(states.len());
    for state in states {
        of_states.extend(past(*state)?);
    }
    let mut needed = BTreeSet::new();
    for (number, one) in of_states.iter().enumerate() {
        for other in &of_states[number + 1..] {
            let mut best: Vec<Past> = Vec::new();
            for state in one.common(other) {
                if best.iter().any(|past| past.includes(state)) {
                    continue;
                }
                needed.insert(state);
                best.extend(past(state)?);
            }
        }
    }
    Ok(needed)
}
