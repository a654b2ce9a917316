//! Branches: sparse maps over states of others, against full copies.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anabranch_partition::{
    Command, Context, Layers, Listing, Merged, Partitions, Stop, View, decide,
};
use anabranch_store::fault::When;
use anabranch_store::{
    Answer, BranchId, BranchRow, BranchState, Class, Entry, Key, Kind, ObjectId, PartitionId,
    PartitionKind, Read, Revision, Store,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use support::Server;

on_every_engine![
    branches_show_what_full_copies_would,
    what_a_branch_inherited_outlives_pruning,
    a_branch_made_and_ended_in_one_batch_is_gone,
    a_branch_made_in_the_middle_of_a_batch_shows_what_stood_then,
];

const TABLES: Class = Class::Table;

fn database() -> PartitionId {
    PartitionId::new(PartitionKind::Database, 1)
}

fn key(branch: BranchId, name: &str) -> Key {
    Key {
        partition: database(),
        branch,
        scope: String::new(),
        class: TABLES,
        name: name.to_owned(),
    }
}

/// Makes a metalake, a catalog and the database in it.
struct Found;

impl Command for Found {
    type Outcome = ();

    fn name(&self) -> &'static str {
        "found"
    }

    fn reads(&self) -> Vec<Read> {
        Vec::new()
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<(), Stop> {
        let mut parent = PartitionId::ROOT;
        for (kind, entry) in [
            (PartitionKind::Metalake, Kind::Metalake),
            (PartitionKind::Catalog, Kind::Catalog),
            (PartitionKind::Database, Kind::Namespace),
        ] {
            let id = PartitionId::new(kind, 1);
            view.create_partition(id, parent);
            let container = Key {
                partition: parent,
                class: Class::Container,
                ..key(BranchId::MAIN, "c")
            };
            view.put(container, entry, id.into(), "{}".into())?;
            parent = id;
        }
        Ok(())
    }
}

/// What happens in a database with branches.
#[derive(Clone, Debug)]
enum Act {
    /// The new branch, and the state that it starts from: the branch as it is if there is none.
    Fork(BranchId, BranchId, Option<Revision>),
    End(BranchId),
    Put(Key, ObjectId, String),
    Remove(Key),
    Rename(Key, Key),
}

impl Command for Act {
    /// The revision.
    type Outcome = Revision;

    fn name(&self) -> &'static str {
        "act"
    }

    fn reads(&self) -> Vec<Read> {
        Vec::new()
    }

    fn apply(&self, view: &mut View<'_>, context: &Context<'_>) -> Result<Revision, Stop> {
        match self.clone() {
            Act::Fork(branch, from, at) => {
                let source = view.branch(database(), from)?;
                let lineage = source.map(|row| row.lineage).unwrap_or_default();
                let revision = at.unwrap_or(Revision(context.revision.0 - 1));
                let parent = BranchState {
                    branch: from,
                    revision,
                };
                let row = BranchRow {
                    partition: database(),
                    branch,
                    head: context.revision,
                    lineage: std::iter::once(parent).chain(lineage).collect(),
                    ended: None,
                    floor: context.revision,
                };
                view.create_branch(row, ObjectId(branch.0));
                // Something in the log: a branch alone is no change of the partition.
                let named = Key {
                    class: Class::Reference,
                    ..key(BranchId::MAIN, &format!("{:x}", branch.0))
                };
                view.put(named, Kind::Branch, ObjectId(branch.0), "{}".into())?;
            }
            Act::End(branch) => {
                let row = view.branch(database(), branch)?.unwrap();
                view.end_branch(row);
                view.unpin(ObjectId(branch.0));
                let named = Key {
                    class: Class::Reference,
                    ..key(BranchId::MAIN, &format!("{:x}", branch.0))
                };
                view.remove(named)?;
            }
            Act::Put(key, object, body) => {
                view.put(key, Kind::IcebergTable, object, body.as_str().into())?;
            }
            Act::Remove(key) => {
                view.remove(key)?;
            }
            Act::Rename(from, to) => {
                let body = view.get(&from)?.map(|entry| entry.body);
                let (Some(body), None) = (body, view.get(&to)?) else {
                    return Ok(context.revision);
                };
                view.rename(from, to, body)?;
            }
        }
        Ok(context.revision)
    }
}

async fn act(server: &Server, act: Act) -> Revision {
    server.run(vec![database()], act).await.unwrap().outcome
}

async fn row(partitions: &Partitions, branch: BranchId) -> BranchRow {
    let read = [Read::Branch(database(), branch)];
    match partitions.read(&read).await.unwrap().remove(0) {
        Answer::Branch(Some(row)) => row,
        Answer::Branch(None) => panic!("no branch {branch:?}"),
        other => panic!("{other:?}"),
    }
}

