//! Random histories of branches, tags and merges against a naive implementation: a graph of
//! commits, each with a full copy of its map.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anabranch_files::{Files, FilesOptions};
use anabranch_partition::{
    Command, Config, Context, Layers, Listing, Merged as Pages, Partitions, Request, Stop, View,
};
use anabranch_store::testing::{sqlite_store, with_postgres_store};
use anabranch_store::{
    Answer, BranchId, BranchRow, BranchState, Class, Key, Kind, LockMode, ObjectId, PartitionId,
    PartitionKind, Read, Revision, Store,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::command::{CreateReference, DeleteReference, MergeBranch, Merged};
use crate::place::Container;
use crate::reference::body::{MAIN, ReferenceKind, ReferenceName, named_state};
use crate::reference::plan::{Mode, Modes, Outcome};
use crate::service::{Catalog, Limits};

mod naive;
mod reads;

use naive::{Map, Naive, Node};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Makes the database, or changes one name of a branch.
enum Write {
    Found,
    Put(Key, i64, String),
    Remove(Key),
    Rename(Key, Key),
}

impl Command for Write {
    type Outcome = Revision;

    fn name(&self) -> &'static str {
        "write"
    }

    fn reads(&self) -> Vec<Read> {
        Vec::new()
    }

    fn apply(&self, view: &mut View<'_>, context: &Context<'_>) -> Result<Revision, Stop> {
        match self {
            Write::Found => {
                let mut parent = PartitionId::ROOT;
                for (kind, entry) in [
                    (PartitionKind::Metalake, Kind::Metalake),
                    (PartitionKind::Catalog, Kind::Catalog),
                    (PartitionKind::Database, Kind::Namespace),
                ] {
                    let id = PartitionId::new(kind, 1);
                    view.create_partition(id, parent);
                    let key = Key {
                        partition: parent,
                        class: Class::Container,
                        ..key(BranchId::MAIN, "db")
                    };
                    let body = r#"{"location":"file:///nowhere"}"#;
                    view.put(key, entry, id.into(), body.into())?;
                    parent = id;
                }
            }
            Write::Put(key, object, body) => {
                let kind = Kind::IcebergTable;
                view.put(key.clone(), kind, ObjectId(*object), body.as_str().into())?;
            }
            Write::Remove(key) => drop(view.remove(key.clone())?),
            Write::Rename(from, to) => {
                let body = view.get(from)?.map(|entry| entry.body);
                view.rename(from.clone(), to.clone(), body.unwrap_or_default())?;
            }
        }
        Ok(context.revision)
    }
}

fn database() -> Container {
    Container::new(PartitionId::new(PartitionKind::Database, 1), "db")
}

fn key(branch: BranchId, name: &str) -> Key {
    Key {
        partition: database().partition,
        branch,
        scope: String::new(),
        class: Class::Table,
        name: name.to_owned(),
    }
}

fn reference(kind: ReferenceKind, name: &str) -> ReferenceName {
    ReferenceName {
        kind,
        name: name.to_owned(),
    }
}

