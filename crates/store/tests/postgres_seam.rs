//! The locking seam on PostgreSQL, as PostgreSQL itself sees it: who waits, who loses, and what
//! becomes of a COMMIT whose answer is lost.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anabranch_store::suite::world::{Command, World, key, object, put, table};
use anabranch_store::testing::TestDatabase;
use anabranch_store::{
    Answer, At, BranchId, Class, CommitId, ConflictReason, LockMode, PartitionId, Read, Revision,
    StoreError, Transaction, WriteSet,
};
use support::{Proxy, open, open_with, wait_until_blocked, wait_until_written};

fn reason(error: &StoreError) -> Option<ConflictReason> {
    match error {
        StoreError::Conflict { reason, .. } => Some(*reason),
        _ => None,
    }
}

/// A commit that only moves the clock of one of the held partitions.
fn tick(transaction: &dyn Transaction, partition: PartitionId) -> WriteSet {
    let mut held = transaction.partitions().iter();
    let mut row = held.find(|row| row.id == partition).unwrap().clone();
    row.clock = Revision(row.clock.0 + 1);
    let mut writes = WriteSet::empty(CommitId::random());
    writes.partitions.push(row);
    writes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_holder_waits_and_sees_what_the_first_committed() {
    let database = TestDatabase::create().await;
    let client = database.client().await;
    let world = World::new(open(&database, LockMode::Pessimistic).await);
    let one = world.database("one").await;
    let other = world.database("other").await;
    let t = table(one, "t");
    let id = object();
    world.write(&[one], &[put(&t, id, "v1")]).await;
    let first = world.store.begin(&[one]).await.unwrap();
    let waiting = tokio::spawn({
        let (store, t) = (Arc::clone(&world.store), t.clone());
        async move {
            let mut second = store.begin(&[t.partition]).await.unwrap();
            let clock = second.partitions()[0].clock;
            let answers = second.read(At::Latest, &[Read::Point(t)]).await.unwrap();
            second.rollback().await;
            (clock, answers)
        }
    });
    wait_until_blocked(&client, 1).await;
    // Whoever holds another partition doesn't meet them.
    let stranger = world.store.begin(&[other]).await.unwrap();
    let writes = tick(&*stranger, other);
    stranger.commit(&writes).await.unwrap();
    let mut writes = tick(&*first, one);
    let mut answers = vec![];
    if let Answer::Entry(Some(mut entry)) = world.read_one(At::Latest, Read::Point(t.clone())).await
    {
        entry.body = "v2".into();
        answers.push(Answer::Entry(Some(entry.clone())));
        writes.upserts.push((t, entry));
    }
    first.commit(&writes).await.unwrap();
    // Not the row of the lock's time with the entry of the statement's start.
    let (clock, found) = waiting.await.unwrap();
    assert_eq!(clock, writes.partitions[0].clock);
    assert_eq!(found, answers);
    database.remove().await;
}

/// e3, the trap: after a wait, a statement that locks and reads has the new row of what it locked,
/// and the old ones of everything else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_statement_that_locks_and_reads_sees_two_times() {
    let database = TestDatabase::create().await;
    let client = database.client().await;
    let world = World::new(open(&database, LockMode::Pessimistic).await);
    let one = world.database("one").await;
    let (t, id) = (table(one, "t"), object());
    world.write(&[one], &[put(&t, id, "v1")]).await;
    let first = world.store.begin(&[one]).await.unwrap();
    let waiting = tokio::spawn({
        let session = database.client().await;
        async move {
            let both = "WITH held AS MATERIALIZED (\
                 SELECT clock FROM partition WHERE id = $1 FOR UPDATE) \
                 SELECT held.clock, c.body FROM held, current c \
                 WHERE c.partition = $1 AND c.name = 't'";
            let found = session.query_one(both, &[&one.0]).await.unwrap();
            (Revision(found.get(0)), found.get::<_, String>(1))
        }
    });
    wait_until_blocked(&client, 1).await;
    let mut writes = tick(&*first, one);
    let mut entry = world.get(&t).await.unwrap();
    entry.body = "v2".into();
    writes.upserts.push((t, entry));
    first.commit(&writes).await.unwrap();
    let (clock, body) = waiting.await.unwrap();
    assert_eq!((clock, body.as_str()), (writes.partitions[0].clock, "v1"));
    database.remove().await;
}