/// Everything that a reference shows, page by page.
async fn listed(partitions: &Partitions, layers: &Layers, page: u32) -> Map {
    let mut found = Map::new();
    loop {
        let listing = Listing::Range {
            scope: String::new(),
            class: TABLES,
            kinds: Vec::new(),
            after: found.keys().next_back().cloned(),
            limit: page,
        };
        let mut merged = Merged::new(layers, listing);
        let entries = loop {
            if let Some(entries) = merged.result() {
                break entries;
            }
            let (places, reads): (Vec<usize>, Vec<Read>) = merged.wanted().into_iter().unzip();
            let answers = partitions.read(&reads).await.unwrap();
            for (place, answer) in places.into_iter().zip(answers) {
                match answer {
                    Answer::Entries(entries) => merged.supply(place, &entries),
                    other => panic!("{other:?}"),
                }
            }
        };
        let count = entries.len();
        let shown = |(key, entry): (Key, Entry)| (key.name, entry.body.to_string());
        found.extend(entries.into_iter().map(shown));
        if count < page as usize {
            return found;
        }
    }
}

async fn one(partitions: &Partitions, layers: &Layers, name: &str) -> Option<String> {
    let reads = layers.point("", TABLES, name);
    let answers = partitions.read(&reads).await.unwrap();
    let found = answers.into_iter().map(|answer| match answer {
        Answer::Entry(entry) => entry,
        other => panic!("{other:?}"),
    });
    decide(found).map(|entry| entry.body.to_string())
}

type Map = BTreeMap<String, String>;

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

async fn branches_show_what_full_copies_would(store: Arc<dyn Store>) {
    let server = Server::over(&store);
    server.run(vec![PartitionId::ROOT], Found).await.unwrap();
    let mut random = StdRng::seed_from_u64(7);
    let mut copies: BTreeMap<BranchId, Map> = BTreeMap::from([(BranchId::MAIN, Map::new())]);
    let mut objects: BTreeMap<(BranchId, String), ObjectId> = BTreeMap::new();
    let mut states: Vec<(BranchState, Map)> = Vec::new();
    let mut last = Revision::ZERO;
    for number in 0..160_u64 {
        let branches: Vec<BranchId> = copies.keys().copied().collect();
        let branch = branches[random.random_range(0..branches.len())];
        let name = NAMES[random.random_range(0..NAMES.len())];
        let other = NAMES[random.random_range(0..NAMES.len())];
        let at = |name: &str| key(branch, name);
        match random.random_range(0..10) {
            0 if copies.len() < 7 => {
                let fork = BranchId::new(100 + number);
                act(&server, Act::Fork(fork, branch, None)).await;
                copies.insert(fork, copies[&branch].clone());
                for name in NAMES {
                    if let Some(object) = objects.get(&(branch, name.to_owned())) {
                        objects.insert((fork, name.to_owned()), *object);
                    }
                }
            }
            0..=2 => {
                act(&server, Act::Remove(at(name))).await;
                copies.get_mut(&branch).unwrap().remove(name);
                objects.remove(&(branch, name.to_owned()));
            }
            3 | 4 => {
                act(&server, Act::Rename(at(name), at(other))).await;
                let map = copies.get_mut(&branch).unwrap();
                if map.contains_key(name) && !map.contains_key(other) {
                    let body = map.remove(name).unwrap();
                    map.insert(other.to_owned(), body);
                    let object = objects.remove(&(branch, name.to_owned())).unwrap();
                    objects.insert((branch, other.to_owned()), object);
                }
            }
            _ => {
                let known = objects.get(&(branch, name.to_owned()));
                let object = *known.unwrap_or(&ObjectId::new(1000 + number));
                objects.insert((branch, name.to_owned()), object);
                last = act(&server, Act::Put(at(name), object, number.to_string())).await;
                let map = copies.get_mut(&branch).unwrap();
                map.insert(name.to_owned(), number.to_string());
                let revision = last;
                states.push((BranchState { branch, revision }, map.clone()));
            }
        }
        let changed = row(&server.partitions, branch).await;
        let layers = Layers::now(&changed);
        assert_eq!(
            listed(&server.partitions, &layers, 3).await,
            copies[&branch],
            "{number}"
        );
    }
    for (branch, copy) in &copies {
        let layers = Layers::now(&row(&server.partitions, *branch).await);
        assert_eq!(listed(&server.partitions, &layers, 100).await, *copy);
        for name in NAMES {
            let found = one(&server.partitions, &layers, name).await;
            assert_eq!(found.as_ref(), copy.get(name));
        }
    }
    for (state, copy) in &states {
        let row = row(&server.partitions, state.branch).await;
        let layers = Layers::at(&row, state.revision);
        assert_eq!(
            listed(&server.partitions, &layers, 2).await,
            *copy,
            "{state:?}"
        );
    }
    check_touched(&server.partitions, &states, last).await;
    assert_eq!(store.audit().await.unwrap(), []);
}

/// What differs between two states of a branch is among the keys that were touched between them.
async fn check_touched(partitions: &Partitions, states: &[(BranchState, Map)], last: Revision) {
    for (state, before) in states {
        let later = states
            .iter()
            .filter(|(later, _)| later.branch == state.branch && later.revision > state.revision);
        for (later, after) in later {
            let read = Read::Touched {
                partition: database(),
                branch: state.branch,
                from: state.revision,
                to: later.revision.min(last),
                after: None,
                limit: 100,
            };
            let touched = match partitions.read(&[read]).await.unwrap().remove(0) {
                Answer::Keys(keys) => keys,
                other => panic!("{other:?}"),
            };
            for name in NAMES {
                let is_touched = touched.iter().any(|key| key.name == name);
                assert!(is_touched || before.get(name) == after.get(name), "{name}");
            }
        }
    }
}

