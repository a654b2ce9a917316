//! Each invariant of the audit finds what breaks it, on each engine.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_store::suite::world::{Command, World, key, object, put, table};
use anabranch_store::testing::{TestDatabase, sqlite_store};
use anabranch_store::{Class, Kind, LockMode, PostgresOptions, PostgresStore, Store};

/// What breaks which invariant. `{d}`, `{c}`, `{m}` are a database, its catalog and its metalake,
/// `{none}` sixteen zero bytes as a uuid.
const DAMAGE: &[(&str, &str)] = &[
    (
        "root-partition-lives",
        "UPDATE partition SET state = 2 WHERE id = 1152921504606846976",
    ),
    (
        "partition-hangs-below-its-parent-kind",
        "UPDATE partition SET parent = {m} WHERE id = {d}",
    ),
    (
        "live-partition-has-live-parent",
        "UPDATE partition SET state = 2 WHERE id = {c}",
    ),
    (
        "current-row-in-live-partition",
        "UPDATE partition SET state = 2 WHERE id = {d}",
    ),
    (
        "live-partition-has-its-container-entry",
        "DELETE FROM current WHERE object = {d}",
    ),
    (
        "container-entry-has-its-partition",
        "UPDATE partition SET state = 2 WHERE id = {d}",
    ),
    (
        "version-begins-within-the-clock",
        "UPDATE current SET from_rev = 9223372036854775000 WHERE name = 't'",
    ),
    (
        "version-begins-within-the-clock",
        "UPDATE history SET to_rev = 9223372036854775000 WHERE name = 't'",
    ),
    (
        "history-row-in-known-partition",
        "UPDATE history SET partition = 4611686018427387999 WHERE name = 't'",
    ),
    (
        "history-interval-not-empty",
        "UPDATE history SET to_rev = from_rev WHERE name = 't'",
    ),
    (
        "history-intervals-apart",
        "UPDATE history SET to_rev = to_rev + 1 WHERE name = 't'",
    ),
    (
        "history-before-the-current-version",
        "UPDATE history SET to_rev = to_rev + 1 WHERE name = 't'",
    ),
    (
        "current-version-is-the-last-change",
        "UPDATE current SET from_rev = from_rev - 1 WHERE name = 't'",
    ),
    (
        "current-version-is-the-last-change",
        "DELETE FROM change WHERE name = 'u'",
    ),
    (
        "current-version-names-the-changed-object",
        "UPDATE current SET object = object + 1000000 WHERE name = 't'",
    ),
    (
        "last-commit-in-the-log",
        "UPDATE partition SET last_commit = {none} WHERE id = {d}",
    ),
    (
        "change-within-the-last-commit",
        "UPDATE partition SET last_revision = last_revision - 1 WHERE id = {d}",
    ),
    (
        "scope-has-its-namespaces",
        "UPDATE current SET kind = 10, class = 2 WHERE name = 'b'",
    ),
    (
        "object-in-one-place",
        "UPDATE current SET object = (SELECT object FROM current WHERE name = 't') WHERE name = 'u'",
    ),
    (
        "entry-on-a-known-branch",
        "UPDATE current SET branch = 5 WHERE name = 't'",
    ),
    (
        "head-behind-its-entries",
        "INSERT INTO branch VALUES ({d}, 0, 1, '', NULL, 0)",
    ),
    (
        "head-behind-its-entries",
        "INSERT INTO branch VALUES ({d}, 5, 9223372036854775000, '0:1', NULL, 0)",
    ),
    (
        "main-has-no-lineage",
        "INSERT INTO branch VALUES ({d}, 5, 1, '', NULL, 0)",
    ),
    (
        "pin-on-a-known-branch",
        "INSERT INTO pin VALUES ({d}, 5, 1, 1)",
    ),
    (
        "class-fits-kind",
        "UPDATE current SET class = 1 WHERE name = 't'",
    ),
    (
        "horizon-within-the-clock",
        "UPDATE partition SET horizon = clock + 1 WHERE id = {d}",
    ),
    (
        "change-places-dense",
        "UPDATE change SET place = place + 1 WHERE name = 't'",
    ),
    (
        "one-commit-per-revision",
        "UPDATE change SET commit_id = {none} WHERE name = 'w'",
    ),
    (
        "operation-well-formed",
        "INSERT INTO operation VALUES ('k', 'p', 'f', 1, '{}', 2, 1)",
    ),
    (
        "task-well-formed",
        "INSERT INTO task VALUES ({none}, 'gc', '{}', 0, 1, 'owner', NULL)",
    ),
];

