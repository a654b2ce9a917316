//! Between the call and the answer: which states a command may have met.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_store::PartitionId;

use super::Checker;
use crate::log::Line;
use crate::sequential::{self, Ground, State, catalogs_named};
use crate::words::Command;

/// What an answer can rest on.
pub(super) struct Window {
    /// What was known at the call: how many of all accepted commands, in each partition.
    pub(super) known: BTreeMap<PartitionId, usize>,
    /// How many accepted commands had been asked for at the answer.
    pub(super) asked: usize,
}

/// Cuts looked at for one answer, at most: one that isn't explained by then counts as explained.
const MOST_CUTS: usize = 100_000;

impl Checker<'_> {
    pub(super) fn window(&self, called: u64, answered: u64) -> Window {
        let mut known = BTreeMap::new();
        for (_, index) in self.known.iter().filter(|(time, _)| *time < called) {
            self.know(*index, &mut known);
        }
        let asked = self
            .steps
            .iter()
            .take_while(|step| self.first_call[step] < answered);
        Window {
            known,
            asked: asked.count(),
        }
    }

    /// Who sees a command sees all those that came before it in its partitions.
    fn know(&self, index: usize, known: &mut BTreeMap<PartitionId, usize>) {
        for partition in &self.changed[index] {
            let before = known.insert(*partition, index + 1).unwrap_or(0);
            if before > index {
                known.insert(*partition, before);
                continue;
            }
            for earlier in before..index {
                if self.changed[earlier].contains(partition) {
                    self.know(earlier, known);
                }
            }
        }
    }

    /// States in the window: first those of the one order, then the cuts of it.
    pub(super) fn states_in(&self, window: &Window) -> impl Iterator<Item = State> {
        let known = window.known.values().copied().max().unwrap_or(0);
        let whole = (known..=window.asked).map(|index| self.states[index].clone());
        whole.chain(self.cuts(window).take(MOST_CUTS))
    }

    fn cuts(&self, window: &Window) -> impl Iterator<Item = State> {
        let mut open: BTreeMap<PartitionId, Vec<usize>> = BTreeMap::new();
        for index in 0..window.asked {
            for partition in &self.changed[index] {
                let known = window.known.get(partition).copied().unwrap_or(0);
                let ends = open.entry(*partition).or_insert_with(|| vec![known]);
                if index >= known {
                    ends.push(index + 1);
                }
            }
        }
        let partitions: Vec<PartitionId> = open.keys().copied().collect();
        let choices = open.values().map(Vec::len);
        let all = choices.fold(1_usize, |all, count| all.saturating_mul(count));
        (0..all).filter_map(move |mut number| {
            let ends = open.iter().map(|(partition, ends)| {
                let end = ends[number % ends.len()];
                number /= ends.len();
                (*partition, end)
            });
            let ends: BTreeMap<PartitionId, usize> = ends.collect();
            self.is_cut(&ends, window.asked)
                .then(|| self.state_at(&partitions, &ends))
        })
    }

    fn is_cut(&self, ends: &BTreeMap<PartitionId, usize>, asked: usize) -> bool {
        self.changed[..asked]
            .iter()
            .enumerate()
            .all(|(index, changed)| {
                let mut seen = changed.iter().map(|partition| ends[partition] > index);
                let first = seen.next();
                seen.all(|other| Some(other) == first)
            })
    }

    fn state_at(&self, partitions: &[PartitionId], ends: &BTreeMap<PartitionId, usize>) -> State {
        let mut state = State::new();
        for partition in partitions {
            let rows = self.states[ends[partition]].iter();
            let own = rows.filter(|(key, _)| key.partition == *partition);
            state.extend(own.map(|(key, thing)| (key.clone(), thing.clone())));
        }
        state
    }

    pub(super) fn ground<'b>(
        &self,
        state: &'b State,
        catalog: Option<PartitionId>,
        chosen: &'b [Line],
    ) -> Ground<'b> {
        Ground {
            state,
            metalake: self.run.metalake,
            catalog,
            chosen,
        }
    }

    /// The catalogs that a request may have resolved its name to.
    pub(super) fn resolved(
        &self,
        command: &Command,
        window: &Window,
    ) -> BTreeSet<Option<PartitionId>> {
        let Some(name) = command.catalog() else {
            return BTreeSet::from([None]);
        };
        let metalake = self.run.metalake;
        let known = window.known.get(&metalake).copied().unwrap_or(0);
        let last = window.asked.min(self.states.len() - 1);
        catalogs_named(&self.states[known.min(last)..=last], metalake, name)
    }

    /// The catalogs that a read may have looked into. A listing resolves its names first; all other
    /// reads are of one moment.
    pub(super) fn looked_into(
        &self,
        state: &State,
        command: &Command,
        window: &Window,
    ) -> BTreeSet<Option<PartitionId>> {
        match command {
            Command::ListNamespaces(..) | Command::ListTables(_) => self.resolved(command, window),
            _ => {
                let name = command.catalog();
                let metalake = self.run.metalake;
                let named = name.and_then(|name| sequential::partition_of(state, metalake, name));
                BTreeSet::from([named])
            }
        }
    }
}
