//! What tables, differences and logs of references are in the naive graph, and that they are that.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_store::{Answer, Read, Revision};

use super::naive::{Map, Naive};
use super::{Run, database};
use crate::name::Warehouse;
use crate::reference::body::{named_state, state_name};
use crate::reference::diff::TableChange;
use crate::reference::log::{Event, LogEntry};
use crate::service::Page;

/// A table by its name: how it differs, and what both maps have of it.
type Differences = BTreeSet<(
    String,
    TableChange,
    Option<(i64, String)>,
    Option<(i64, String)>,
)>;

impl Naive {
    /// The states that a branch or tag came through, the last first, by the first parents.
    fn line(&self, node: usize) -> Vec<String> {
        let mut line = Vec::new();
        let mut next = Some(node);
        while let Some(node) = next {
            let found = &self.nodes[node];
            next = found.parents.first().copied();
            if next.is_some() {
                line.push(state_name(found.state));
            }
        }
        line
    }

    fn differences(from: &Map, to: &Map) -> Differences {
        let objects: BTreeSet<i64> = from.values().chain(to.values()).map(|one| one.0).collect();
        let mut found = Differences::new();
        for object in objects {
            let (one, other) = (Naive::thing(from, object), Naive::thing(to, object));
            let change = match (&one, &other) {
                (None, _) => TableChange::Added,
                (_, None) => TableChange::Removed,
                (Some(one), Some(other)) if one.0 != other.0 => TableChange::Renamed,
                (one, other) if one != other => TableChange::Changed,
                _ => continue,
            };
            let name = other.as_ref().or(one.as_ref()).unwrap().0.clone();
            let version =
                |standing: Option<(String, String)>| standing.map(|(_, body)| (object, body));
            found.insert((name, change, version(one), version(other)));
        }
        found
    }
}

impl Run {
    fn warehouse() -> Warehouse {
        Warehouse::parse("db.db").unwrap()
    }

    fn page(&mut self, token: Option<String>) -> Page {
        use rand::Rng;
        Page {
            token: Some(token.unwrap_or_default()),
            size: Some(self.random.random_range(1..5)),
        }
    }

    /// Two references, by name and node.
    fn two(&mut self) -> [(String, usize); 2] {
        let branches = self.naive.branches.iter();
        let branches = branches.map(|(name, (_, node))| (name.clone(), *node));
        let tags = self.naive.tags.iter();
        let tags = tags.map(|(name, node)| (name.clone(), *node));
        let all: Vec<_> = branches.chain(tags).collect();
        [self.pick(&all), self.pick(&all)]
    }

    pub(super) async fn compare_reads(&mut self) {
        let [one, other] = self.two();
        self.compare_tables(&one).await;
        self.compare_log(&one).await;
        self.compare_difference(&one, &other).await;
    }

    async fn compare_tables(&mut self, (name, node): &(String, usize)) {
        let mut found = BTreeMap::new();
        let mut token = None;
        loop {
            let page = self.page(token);
            let warehouse = Run::warehouse();
            let catalog = self.catalog.clone();
            let tables = catalog.list_reference_tables(&warehouse, "db", name, None, &page);
            let tables = tables.await.unwrap();
            for table in tables.items {
                found.insert(table.name, (table.id.0, table.version));
            }
            token = tables.next;
            if token.is_none() {
                break;
            }
        }
        assert_eq!(
            found, self.naive.nodes[*node].map,
            "{name}: {:#?}",
            self.log
        );
    }

    async fn compare_difference(&mut self, one: &(String, usize), other: &(String, usize)) {
        let maps = [one, other].map(|(_, node)| &self.naive.nodes[*node].map);
        let wanted = Naive::differences(maps[0], maps[1]);
        let bases = self.naive.bases(one.1, other.1).into_iter();
        let bases: BTreeSet<String> = bases
            .map(|node| state_name(self.naive.nodes[node].state))
            .collect();
        let lake = Run::warehouse();
        let (from, to) = ((one.0.as_str(), None), (other.0.as_str(), None));
        let found = self.catalog.reference_diff(&lake, "db", from, to);
        let found = found.await.unwrap();
        let of_bases: BTreeSet<String> = found.bases.into_iter().collect();
        assert_eq!(of_bases, bases, "{one:?} {other:?} {:#?}", self.log);
        let tables = found.tables.into_iter().map(|table| {
            let version = |shown: Option<crate::reference::ReferenceTable>| {
                shown.map(|shown| (shown.id.0, shown.version))
            };
            (
                table.table,
                table.change,
                version(table.from),
                version(table.to),
            )
        });
        let found: Differences = tables.collect();
        assert_eq!(found, wanted, "{one:?} {other:?} {:#?}", self.log);
    }

    /// As far back as the change log goes, and of merges and forks on from there.
    async fn compare_log(&mut self, (name, node): &(String, usize)) {
        let mut entries: Vec<LogEntry> = Vec::new();
        let mut token = None;
        loop {
            let lake = Run::warehouse();
            let page = self.page(token);
            let log = self.catalog.reference_log(&lake, "db", name, &page);
            let log = log.await.unwrap();
            entries.extend(log.items);
            token = log.next;
            if token.is_none() {
                break;
            }
        }
        let horizon = self.horizon().await;
        let wanted = self.naive.line(*node);
        let told: Vec<&LogEntry> = entries
            .iter()
            .filter(|entry| entry.event != Event::Fork)
            .collect();
        let kept = |revision: &&String| named_state(revision).unwrap().revision >= horizon;
        let recent: Vec<&String> = wanted.iter().filter(kept).collect();
        let found: Vec<&String> = told.iter().map(|entry| &entry.revision).collect();
        let found_recent: Vec<&String> = found.iter().copied().filter(kept).collect();
        assert_eq!(found_recent, recent, "{name}: {:#?}", self.log);
        let mut rest = wanted.iter();
        for revision in &found {
            assert!(
                rest.any(|one| one == *revision),
                "{name} {revision}: {:#?}",
                self.log
            );
        }
        let merges = wanted.iter().filter(|revision| {
            let is_of = |node: &&super::Node| state_name(node.state) == **revision;
            let node = self.naive.nodes.iter().find(is_of).unwrap();
            node.parents.len() > 1
        });
        let told_merges = told.iter().filter(|entry| entry.event == Event::Merge);
        assert_eq!(
            told_merges.count(),
            merges.count(),
            "{name}: {:#?}",
            self.log
        );
    }

    async fn horizon(&self) -> Revision {
        let read = [Read::Partition(database().partition)];
        match self.partitions.read(&read).await.unwrap().remove(0) {
            Answer::Partition(Some(row)) => row.horizon,
            other => panic!("{other:?}"),
        }
    }
}