/// `None` if it is refused.
async fn run<C: Command>(
    partitions: &Partitions,
    at: PartitionId,
    command: C,
) -> Option<C::Outcome> {
    let request = Request {
        command,
        partitions: vec![at],
        principal: "tester".to_owned(),
        operation: None,
        patience: Duration::from_secs(30),
    };
    match partitions.run(request).await {
        Ok(accepted) => Some(accepted.outcome),
        Err(anabranch_partition::RunError::Refused(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

async fn branch_row(partitions: &Partitions, branch: BranchId) -> BranchRow {
    let read = [Read::Branch(database().partition, branch)];
    match partitions.read(&read).await.unwrap().remove(0) {
        Answer::Branch(Some(row)) => row,
        other => panic!("{other:?}"),
    }
}

async fn shown(partitions: &Partitions, branch: BranchId, at: Option<Revision>) -> Map {
    let row = branch_row(partitions, branch).await;
    let layers = match at {
        Some(revision) => Layers::at(&row, revision),
        None => Layers::now(&row),
    };
    let listing = Listing::Range {
        scope: String::new(),
        class: Class::Table,
        kinds: Vec::new(),
        after: None,
        limit: 100,
    };
    let mut pages = Pages::new(&layers, listing);
    while pages.result().is_none() {
        let (places, reads): (Vec<usize>, Vec<Read>) = pages.wanted().into_iter().unzip();
        let answers = partitions.read(&reads).await.unwrap();
        for (place, answer) in places.into_iter().zip(answers) {
            match answer {
                Answer::Entries(entries) => pages.supply(place, &entries),
                other => panic!("{other:?}"),
            }
        }
    }
    let found = pages.result().unwrap().into_iter();
    found
        .map(|(key, entry)| (key.name, (entry.object.0, entry.body.to_string())))
        .collect()
}

struct Run {
    catalog: Catalog,
    partitions: Partitions,
    naive: Naive,
    random: StdRng,
    next: i64,
    log: Vec<String>,
    merges: [u64; 3],
    retired: u64,
}

impl Run {
    async fn new(seed: u64, store: Arc<dyn Store>) -> Run {
        let partitions = Partitions::new(store, Config::default());
        let founded = run(&partitions, PartitionId::ROOT, Write::Found).await;
        founded.unwrap();
        let mut naive = Naive::default();
        let state = BranchState {
            branch: BranchId::MAIN,
            revision: branch_row(&partitions, BranchId::MAIN).await.head,
        };
        let root = naive.add(Map::new(), Vec::new(), state);
        let main = (BranchId::MAIN, root);
        naive.branches.insert(MAIN.to_owned(), main);
        let files = Files::new(FilesOptions::default());
        Run {
            catalog: Catalog::new(partitions.clone(), files, Limits::default()),
            partitions,
            naive,
            random: StdRng::seed_from_u64(seed),
            next: 100,
            log: Vec::new(),
            merges: [0; 3],
            retired: 0,
        }
    }

    async fn on_database<C: Command>(&self, command: C) -> Option<C::Outcome> {
        run(&self.partitions, database().partition, command).await
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.random.random_range(0..from.len())].clone()
    }

    fn branch(&mut self) -> String {
        let names: Vec<String> = self.naive.branches.keys().cloned().collect();
        self.pick(&names)
    }

    async fn step(&mut self) {
        match self.random.random_range(0..20) {
            0 | 1 if self.naive.branches.len() < 6 => self.fork().await,
            2 => self.tag().await,
            3 if self.naive.branches.len() > 3 => self.delete().await,
            4..=9 => self.merge().await,
            10 => {
                self.catalog.core.release().await.unwrap();
                let pruned = self.partitions.prune(database().partition, Duration::ZERO);
                pruned.await.unwrap();
                let retired = self.catalog.core.retire().await.unwrap();
                self.retired += retired;
                self.log
                    .push(format!("pruned, {retired} rows of branches retired"));
            }
            _ => self.write().await,
        }
    }

    async fn write(&mut self) {
        let name = self.branch();
        let (branch, node) = self.naive.branches[&name];
        let mut map = self.naive.nodes[node].map.clone();
        let (one, other) = (self.pick(&NAMES), self.pick(&NAMES));
        self.next += 1;
        let stands = map.contains_key(one);
        let write = match self.random.random_range(0..6) {
            0 if stands => {
                map.remove(one);
                Write::Remove(key(branch, one))
            }
            1 | 2 if stands && !map.contains_key(other) => {
                let thing = map.remove(one).unwrap();
                map.insert(other.to_owned(), thing);
                Write::Rename(key(branch, one), key(branch, other))
            }
            _ => {
                let object = map.get(one).map_or(self.next, |(object, _)| *object);
                // Few contents, so that two branches sometimes come to the same.
                let body = self.random.random_range(0..4).to_string();
                map.insert(one.to_owned(), (object, body.clone()));
                Write::Put(key(branch, one), object, body)
            }
        };
        self.log.push(format!("write on {name}: {map:?}"));
        let revision = self.on_database(write).await.unwrap();
        let state = BranchState { branch, revision };
        let node = self.naive.add(map, vec![node], state);
        self.naive.branches.insert(name, (branch, node));
    }

    fn source(&mut self) -> (ReferenceName, usize) {
        let tags: Vec<String> = self.naive.tags.keys().cloned().collect();
        if !tags.is_empty() && self.random.random_bool(0.2) {
            let tag = self.pick(&tags);
            let node = self.naive.tags[&tag];
            return (reference(ReferenceKind::Tag, &tag), node);
        }
        let branch = self.branch();
        let node = self.naive.branches[&branch].1;
        (reference(ReferenceKind::Branch, &branch), node)
    }

    async fn make(&mut self, kind: ReferenceKind, source: ReferenceName) -> (String, BranchId) {
        self.next += 1;
        let number = self.next.unsigned_abs();
        let name = format!("r{number}");
        self.log.push(format!("{kind:?} {name} of {}", source.name));
        let branch = BranchId::new(number);
        let command = CreateReference {
            database: database(),
            new: reference(kind, &name),
            source,
            state: None,
            expected: None,
            object: ObjectId::new(number),
            branch,
        };
        self.on_database(command).await.unwrap();
        (name, branch)
    }

    async fn fork(&mut self) {
        let (source, node) = self.source();
        let (name, branch) = self.make(ReferenceKind::Branch, source).await;
        self.naive.branches.insert(name, (branch, node));
    }

    async fn tag(&mut self) {
        let (source, node) = self.source();
        let (name, _) = self.make(ReferenceKind::Tag, source).await;
        self.naive.tags.insert(name, node);
    }

    async fn delete(&mut self) {
        let name = self.branch();
        if name == MAIN {
            return;
        }
        self.log.push(format!("delete {name}"));
        let command = DeleteReference {
            database: database(),
            name: name.clone(),
            kind: Some(ReferenceKind::Branch),
            expected: None,
        };
        self.on_database(command).await.unwrap();
        self.naive.branches.remove(&name);
    }

    fn modes(&mut self) -> Modes {
        let all = [Mode::Normal, Mode::Normal, Mode::Force, Mode::Drop];
        let mut tables = BTreeMap::new();
        for name in NAMES {
            if self.random.random_bool(0.1) {
                tables.insert(name.to_owned(), self.pick(&all));
            }
        }
        Modes {
            default: self.pick(&all),
            tables,
        }
    }

    async fn merge(&mut self) {
        let (source, from) = self.source();
        let target = self.branch();
        let (branch, into) = self.naive.branches[&target];
        let modes = self.modes();
        let line = format!("merge of {} into {target}, {modes:?}", source.name);
        self.log.push(line);
        let command = MergeBranch {
            database: database(),
            target: target.clone(),
            source,
            state: None,
            expected: None,
            modes: modes.clone(),
            dry_run: false,
        };
        let merged = self.on_database(command).await;
        if self.naive.ancestors(into).contains(&from) {
            assert_eq!(merged.unwrap().tables, [], "{:#?}", self.log);
            self.merges[0] += 1;
            return;
        }
        let expected = self.naive.merge(from, into, &modes);
        let found = merged.as_ref().map(comparable);
        let wanted = expected.as_ref();
        let wanted = wanted.map(|wanted| (wanted.bases.clone(), wanted.outcomes.clone()));
        assert_eq!(found, wanted, "{:#?}", self.log);
        self.merges[1 + usize::from(merged.is_none())] += 1;
        if let (Some(expected), Some(merged)) = (expected, merged) {
            let state = named_state(&merged.revision).unwrap();
            let node = self.naive.add(expected.map, vec![into, from], state);
            self.naive.branches.insert(target, (branch, node));
        }
    }

    async fn compare(&self) {
        for (name, (branch, node)) in &self.naive.branches {
            let map = shown(&self.partitions, *branch, None).await;
            let wanted = &self.naive.nodes[*node].map;
            assert_eq!(map, *wanted, "{name}: {:#?}", self.log);
        }
        for (name, node) in &self.naive.tags {
            let Node { map, state, .. } = &self.naive.nodes[*node];
            let found = shown(&self.partitions, state.branch, Some(state.revision)).await;
            assert_eq!(found, *map, "{name}: {:#?}", self.log);
        }
    }
}

fn comparable(merged: &Merged) -> (BTreeSet<String>, BTreeMap<String, Outcome>) {
    let is_change = |outcome| !matches!(outcome, Outcome::Unchanged | Outcome::Kept);
    let tables = merged.tables.iter().filter(|one| is_change(one.outcome));
    let outcomes = tables.map(|one| (one.table.clone(), one.outcome));
    (merged.bases.iter().cloned().collect(), outcomes.collect())
}

/// What the runs of some seeds came to.
#[derive(Debug, Default)]
struct Sum {
    /// Merged before, merged, refused.
    merges: [u64; 3],
    retired: u64,
}

impl Sum {
    async fn add(&mut self, seed: u64, store: Arc<dyn Store>) {
        let mut run = Run::new(seed, store).await;
        for _ in 0..20 {
            for _ in 0..3 {
                run.step().await;
            }
            run.compare().await;
            run.compare_reads().await;
        }
        let violations = run.partitions.store().audit().await.unwrap();
        assert_eq!(violations, [], "{:#?}", run.log);
        self.retired += run.retired;
        for (sum, of_run) in self.merges.iter_mut().zip(run.merges) {
            *sum += of_run;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merges_are_those_of_a_graph_of_full_copies() {
    let mut sum = Sum::default();
    for seed in 0..30 {
        let folder = tempfile::tempdir().unwrap();
        sum.add(seed, sqlite_store(folder.path()).unwrap()).await;
    }
    println!("{sum:?}");
    assert!(sum.retired > 5, "{sum:?}");
    assert!(sum.merges.iter().all(|count| *count > 50), "{sum:?}");
}

async fn merges_on_postgres_are_those_of_a_graph(mode: LockMode) {
    for seed in 30..33 {
        let run = async |store: Arc<dyn Store>| {
            let mut sum = Sum::default();
            sum.add(seed, store).await;
            assert!(sum.merges.iter().sum::<u64>() > 5, "{sum:?}");
        };
        with_postgres_store(mode, run).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merges_on_postgres_are_those_of_a_graph_of_full_copies() {
    merges_on_postgres_are_those_of_a_graph(LockMode::Pessimistic).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merges_on_postgres_optimistic_are_those_of_a_graph_of_full_copies() {
    merges_on_postgres_are_those_of_a_graph(LockMode::Optimistic).await;
}