/// e5: what one call reads is one state, however far apart its statements come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_call_sees_a_commit_of_two_partitions_as_a_whole() {
    assert_eq!(read_around_a_commit(|_| {}).await, ["v1", "v1"]);
}

/// The trap.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_snapshot_one_call_sees_half_of_a_commit() {
    let mut torn = read_around_a_commit(|proxy| proxy.control.allow_no_snapshots()).await;
    // Whichever statement was ready first went first.
    torn.sort();
    assert_eq!(torn, ["v1", "v2"]);
}

/// Reads of two partitions in one call, while a commit changes both between the two statements.
async fn read_around_a_commit(adapt: impl FnOnce(&Proxy)) -> [String; 2] {
    let database = TestDatabase::create().await;
    let world = World::new(open(&database, LockMode::Pessimistic).await);
    let (one, two) = (world.database("one").await, world.database("two").await);
    let [a, b] = [table(one, "t"), table(two, "t")];
    let ids = [object(), object()];
    let both = |body| [put(&a, ids[0], body), put(&b, ids[1], body)];
    world.write(&[one, two], &both("v1")).await;
    let proxy = Proxy::start(&database.url());
    let through = open_with(&proxy.url, LockMode::Pessimistic, |_| {}).await;
    adapt(&proxy);
    proxy.control.hold_second_read();
    let reading = tokio::spawn(async move {
        let rest = Read::Range {
            partition: two,
            branch: BranchId::MAIN,
            scope: String::new(),
            class: Class::Table,
            kinds: vec![],
            after: None,
            limit: 10,
        };
        let reads = [Read::Point(table(one, "t")), rest];
        through.read(At::Latest, &reads).await.unwrap()
    });
    proxy.control.something_is_held().await;
    world.write(&[one, two], &both("v2")).await;
    proxy.control.release();
    let answers = reading.await.unwrap();
    let bodies = answers.iter().map(|answer| match answer {
        Answer::Entry(Some(entry)) => entry.body.to_string(),
        Answer::Entries(entries) => entries[0].1.body.to_string(),
        other => panic!("{other:?}"),
    });
    let bodies: Vec<String> = bodies.collect();
    database.remove().await;
    bodies.try_into().unwrap()
}

#[tokio::test]
async fn the_optimistic_loser_gets_a_serialization_conflict() {
    let database = TestDatabase::create().await;
    let world = World::new(open(&database, LockMode::Optimistic).await);
    let one = world.database("one").await;
    let other = world.database("other").await;
    let first = world.store.begin(&[one]).await.unwrap();
    let second = world.store.begin(&[one]).await.unwrap();
    let stranger = world.store.begin(&[other]).await.unwrap();
    let writes = tick(&*first, one);
    first.commit(&writes).await.unwrap();
    let writes = tick(&*second, one);
    let error = second.commit(&writes).await.unwrap_err();
    assert_eq!(
        reason(&error),
        Some(ConflictReason::Serialization),
        "{error}"
    );
    let writes = tick(&*stranger, other);
    stranger.commit(&writes).await.unwrap();
    world.assert_sound().await;
    database.remove().await;
}

/// e2: what a decision rests on is held, and guarded though it doesn't change.
#[tokio::test]
async fn a_partition_that_a_decision_rests_on_is_guarded() {
    let database = TestDatabase::create().await;
    let world = World::new(open(&database, LockMode::Optimistic).await);
    let child = world.database("child").await;
    let parent = world.partition(child).await.parent;
    let create = world.store.begin(&[parent, child]).await.unwrap();
    let disable = world.store.begin(&[parent]).await.unwrap();
    let writes = tick(&*disable, parent);
    disable.commit(&writes).await.unwrap();
    let writes = tick(&*create, child);
    let error = create.commit(&writes).await.unwrap_err();
    assert_eq!(
        reason(&error),
        Some(ConflictReason::Serialization),
        "{error}"
    );
    // Nothing at all to write still guards.
    let looks = world.store.begin(&[child]).await.unwrap();
    let writer = world.store.begin(&[child]).await.unwrap();
    let writes = tick(&*writer, child);
    writer.commit(&writes).await.unwrap();
    let nothing = WriteSet::empty(CommitId::random());
    let error = looks.commit(&nothing).await.unwrap_err();
    assert_eq!(
        reason(&error),
        Some(ConflictReason::Serialization),
        "{error}"
    );
    database.remove().await;
}

