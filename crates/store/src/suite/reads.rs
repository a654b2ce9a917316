//! What reads see.

use std::sync::Arc;

use super::world::{Command, World, fresh, key, object, put, table};
use crate::StoreTime;
use crate::{
    Answer, At, BranchId, Class, Key, Kind, Leaf, ObjectId, PartitionId, Path, Read, Revision,
    Store,
};

/// Names that sort by bytes and that a careless engine folds, trims or confuses.
const ODD_NAMES: &[&str] = &[
    " ",
    "!",
    "%",
    "'; drop table current; --",
    "A",
    "B",
    "Z",
    "_",
    "a",
    "a ",
    "a b",
    "a\u{1}",
    "a\u{7f}",
    "aa",
    "b",
    "z",
    "~",
    "\u{e4}",
    "\u{df}",
    "\u{3b1}",
    "\u{4e2d}\u{6587}",
    "\u{ff21}",
    "\u{1f600}",
];

fn range(database: PartitionId, after: Option<String>, limit: u32) -> Read {
    Read::Range {
        partition: database,
        branch: BranchId::MAIN,
        scope: String::new(),
        class: Class::Table,
        kinds: Vec::new(),
        after,
        limit,
    }
}

fn under(database: PartitionId, scope: &str, after: Option<&Key>, limit: u32) -> Read {
    Read::Under {
        partition: database,
        branch: BranchId::MAIN,
        scope: scope.to_owned(),
        after: after.map(|key| (key.scope.clone(), key.class, key.name.clone())),
        limit,
    }
}

fn names(answer: Answer) -> Vec<String> {
    match answer {
        Answer::Entries(entries) => entries.into_iter().map(|(key, _)| key.name).collect(),
        other => panic!("{other:?}"),
    }
}

fn keys(answer: Answer) -> Vec<Key> {
    match answer {
        Answer::Entries(entries) => entries.into_iter().map(|(key, _)| key).collect(),
        other => panic!("{other:?}"),
    }
}

async fn all_names(world: &World, at: At, database: PartitionId, page: u32) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    loop {
        let read = range(database, all.last().cloned(), page);
        let found = names(world.read_one(at, read).await);
        assert!(found.len() <= page as usize);
        if found.is_empty() {
            return all;
        }
        all.extend(found);
    }
}

/// Names are found under exactly the bytes that they were stored with, and listed in byte order.
pub async fn odd_names_are_kept_and_listed_in_byte_order(store: Arc<dyn Store>) {
    let world = World::new(store);
    let database = world.database("db").await;
    let mut commands: Vec<Command> = ODD_NAMES
        .iter()
        .map(|name| put(&table(database, name), object(), name))
        .collect();
    commands.reverse();
    let written = world.write(&[database], &commands).await;
    let mut expected = ODD_NAMES.to_vec();
    expected.sort_unstable();
    for page in [1, 3, 100] {
        assert_eq!(
            all_names(&world, At::Latest, database, page).await,
            expected
        );
        let at = At::Revision(written.last());
        assert_eq!(all_names(&world, at, database, page).await, expected);
    }
    for name in ODD_NAMES {
        let entry = world.get(&table(database, name)).await.unwrap();
        assert_eq!(&*entry.body, *name);
    }
    assert_eq!(world.get(&table(database, "zz")).await, None);
    world.assert_sound().await;
}

/// Every revision shows what stood then: before, between and after the versions of a key.
pub async fn a_revision_shows_what_stood_then(store: Arc<dyn Store>) {
    let world = World::new(store);
    let database = world.database("db").await;
    let t = table(database, "t");
    let u = table(database, "u");
    let mut states: Vec<(Revision, Option<String>, Vec<String>)> = Vec::new();
    let start = world.partition(database).await.clock;
    states.push((start, None, vec![]));
    let one = object();
    for step in 0..4 {
        let body = format!("v{step}");
        let done = world.write(&[database], &[put(&t, one, &body)]).await;
        states.push((done.last(), Some(body), vec!["t".into()]));
    }
    let done = world
        .write(&[database], &[Command::Remove(t.clone())])
        .await;
    states.push((done.last(), None, vec![]));
    let done = world.write(&[database], &[put(&u, object(), "u")]).await;
    states.push((done.last(), None, vec!["u".into()]));
    let again = object();
    let done = world.write(&[database], &[put(&t, again, "again")]).await;
    states.push((
        done.last(),
        Some("again".into()),
        vec!["t".into(), "u".into()],
    ));
    for (index, (revision, body, listed)) in states.iter().enumerate() {
        let upto = states
            .get(index + 1)
            .map_or(revision.0, |next| next.0.0 - 1);
        for at in [*revision, Revision(upto)] {
            let at = At::Revision(at);
            let entry = world.get_at(at, &t).await;
            assert_eq!(entry.map(|entry| entry.body.to_string()), *body, "{at:?}");
            assert_eq!(&all_names(&world, at, database, 1).await, listed, "{at:?}");
            let whole = names(world.read_one(at, under(database, "", None, 10)).await);
            assert_eq!(&whole, listed, "{at:?}");
        }
    }
    world.assert_sound().await;
}