/// A sound store with something of everything; the ids that the damage speaks of.
async fn furnish(store: Arc<dyn Store>) -> [(&'static str, String); 3] {
    let world = World::new(store);
    let database = world.database("db").await;
    let catalog = world.partition(database).await.parent;
    let metalake = world.partition(catalog).await.parent;
    let namespace = |scope: &str, name: &str| {
        let key = key(database, scope, Class::Container, name);
        Command::Put(key, Kind::Namespace, object(), "{}".to_owned())
    };
    let t = table(database, "t");
    let id = object();
    let pair = ["v", "w"].map(|name| {
        let key = table(database, name);
        (key, Kind::IcebergTable, object(), "{}".to_owned())
    });
    let commands = [
        namespace("", "a"),
        namespace("a", "b"),
        put(
            &key(database, "a\u{1f}b", Class::Table, "x"),
            object(),
            "{}",
        ),
        put(&t, id, "1"),
        put(&t, id, "2"),
        put(&t, id, "3"),
        Command::PutAll(pair.to_vec()),
        put(&table(database, "u"), object(), "{}"),
    ];
    world.write(&[database], &commands).await;
    world.assert_sound().await;
    [
        ("{d}", database.0.to_string()),
        ("{c}", catalog.0.to_string()),
        ("{m}", metalake.0.to_string()),
    ]
}

fn fill(sql: &str, ids: &[(&'static str, String)], none: &str) -> String {
    ids.iter()
        .fold(sql.replace("{none}", none), |sql, (name, id)| {
            sql.replace(name, id)
        })
}

async fn found(store: &dyn Store) -> BTreeSet<&'static str> {
    let violations = store.audit().await.unwrap();
    violations.iter().map(|found| found.invariant).collect()
}

#[tokio::test]
async fn every_invariant_finds_what_breaks_it_on_sqlite() {
    for (invariant, sql) in DAMAGE {
        let folder = tempfile::tempdir().unwrap();
        let store = sqlite_store(folder.path()).unwrap();
        let ids = furnish(Arc::clone(&store)).await;
        let raw = rusqlite::Connection::open(folder.path().join("store.db")).unwrap();
        let sql = fill(sql, &ids, "zeroblob(16)");
        raw.execute_batch("DROP INDEX current_object").unwrap();
        raw.execute_batch(&sql).unwrap();
        let found = found(&*store).await;
        assert!(found.contains(invariant), "{sql} was seen as {found:?}");
    }
}

#[tokio::test]
async fn every_invariant_finds_what_breaks_it_on_postgres() {
    let database = TestDatabase::create().await;
    let options = PostgresOptions {
        migrate: true,
        mode: LockMode::Pessimistic,
        ..PostgresOptions::default()
    };
    let store = PostgresStore::connect(&database.url(), &options)
        .await
        .unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    let ids = furnish(Arc::clone(&store)).await;
    let client = database.client().await;
    let none = "'00000000-0000-0000-0000-000000000000'";
    let save = "CREATE SCHEMA saved; \
         CREATE TABLE saved.partition AS TABLE partition; \
         CREATE TABLE saved.current AS TABLE current; \
         CREATE TABLE saved.history AS TABLE history; \
         CREATE TABLE saved.change AS TABLE change; \
         ALTER TABLE current DROP CONSTRAINT current_object";
    let restore = "TRUNCATE partition, current, history, change, operation, task, branch, pin; \
         INSERT INTO partition TABLE saved.partition; \
         INSERT INTO current TABLE saved.current; \
         INSERT INTO history TABLE saved.history; \
         INSERT INTO change TABLE saved.change";
    client.batch_execute(save).await.unwrap();
    for (invariant, sql) in DAMAGE {
        client.batch_execute(restore).await.unwrap();
        assert_eq!(found(&*store).await, BTreeSet::new());
        let sql = fill(sql, &ids, none);
        client.batch_execute(&sql).await.unwrap();
        let found = found(&*store).await;
        assert!(found.contains(invariant), "{sql} was seen as {found:?}");
    }
    database.remove().await;
}