/// e6: locks taken against the global order; the database chooses a victim, which may try again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_has_a_victim_that_may_try_again() {
    let database = TestDatabase::create().await;
    let world = World::new(open(&database, LockMode::Pessimistic).await);
    let one = world.database("one").await;
    let two = world.database("two").await;
    let mut first = world.store.begin(&[one]).await.unwrap();
    let mut second = world.store.begin(&[two]).await.unwrap();
    let crossing = tokio::spawn(async move {
        let outcome = first.lock(&[two]).await;
        drop(first);
        outcome
    });
    let other = second.lock(&[one]).await;
    drop(second);
    let outcomes = [crossing.await.unwrap(), other];
    let victims: Vec<_> = outcomes.iter().filter_map(|o| o.as_ref().err()).collect();
    assert_eq!(victims.len(), 1);
    assert_eq!(reason(victims[0]), Some(ConflictReason::Deadlock));
    world
        .write(&[one, two], &[put(&table(one, "t"), object(), "v")])
        .await;
    database.remove().await;
}

#[tokio::test]
async fn who_waits_too_long_loses_and_the_connection_lives_on() {
    let database = TestDatabase::create().await;
    let world = World::new(open(&database, LockMode::Pessimistic).await);
    let one = world.database("one").await;
    let hasty = open_with(&database.url(), LockMode::Pessimistic, |options| {
        options.lock_timeout = Duration::from_millis(50);
        options.pool_size = 1;
    })
    .await;
    let holder = world.store.begin(&[one]).await.unwrap();
    for _ in 0..3 {
        let error = hasty.begin(&[one]).await.err().unwrap();
        assert_eq!(reason(&error), Some(ConflictReason::LockTimeout), "{error}");
    }
    holder.rollback().await;
    let free = hasty.begin(&[one]).await.unwrap();
    let error = {
        let impatient = open_with(&database.url(), LockMode::Pessimistic, |options| {
            options.pool_size = 1;
            options.wait = Duration::from_millis(200);
        })
        .await;
        let _only = impatient.begin(&[PartitionId::ROOT]).await.unwrap();
        impatient.begin(&[PartitionId::ROOT]).await.err().unwrap()
    };
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    free.rollback().await;
    database.remove().await;
}

/// e8b: a server that hangs with a partition held loses it after the idle timeout.
#[tokio::test]
async fn a_frozen_holder_loses_its_partition() {
    for mode in [LockMode::Pessimistic, LockMode::Optimistic] {
        let database = TestDatabase::create().await;
        let world = World::new(open(&database, mode).await);
        let one = world.database("one").await;
        let frozen = open_with(&database.url(), mode, |options| {
            options.idle_in_transaction_timeout = Duration::from_millis(300);
        })
        .await;
        let mut lost = frozen.begin(&[one]).await.unwrap();
        let writes = tick(&*lost, one);
        let next = world.store.begin(&[one]).await.unwrap();
        let ticked = tick(&*next, one);
        next.commit(&ticked).await.unwrap();
        if mode == LockMode::Pessimistic {
            let error = lost
                .read(At::Latest, &[Read::Partition(one)])
                .await
                .unwrap_err();
            assert_eq!(
                reason(&error),
                Some(ConflictReason::ConnectionLost),
                "{error}"
            );
        }
        let error = lost.commit(&writes).await.unwrap_err();
        assert!(!error.is_unknown(), "{error}");
        assert_eq!(world.partition(one).await.clock, ticked.partitions[0].clock);
        database.remove().await;
    }
}