/// A listing at a revision pages through names that stand, ended, and came later alike.
pub async fn pages_at_a_revision_are_complete(store: Arc<dyn Store>) {
    let world = World::new(store);
    let database = world.database("db").await;
    let name = |number: usize| format!("t{number:03}");
    let objects: Vec<ObjectId> = (0..40).map(|_| object()).collect();
    let put_all = |numbers: Vec<usize>, body: &str| {
        let puts = numbers.iter().map(|&number| {
            let key = table(database, &name(number));
            (key, Kind::IcebergTable, objects[number], body.to_owned())
        });
        Command::PutAll(puts.collect())
    };
    world
        .write(&[database], &[put_all((0..30).collect(), "1")])
        .await;
    let removals: Vec<Command> = (0..30)
        .step_by(3)
        .map(|number| Command::Remove(table(database, &name(number))))
        .collect();
    let pinned = world.write(&[database], &removals).await.last();
    let expected: Vec<String> = (0..30).filter(|n| n % 3 != 0).map(name).collect();
    world
        .write(&[database], &[put_all((10..20).collect(), "2")])
        .await;
    world
        .write(&[database], &[put_all((30..40).collect(), "1")])
        .await;
    let dropped: Vec<Command> = [1, 2, 28, 29]
        .map(|number| Command::Remove(table(database, &name(number))))
        .to_vec();
    world.write(&[database], &dropped).await;
    for page in [1, 7, 100] {
        assert_eq!(
            all_names(&world, At::Revision(pinned), database, page).await,
            expected
        );
    }
    let body = world
        .get_at(At::Revision(pinned), &table(database, "t010"))
        .await;
    assert_eq!(&*body.unwrap().body, "1");
    world.assert_sound().await;
}

/// A kind is found among many entries of another kind of the same class.
pub async fn a_page_can_ask_for_kinds(store: Arc<dyn Store>) {
    let world = World::new(store);
    let database = world.database("db").await;
    let commands: Vec<Command> = (0..20)
        .map(|number| {
            let kind = match number % 5 {
                0 => Kind::IcebergView,
                _ => Kind::IcebergTable,
            };
            let key = table(database, &format!("e{number:02}"));
            Command::Put(key, kind, object(), String::new())
        })
        .collect();
    let written = world.write(&[database], &commands).await;
    let ask = |kinds: Vec<Kind>, after: Option<&str>, limit| Read::Range {
        partition: database,
        branch: BranchId::MAIN,
        scope: String::new(),
        class: Class::Table,
        kinds,
        after: after.map(str::to_owned),
        limit,
    };
    for at in [At::Latest, At::Revision(written.last())] {
        let views = ask(vec![Kind::IcebergView], None, 3);
        assert_eq!(
            names(world.read_one(at, views).await),
            ["e00", "e05", "e10"]
        );
        let views = ask(vec![Kind::IcebergView], Some("e05"), 9);
        assert_eq!(names(world.read_one(at, views).await), ["e10", "e15"]);
        let both = ask(vec![Kind::IcebergView, Kind::IcebergTable], Some("e03"), 3);
        assert_eq!(names(world.read_one(at, both).await), ["e04", "e05", "e06"]);
        let none = ask(vec![Kind::Namespace], None, 3);
        assert!(names(world.read_one(at, none).await).is_empty());
    }
}

/// `Under` is the scope itself and everything below it, and no neighbour in the byte order.
pub async fn under_covers_a_scope_and_what_is_below(store: Arc<dyn Store>) {
    let world = World::new(store);
    let database = world.database("db").await;
    let namespace = |scope: &str, name: &str| {
        let key = key(database, scope, Class::Container, name);
        Command::Put(key, Kind::Namespace, object(), String::new())
    };
    let within = |scope: &str, name: &str| key(database, scope, Class::Table, name);
    let mut commands = vec![
        namespace("", "a"),
        namespace("", "a\u{1}"),
        namespace("", "a b"),
        namespace("", "ab"),
        namespace("a", "b"),
        namespace("a\u{1f}b", "c"),
    ];
    for scope in [
        "",
        "a",
        "a\u{1}",
        "a b",
        "ab",
        "a\u{1f}b",
        "a\u{1f}b\u{1f}c",
    ] {
        for name in ["t", "u"] {
            commands.push(put(&within(scope, name), object(), ""));
        }
    }
    let written = world.write(&[database], &commands).await;
    let container = |scope: &str, name: &str| key(database, scope, Class::Container, name);
    let expected = vec![
        container("a", "b"),
        within("a", "t"),
        within("a", "u"),
        container("a\u{1f}b", "c"),
        within("a\u{1f}b", "t"),
        within("a\u{1f}b", "u"),
        within("a\u{1f}b\u{1f}c", "t"),
        within("a\u{1f}b\u{1f}c", "u"),
    ];
    for at in [At::Latest, At::Revision(written.last())] {
        for page in [1, 2, 3, 5, 100] {
            let mut found: Vec<Key> = Vec::new();
            loop {
                let read = under(database, "a", found.last(), page);
                let more = keys(world.read_one(at, read).await);
                if more.is_empty() {
                    break;
                }
                found.extend(more);
            }
            assert_eq!(found, expected, "{at:?}, {page} a page");
        }
        let whole = keys(world.read_one(at, under(database, "", None, 100)).await);
        assert_eq!(whole.len(), commands.len());
        assert!(whole.is_sorted_by_key(|key| (key.scope.clone(), key.class, key.name.clone())));
    }
    world.assert_sound().await;
}