async fn what_a_branch_inherited_outlives_pruning(store: Arc<dyn Store>) {
    let server = Server::over(&store);
    server.run(vec![PartitionId::ROOT], Found).await.unwrap();
    let (object, branch) = (ObjectId::new(9), BranchId::new(5));
    let on_main = key(BranchId::MAIN, "t");
    let put = |body: &str| Act::Put(on_main.clone(), object, body.to_owned());
    act(&server, put("0")).await;
    act(&server, put("1")).await;
    act(&server, Act::Fork(branch, BranchId::MAIN, None)).await;
    act(&server, put("2")).await;
    act(&server, put("3")).await;
    let layers = Layers::now(&row(&server.partitions, branch).await);
    let prune = || server.partitions.prune(database(), Duration::ZERO);
    let history = || store.history_page(database(), None, 100);
    prune().await.unwrap();
    let bodies = |page: Vec<(Key, Entry, Revision)>| -> Vec<String> {
        let bodies = page.iter().map(|(_, entry, _)| entry.body.to_string());
        bodies.collect()
    };
    // The last version that ended has ended at the horizon: it went with the others.
    assert_eq!(bodies(history().await.unwrap()), ["1"]);
    assert_eq!(
        one(&server.partitions, &layers, "t").await.as_deref(),
        Some("1")
    );
    act(&server, Act::End(branch)).await;
    act(&server, put("4")).await;
    prune().await.unwrap();
    assert_eq!(bodies(history().await.unwrap()), [] as [String; 0]);
    assert_eq!(store.audit().await.unwrap(), []);
}

/// Both acts of one command.
struct Both(Act, Act);

impl Command for Both {
    type Outcome = Revision;

    fn name(&self) -> &'static str {
        "both"
    }

    fn reads(&self) -> Vec<Read> {
        Vec::new()
    }

    fn apply(&self, view: &mut View<'_>, context: &Context<'_>) -> Result<Revision, Stop> {
        self.0.apply(view, context)?;
        self.1.apply(view, context)
    }
}

async fn a_branch_made_and_ended_in_one_batch_is_gone(store: Arc<dyn Store>) {
    let server = Server::over(&store);
    server.run(vec![PartitionId::ROOT], Found).await.unwrap();
    let branch = BranchId::new(5);
    let both = Both(Act::Fork(branch, BranchId::MAIN, None), Act::End(branch));
    server.run(vec![database()], both).await.unwrap();
    let row = row(&server.partitions, branch).await;
    assert_eq!(row.ended, Some(row.head));
    let state = row.lineage[0];
    let pinned = server
        .partitions
        .read(&[Read::Pinned(database(), state)])
        .await;
    assert_eq!(pinned.unwrap(), [Answer::Pinned(false)]);
    assert_eq!(store.audit().await.unwrap(), []);
}

async fn a_branch_made_in_the_middle_of_a_batch_shows_what_stood_then(store: Arc<dyn Store>) {
    let server = Server::over(&store);
    server.run(vec![PartitionId::ROOT], Found).await.unwrap();
    let (object, branch) = (ObjectId::new(9), BranchId::new(5));
    let put = |name: &str, body: &str| Act::Put(key(BranchId::MAIN, name), object, body.to_owned());
    act(&server, put("t", "1")).await;
    let commits = server.faults.hits("commit", When::Before);
    let first = server.faults.pause("begin", When::Before, 1);
    let run = |act: Act| server.run(vec![database()], act);
    let begun = run(Act::Put(
        key(BranchId::MAIN, "u"),
        ObjectId::new(1),
        "0".to_owned(),
    ));
    let batch = async {
        first.arrived().await;
        let acts = [
            put("t", "2"),
            Act::Fork(branch, BranchId::MAIN, None),
            put("t", "3"),
            Act::Rename(key(branch, "t"), key(branch, "v")),
        ];
        let runs = futures::future::join_all(acts.map(run));
        let resumed = async { first.resume() };
        let (runs, ()) = tokio::join!(runs, resumed);
        assert!(runs.iter().all(Result::is_ok), "{runs:?}");
    };
    let (begun, ()) = tokio::join!(begun, batch);
    begun.unwrap();
    let committed = server.faults.hits("commit", When::Before) - commits;
    assert_eq!(committed, 2, "the four were one batch");
    let layers = Layers::now(&row(&server.partitions, branch).await);
    let shown = listed(&server.partitions, &layers, 10).await;
    let inherited = [("u", "0"), ("v", "2")];
    let inherited = inherited.map(|(name, body)| (name.to_owned(), body.to_owned()));
    assert_eq!(shown, BTreeMap::from(inherited));
    assert_eq!(store.audit().await.unwrap(), []);
}