/// e7b: the COMMIT is on its way when its server is cut off. Who asks for it without the partition
/// would hear "absent"; who takes the partition first waits, and hears "applied".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delayed_commit_is_found_under_the_same_partition() {
    for mode in [LockMode::Pessimistic, LockMode::Optimistic] {
        let database = TestDatabase::create().await;
        let client = database.client().await;
        let world = World::new(open(&database, mode).await);
        let one = world.database("one").await;
        let proxy = Proxy::start(&database.url());
        let cut_off = open_with(&proxy.url, mode, |_| {}).await;
        // One commit through the proxy, so that its statements are prepared.
        let through = World::new(Arc::clone(&cut_off));
        let t = table(one, "t");
        let id = object();
        let before = through.write(&[one], &[put(&t, id, "v1")]).await;
        let transaction = cut_off.begin(&[one]).await.unwrap();
        let row = transaction.partitions()[0].clone();
        let revision = Revision::after(row.clock, transaction.now());
        let writes = {
            let mut entry = world.get(&t).await.unwrap();
            let mut writes = WriteSet::empty(CommitId::random());
            writes.history.push((t.clone(), entry.clone(), revision));
            entry.from = revision;
            entry.version += 1;
            let changes = world
                .store
                .changes_between(one, Revision(before.last().0 - 1), before.last(), None, 1)
                .await
                .unwrap();
            let mut change = changes[0].clone();
            change.revision = revision;
            change.commit = writes.commit;
            writes.changes.push(change);
            writes.upserts.push((t.clone(), entry));
            let mut row = row;
            (row.clock, row.last_revision, row.last_commit) = (revision, revision, writes.commit);
            writes.partitions.push(row);
            writes
        };
        proxy.control.hold_commit();
        let committing = tokio::spawn({
            let writes = writes.clone();
            async move { transaction.commit(&writes).await }
        });
        proxy.control.something_is_held().await;
        let error = committing.await.unwrap().unwrap_err();
        assert!(error.is_unknown(), "{error}");
        let plain = world.partition(one).await;
        assert_ne!(plain.last_commit, writes.commit, "a plain look says absent");
        // Before it has written, an optimistic holder wouldn't be waited for: it would lose.
        wait_until_written(&client).await;
        let looking = tokio::spawn({
            let (store, commit) = (Arc::clone(&world.store), writes.commit);
            async move {
                loop {
                    let mut transaction = store.begin(&[one]).await?;
                    let is_there = transaction.holds_commit(one, revision, commit).await?;
                    let guard = WriteSet::empty(CommitId::random());
                    match transaction.commit(&guard).await {
                        Ok(()) => return Ok::<bool, StoreError>(is_there),
                        Err(error) if error.is_retryable() => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        });
        wait_until_blocked(&client, 1).await;
        proxy.control.release();
        assert!(looking.await.unwrap().unwrap(), "{mode:?}");
        world.assert_sound().await;
        database.remove().await;
    }
}

/// The bar: at most 6 statements and 3 round trips alone, half a statement each of 32.
#[tokio::test]
async fn a_commit_is_few_statements_and_three_round_trips() {
    for mode in [LockMode::Pessimistic, LockMode::Optimistic] {
        let database = TestDatabase::create().await;
        let proxy = Proxy::start(&database.url());
        let store = open_with(&proxy.url, mode, |options| options.pool_size = 1).await;
        let world = World::new(Arc::clone(&store));
        let one = world.database("one").await;
        let tables: Vec<_> = (0..32).map(|_| object()).collect();
        let commands = |count: usize| -> Vec<Command> {
            (0..count)
                .map(|index| put(&table(one, &format!("t{index}")), tables[index], "v"))
                .collect()
        };
        for count in [1, 32] {
            world.write(&[one], &commands(count)).await;
            world.write(&[one], &commands(count)).await;
            let statements = store.statements();
            let trips = proxy.control.round_trips.load(Ordering::SeqCst);
            world.write(&[one], &commands(count)).await;
            assert_eq!(store.statements() - statements, 3, "lock, read, write");
            assert_eq!(proxy.control.round_trips.load(Ordering::SeqCst) - trips, 3);
        }
        database.remove().await;
    }
}

/// A statement that fails takes everything with it, though COMMIT was sent behind it.
#[tokio::test]
async fn a_commit_behind_a_failed_statement_is_no_success() {
    for mode in [LockMode::Pessimistic, LockMode::Optimistic] {
        let database = TestDatabase::create().await;
        let world = World::new(open(&database, mode).await);
        let one = world.database("one").await;
        let id = object();
        world.write(&[one], &[put(&table(one, "t"), id, "v")]).await;
        let twice = world
            .try_write(&[one], &[put(&table(one, "u"), id, "v")])
            .await;
        assert_eq!(reason(&twice.unwrap_err()), Some(ConflictReason::UniqueKey));
        assert_eq!(world.get(&table(one, "u")).await, None);
        // A read that PostgreSQL refuses leaves nothing to commit.
        let mut transaction = world.store.begin(&[one]).await.unwrap();
        let bad = key(one, "", Class::Table, "nul\0");
        let refused = transaction.read(At::Latest, &[Read::Point(bad)]).await;
        assert!(matches!(refused, Err(StoreError::Failed { .. })));
        let writes = tick(&*transaction, one);
        let error = transaction.commit(&writes).await.unwrap_err();
        assert!(matches!(error, StoreError::Failed { .. }), "{error}");
        world.assert_sound().await;
        database.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_number_of_servers_start_at_once_on_an_empty_database() {
    for mode in [LockMode::Pessimistic, LockMode::Optimistic] {
        let database = TestDatabase::create().await;
        let starts: Vec<_> = (0..8)
            .map(|_| {
                let url = database.url();
                tokio::spawn(async move { open_with(&url, mode, |o| o.pool_size = 2).await })
            })
            .collect();
        for start in starts {
            let world = World::new(start.await.unwrap());
            assert_eq!(
                world.partition(PartitionId::ROOT).await.clock,
                Revision::ZERO
            );
        }
        database.remove().await;
    }
}

/// Whoever dies while migrating leaves nothing that keeps the next one away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_died_blocks_nobody() {
    let database = TestDatabase::create().await;
    let dying = database.client().await;
    let watching = database.client().await;
    dying
        .batch_execute(
            "CREATE TABLE schema_version (\
                 only_row int PRIMARY KEY CHECK (only_row = 1), version bigint NOT NULL);
             INSERT INTO schema_version VALUES (1, 0);
             BEGIN; UPDATE schema_version SET version = version; CREATE TABLE partition (id int)",
        )
        .await
        .unwrap();
    let url = database.url();
    let start = tokio::spawn(async move { open_with(&url, LockMode::Pessimistic, |_| {}).await });
    wait_until_blocked(&watching, 1).await;
    drop(dying);
    World::new(start.await.unwrap()).assert_sound().await;
    database.remove().await;
}

#[tokio::test]
async fn a_store_of_another_version_is_refused() {
    let database = TestDatabase::create().await;
    let client = database.client().await;
    let plain = |migrate: bool| {
        let options = anabranch_store::OpenOptions {
            migrate,
            ..Default::default()
        };
        let url = database.url();
        async move { anabranch_store::open(&url, &options).await.err() }
    };
    let empty = plain(false).await.unwrap().to_string();
    assert!(empty.contains("holds no store"), "{empty}");
    assert!(plain(true).await.is_none());
    assert!(plain(false).await.is_none());
    let newer = "UPDATE schema_version SET version = 99";
    client.batch_execute(newer).await.unwrap();
    for migrate in [true, false] {
        let error = plain(migrate).await.unwrap();
        assert!(matches!(error, StoreError::Unusable { .. }), "{error}");
        let message = error.to_string();
        assert!(
            message.contains("version 99") && message.contains("up to 2"),
            "{message}"
        );
    }
    database.remove().await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let url = "postgres://nobody:secret@127.0.0.1:1/none";
    let error = anabranch_store::open(url, &Default::default())
        .await
        .err()
        .unwrap();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    assert!(!error.to_string().contains("secret"));
}