/// All reads of one call are answered in their order: entries, containers, rows, children, records.
pub async fn answers_come_in_the_order_of_the_reads(store: Arc<dyn Store>) {
    let world = World::new(store);
    let database = world.database("db").await;
    let parent = world.partition(database).await.parent;
    let other = world.database_in(parent, "db2").await;
    let t = table(database, "t");
    let written = world.write(&[database], &[put(&t, object(), "t")]).await;
    let reads = vec![
        Read::Container(other),
        Read::Point(table(database, "absent")),
        Read::Operation("absent".to_owned()),
        Read::Point(t.clone()),
        Read::Children(parent),
        Read::Container(database),
        range(database, None, 5),
        Read::Partition(PartitionId(parent.0 ^ 1)),
        Read::Point(t.clone()),
        Read::Container(PartitionId(parent.0 ^ 1)),
    ];
    for at in [At::Latest, At::Revision(written.last())] {
        let answers = world.read(at, reads.clone()).await;
        assert_eq!(names(answers[0].clone()), ["db2"]);
        assert_eq!(answers[1], Answer::Entry(None));
        assert_eq!(answers[2], Answer::Operation(None));
        assert!(matches!(&answers[3], Answer::Entry(Some(entry)) if &*entry.body == "t"));
        assert_eq!(answers[4], Answer::Partitions(vec![database, other]));
        assert_eq!(names(answers[5].clone()), ["db"]);
        assert_eq!(keys(answers[5].clone())[0].partition, parent);
        assert_eq!(names(answers[6].clone()), ["t"]);
        assert_eq!(answers[7], Answer::Partition(None));
        assert_eq!(answers[8], answers[3]);
        assert_eq!(answers[9], Answer::Entries(vec![]));
    }
}

/// Names resolve from the top down; a level is absent from the first missing name on.
pub async fn paths_resolve_from_the_top_down(store: Arc<dyn Store>) {
    let world = World::new(store);
    let database = world.database("db").await;
    let catalog = world.partition(database).await.parent;
    let metalake = world.partition(catalog).await.parent;
    let lake = format!("lake-{:x}", metalake.0);
    world
        .write(&[database], &[put(&table(database, "t"), object(), "body")])
        .await;
    let path = |levels: [Option<&str>; 3]| Path {
        metalake: lake.clone(),
        catalog: levels[0].map(str::to_owned),
        database: levels[1].map(str::to_owned),
        leaf: levels[2].map(|name| Leaf {
            scope: String::new(),
            class: Class::Table,
            name: name.to_owned(),
        }),
    };
    let mut paths = vec![
        path([Some("cat"), Some("db"), Some("t")]),
        path([Some("cat"), Some("db"), Some("absent")]),
        path([Some("cat"), Some("absent"), Some("t")]),
        path([Some("absent"), Some("db"), Some("t")]),
        path([Some("cat"), Some("db"), None]),
        path([None, None, None]),
    ];
    paths.push(Path {
        metalake: format!("absent-{}", fresh()),
        ..paths[0].clone()
    });
    let found = super::world::retry(|| world.store.resolve(&paths)).await;
    let depth: Vec<usize> = found
        .iter()
        .map(|found| {
            [
                &found.metalake,
                &found.catalog,
                &found.database,
                &found.leaf,
            ]
            .iter()
            .filter(|level| level.is_some())
            .count()
        })
        .collect();
    assert_eq!(depth, [4, 3, 2, 1, 3, 1, 0]);
    assert_eq!(&*found[0].leaf.as_ref().unwrap().body, "body");
    assert_eq!(
        found[0].database.as_ref().unwrap().object,
        ObjectId::from(database)
    );
    assert_eq!(found[4].partition.as_ref().unwrap().id, database);
    assert_eq!(found[2].partition, None);
    let now = super::world::retry(|| world.store.now()).await;
    assert!(
        found
            .iter()
            .all(|one| StoreTime(0) < one.now && one.now <= now)
    );
}
