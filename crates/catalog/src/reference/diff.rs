//! What differs between two states.

use std::collections::BTreeMap;

use anabranch_partition::{Stop, View};
use anabranch_store::{BranchState, ObjectId, PartitionId};

use super::body::state_name;
use super::find::oldest_name;
use super::past::Past;
use super::plan::{Place, Standing, Version, by_object, written};
use super::shown::ReferenceTable;
use super::sides::{Side, Sides, touched};

/// How a table of one state differs in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableChange {
    /// Only the other state has it.
    Added,
    /// Only the one state has it.
    Removed,
    /// Its content is another.
    Changed,
    /// Its name is another, and maybe its content.
    Renamed,
}

/// A table that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDifference {
    /// Its name in the other state, else in the one.
    pub table: String,
    /// How.
    pub change: TableChange,
    /// What the one state shows.
    pub from: Option<ReferenceTable>,
    /// What the other state shows.
    pub to: Option<ReferenceTable>,
}

/// What differs between two states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The one state.
    pub from: String,
    /// The other.
    pub to: String,
    /// Their best common ancestors.
    pub bases: Vec<String>,
    /// By name.
    pub tables: Vec<TableDifference>,
}

/// What differs. Costs what either touched since they parted, whatever the database holds.
pub(crate) fn difference(
    view: &View<'_>,
    partition: PartitionId,
    from: Side,
    to: Side,
) -> Result<Difference, Stop> {
    let names = (state_name(from.1), state_name(to.1));
    let same = oldest_name(&from.0, from.1.revision);
    if same == oldest_name(&to.0, to.1.revision) {
        return Ok(Difference {
            from: names.0,
            to: names.1,
            bases: vec![state_name(same)],
            tables: Vec::new(),
        });
    }
    let sides = Sides {
        partition,
        source: from,
        target: to,
    };
    let pasts = sides.pasts(view)?;
    let bases = sides.bases(view, &pasts)?;
    let known: Vec<Past> = bases.iter().map(|(.., past)| past.clone()).collect();
    let mut places = touched(view, partition, &pasts.0, &known)?;
    places.extend(touched(view, partition, &pasts.1, &known)?);
    let states = sides.states(view, &[], &places)?;
    let base = |(_, state, _): &(_, BranchState, _)| state_name(*state);
    Ok(Difference {
        from: names.0,
        to: names.1,
        bases: bases.iter().map(base).collect(),
        tables: compare(&states.source, &states.target),
    })
}

/// The things of two maps that stand elsewhere or otherwise in the other.
pub(crate) fn compare(
    from: &BTreeMap<Place, Version>,
    to: &BTreeMap<Place, Version>,
) -> Vec<TableDifference> {
    let (from, to) = (by_object(from), by_object(to));
    let mut found: Vec<TableDifference> = Vec::new();
    let objects: std::collections::BTreeSet<&ObjectId> = from.keys().chain(to.keys()).collect();
    for object in objects {
        let (one, other) = (from.get(object), to.get(object));
        let change = match (one, other) {
            (None, Some(_)) => TableChange::Added,
            (Some(_), None) => TableChange::Removed,
            (Some(one), Some(other)) if one.place != other.place => TableChange::Renamed,
            (Some(one), Some(other)) if one.version != other.version => TableChange::Changed,
            _ => continue,
        };
        let name = |standing: &Standing| written(&standing.place);
        found.push(TableDifference {
            table: other.or(one).map(name).unwrap_or_default(),
            change,
            from: one.map(ReferenceTable::from),
            to: other.map(ReferenceTable::from),
        });
    }
    found.sort_by(|one, other| (&one.table, one.change).cmp(&(&other.table, other.change)));
    found
}
