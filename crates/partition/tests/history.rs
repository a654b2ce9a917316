//! History: pinned reads, the row cache, the feed, the horizon.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use anabranch_partition::{Command, Config, Context, Cursor, Reason, RunError, Stop, View};
use anabranch_store::fault::{Fault, Pause, When};
use anabranch_store::{Answer, At, Key, Read, Revision, Store, StoreError};
use futures::future::join_all;
use tokio::task::JoinHandle;

use support::{Increment, Server, is_refused, key, partition};

on_every_engine![
    a_pinned_read_always_answers_the_same,
    a_pinned_read_waits_for_a_writer_that_would_land_below_it,
    a_read_at_a_revision_that_was_not_closed_changes_its_answer,
    one_read_of_two_partitions_sees_a_commit_in_both_or_in_none,
    two_reads_of_one_partition_each_see_half_of_a_commit,
    a_revision_in_the_future_is_refused,
    the_difference_of_two_revisions_is_what_was_changed_between,
    rows_that_another_server_changed_are_not_taken_from_the_cache,
    rows_of_a_failed_commit_are_forgotten,
    cache_on_and_off_give_the_same_answers,
    a_consumer_that_resumes_misses_none_and_gets_none_twice,
    a_consumer_does_not_miss_what_is_committed_below_what_it_has_seen_elsewhere,
    below_the_horizon_everything_is_refused,
    what_is_being_pruned_is_refused_and_never_answered_in_part,
    a_difference_whose_start_is_pruned_meanwhile_is_refused,
    a_consumer_that_has_seen_everything_survives_pruning,
    a_consumer_that_has_not_heard_of_a_partition_survives_pruning,
];

async fn a_pinned_read_always_answers_the_same(store: Arc<dyn Store>) {
    let servers = [Server::over(&store), Server::over(&store)];
    let (p, q) = (partition(1), partition(2));
    servers[0].found(p).await;
    servers[0].found(q).await;
    let (a, b) = (key(p, "a"), key(q, "b"));
    servers[0].put(&b, "old").await.unwrap();
    // A revision of p, not yet reached by q's clock.
    let revision = servers[0].put(&a, "x").await.unwrap().revision;
    let first = servers[1].body_at(&b, revision).await.unwrap();
    servers[0].faults.shift_clock(-3_600_000_000);
    let later = servers[0].put(&b, "new").await.unwrap().revision;
    assert!(later > revision, "a commit after the read lies behind it");
    let second = servers[1].body_at(&b, revision).await.unwrap();
    assert_eq!(
        (first.as_deref(), second.as_deref()),
        (Some("old"), Some("old"))
    );
}

/// `b` stands in `q` as `old`, and a writer that will make it `new` at a revision below the
/// returned one stops before its COMMIT: its clock is behind.
async fn a_writer_below(
    store: &Arc<dyn Store>,
) -> (
    Server,
    Key,
    Revision,
    Pause,
    JoinHandle<Result<(), RunError>>,
) {
    let (writer, reader) = (Server::over(store), Server::over(store));
    let (p, q) = (partition(1), partition(2));
    writer.found(p).await;
    writer.found(q).await;
    let (a, b) = (key(p, "a"), key(q, "b"));
    writer.put(&b, "old").await.unwrap();
    let revision = reader.put(&a, "x").await.unwrap().revision;
    writer.faults.shift_clock(-3_600_000_000);
    let hold = writer.faults.pause("commit", When::Before, 1);
    let written = tokio::spawn({
        let b = b.clone();
        async move { writer.put(&b, "new").await.map(|_| ()) }
    });
    hold.arrived().await;
    (reader, b, revision, hold, written)
}

/// Where the engine doesn't make it wait, the writer loses instead; the answer stays the same.
async fn a_pinned_read_waits_for_a_writer_that_would_land_below_it(store: Arc<dyn Store>) {
    let (reader, b, revision, hold, written) = a_writer_below(&store).await;
    let waits = store.engine() != "postgres-optimistic";
    let comes = reader.faults.pause("begin", When::Before, 1);
    let release = async {
        comes.arrived().await;
        comes.resume();
        if waits {
            hold.resume();
        }
    };
    let (first, ()) = tokio::join!(reader.body_at(&b, revision), release);
    let must = if waits { "new" } else { "old" };
    assert_eq!(first.unwrap().as_deref(), Some(must));
    hold.resume();
    written.await.unwrap().unwrap();
    let again = reader.body_at(&b, revision).await;
    assert_eq!(again.unwrap().as_deref(), Some(must));
}

/// The trap: the partition is still open at that revision (e4).
async fn a_read_at_a_revision_that_was_not_closed_changes_its_answer(store: Arc<dyn Store>) {
    let (_, b, revision, hold, written) = a_writer_below(&store).await;
    let unclosed = async || {
        let read = [Read::Point(b.clone())];
        let answers = store.read(At::Revision(revision), &read).await.unwrap();
        body(&answers[0])
    };
    let first = unclosed().await;
    hold.resume();
    written.await.unwrap().unwrap();
    let answers = (first.as_deref(), unclosed().await);
    assert_eq!(answers, (Some("old"), Some("new".to_owned())));
}

/// Puts one name into each of two partitions.
#[derive(Clone)]
struct PutBoth(Increment, Increment);

impl Command for PutBoth {
    type Outcome = ();

    fn name(&self) -> &'static str {
        "put_both"
    }

    fn reads(&self) -> Vec<Read> {
        [self.0.reads(), self.1.reads()].concat()
    }

    fn apply(&self, view: &mut View<'_>, context: &Context<'_>) -> Result<(), Stop> {
        self.0.apply(view, context)?;
        self.1.apply(view, context)?;
        Ok(())
    }
}

fn body(answer: &Answer) -> Option<String> {
    match answer {
        Answer::Entry(entry) => entry.as_ref().map(|entry| entry.body.to_string()),
        other => panic!("{other:?}"),
    }
}

/// Reads `a` of one partition and `b` of another, while a writer changes both between the first
/// and the second look into the store, if there is a second one.
async fn read_around_a_commit(store: &Arc<dyn Store>, in_one: bool) -> [Option<String>; 2] {
    let (writer, reader) = (Server::over(store), Server::over(store));
    let (p, q) = (partition(1), partition(2));
    writer.found(p).await;
    writer.found(q).await;
    let (a, b) = (key(p, "a"), key(q, "b"));
    let both = PutBoth(Increment(a.clone()), Increment(b.clone()));
    writer.run(vec![p, q], both.clone()).await.unwrap();
    let second_look = reader.faults.pause("read", When::Before, 2);
    let reads = [Read::Point(a), Read::Partition(p), Read::Point(b)];
    let read = async {
        let partitions = &reader.partitions;
        if in_one {
            return partitions.read(&reads).await.unwrap();
        }
        let mut answers = partitions.read(&reads[..2]).await.unwrap();
        answers.extend(partitions.read(&reads[2..]).await.unwrap());
        answers
    };
    let write = async {
        second_look.arrived().await;
        writer.run(vec![p, q], both).await.unwrap();
        second_look.resume();
        std::future::pending().await
    };
    let answers = tokio::select! {
        answers = read => answers,
        () = write => unreachable!(),
    };
    [body(&answers[0]), body(&answers[2])]
}

/// That a look into the store is one snapshot is shown where the engines are tested.
async fn one_read_of_two_partitions_sees_a_commit_in_both_or_in_none(store: Arc<dyn Store>) {
    let [a, b] = read_around_a_commit(&store, true).await;
    assert_eq!(a, b);
}

/// The trap (e5).
async fn two_reads_of_one_partition_each_see_half_of_a_commit(store: Arc<dyn Store>) {
    let [a, b] = read_around_a_commit(&store, false).await;
    assert_eq!((a.as_deref(), b.as_deref()), (Some("1"), Some("2")));
}

async fn a_revision_in_the_future_is_refused(store: Arc<dyn Store>) {
    let server = Server::over(&store);
    let p = partition(1);
    server.found(p).await;
    let a = key(p, "a");
    let revision = server.put(&a, "1").await.unwrap().revision;
    let future = Revision(revision.0 + (3_600_000_000 << 12));
    let answer = server.body_at(&a, future).await;
    assert!(is_refused(&answer, Reason::InvalidInput));
}

async fn the_difference_of_two_revisions_is_what_was_changed_between(store: Arc<dyn Store>) {
    let server = Server::over(&store);
    let p = partition(1);
    server.found(p).await;
    let a = key(p, "a");
    let from = server.put(&a, "1").await.unwrap().revision;
    let to = server.put(&a, "2").await.unwrap().revision;
    server.put(&a, "3").await.unwrap();
    let changes = server
        .partitions
        .changes_between(p, from, to, None, 100)
        .await
        .unwrap();
    let bodies: Vec<_> = changes
        .iter()
        .map(|change| (change.before.as_deref(), change.after.as_deref()))
        .collect();
    assert_eq!(bodies, [(Some("1"), Some("2"))]);
}

async fn rows_that_another_server_changed_are_not_taken_from_the_cache(store: Arc<dyn Store>) {
    let servers = [Server::over(&store), Server::over(&store)];
    let p = partition(1);
    servers[0].found(p).await;
    let counter = key(p, "counter");
    let reads_before = servers[0].faults.hits("tx.read", When::Before);
    for turn in [0, 1, 0, 0, 1, 1, 0] {
        let run = servers[turn].run(vec![p], Increment(counter.clone()));
        run.await.unwrap();
    }
    assert_eq!(servers[0].body(&counter).await.as_deref(), Some("7"));
    // A row that isn't kept is read with the lock, one that is kept and out of date behind it. The
    // third command of server 0 came straight after its second and read nothing.
    let reads = servers[0].faults.hits("tx.read", When::Before) - reads_before;
    assert_eq!(reads, 2, "four commands, two rows out of date");
}

async fn rows_of_a_failed_commit_are_forgotten(store: Arc<dyn Store>) {
    let servers = [Server::over(&store), Server::over(&store)];
    let p = partition(1);
    servers[0].found(p).await;
    let counter = key(p, "counter");
    servers[0]
        .run(vec![p], Increment(counter.clone()))
        .await
        .unwrap();
    let error = StoreError::Failed {
        detail: "injected".to_owned(),
    };
    servers[0].faults.shift_clock(-3_600_000_000);
    servers[1].faults.shift_clock(-3_600_000_000);
    servers[0]
        .faults
        .at("commit", When::Before, 1, Fault::Error(error));
    assert!(
        servers[0]
            .run(vec![p], Increment(counter.clone()))
            .await
            .is_err()
    );
    // Both would carry clock + 1: only the commit's id tells them apart.
    servers[1]
        .run(vec![p], Increment(counter.clone()))
        .await
        .unwrap();
    let third = servers[0].run(vec![p], Increment(counter.clone())).await;
    assert_eq!(third.unwrap().outcome, 3);
}

async fn cache_on_and_off_give_the_same_answers(store: Arc<dyn Store>) {
    let off = Config {
        cached_rows: 0,
        ..Config::default()
    };
    let servers = [Server::over(&store), Server::with(&store, off)];
    let p = partition(1);
    servers[0].found(p).await;
    for turn in 0..20 {
        let counter = key(p, &format!("c{}", turn % 3));
        let run = servers[turn % 2].run(vec![p], Increment(counter));
        assert_eq!(run.await.unwrap().outcome as usize, turn / 3 + 1);
    }
}

async fn a_consumer_that_resumes_misses_none_and_gets_none_twice(store: Arc<dyn Store>) {
    let servers: Vec<_> = (0..3).map(|_| Server::over(&store)).collect();
    let ids = [partition(1), partition(2)];
    for id in ids {
        servers[0].found(id).await;
    }
    let writers = async {
        let runs = (0..120).map(|n| {
            let id = ids[n % 2];
            servers[n % 3].run(vec![id], Increment(key(id, &format!("c{}", n % 5))))
        });
        join_all(runs).await.into_iter().for_each(|answer| {
            answer.unwrap();
        });
    };
    let reader = async {
        let mut seen = Vec::new();
        let mut cursor: Option<Cursor> = None;
        while seen.len() < 124 {
            let page = servers[2]
                .partitions
                .feed(None, cursor.as_ref(), 7, Duration::from_secs(5))
                .await
                .unwrap();
            assert!(
                !page.changes.is_empty(),
                "the feed ended after {}",
                seen.len()
            );
            seen.extend(page.changes);
            // A consumer remembers the text.
            cursor = Some(Cursor::decode(&page.next.encode()).unwrap());
            if seen.len() >= 122 {
                break;
            }
        }
        seen
    };
    let ((), seen) = tokio::join!(writers, reader);
    let mut places: Vec<_> = seen
        .iter()
        .map(|change| (change.key.partition, change.revision, change.place))
        .collect();
    for id in ids {
        let own: Vec<_> = places.iter().filter(|place| place.0 == id).collect();
        assert!(
            own.is_sorted(),
            "changes of one partition come in their order"
        );
    }
    let count = places.len();
    places.sort();
    places.dedup();
    assert_eq!((places.len(), count), (122, 122));
}

/// One revision for all partitions as the cursor would miss it.
async fn a_consumer_does_not_miss_what_is_committed_below_what_it_has_seen_elsewhere(
    store: Arc<dyn Store>,
) {
    let (server, behind) = (Server::over(&store), Server::over(&store));
    let (p, q) = (partition(1), partition(2));
    server.found(p).await;
    server.found(q).await;
    let seen = server.put(&key(q, "b"), "1").await.unwrap().revision;
    let feed = async |cursor: Option<&Cursor>| {
        let page = server.partitions.feed(None, cursor, 10, Duration::ZERO);
        page.await.unwrap()
    };
    let page = feed(None).await;
    assert_eq!(page.changes.last().unwrap().revision, seen);
    behind.faults.shift_clock(-3_600_000_000);
    let below = behind.put(&key(p, "a"), "1").await.unwrap().revision;
    assert!(below < seen, "the trap");
    let further = feed(Some(&page.next)).await.changes;
    let revisions: Vec<_> = further.iter().map(|change| change.revision).collect();
    assert_eq!(revisions, [below]);
}

async fn below_the_horizon_everything_is_refused(store: Arc<dyn Store>) {
    let server = Server::over(&store);
    let p = partition(1);
    server.found(p).await;
    let a = key(p, "a");
    let old = server.put(&a, "1").await.unwrap().revision;
    let page = server
        .partitions
        .feed(Some(p), None, 1, Duration::ZERO)
        .await;
    let cursor = page.unwrap().next;
    server.put(&a, "2").await.unwrap();
    server.put(&a, "3").await.unwrap();
    server.partitions.prune(p, Duration::ZERO).await.unwrap();
    assert!(is_refused(&server.body_at(&a, old).await, Reason::Gone));
    let feed = server
        .partitions
        .feed(Some(p), Some(&cursor), 10, Duration::ZERO);
    assert!(is_refused(&feed.await, Reason::Gone));
    let changes = server.partitions.changes_between(p, old, old, None, 10);
    assert!(is_refused(&changes.await, Reason::Gone));
    assert_eq!(server.body(&a).await.as_deref(), Some("3"));
}

/// The horizon goes first. Without it a read would find that what stood never was (e13).
async fn what_is_being_pruned_is_refused_and_never_answered_in_part(store: Arc<dyn Store>) {
    let (pruner, reader) = (Server::over(&store), Server::over(&store));
    let p = partition(1);
    pruner.found(p).await;
    let a = key(p, "a");
    let old = pruner.put(&a, "1").await.unwrap().revision;
    pruner.put(&a, "2").await.unwrap();
    pruner.put(&key(p, "b"), "x").await.unwrap();
    let hold = pruner.faults.pause("prune", When::Before, 1);
    let pruning = tokio::spawn(async move { pruner.partitions.prune(p, Duration::ZERO).await });
    hold.arrived().await;
    let without_horizon = async || {
        let read = [Read::Point(a.clone())];
        let answers = store.read(At::Revision(old), &read).await.unwrap();
        body(&answers[0])
    };
    assert_eq!(without_horizon().await.as_deref(), Some("1"));
    assert!(is_refused(&reader.body_at(&a, old).await, Reason::Gone));
    hold.resume();
    pruning.await.unwrap().unwrap();
    assert_eq!(without_horizon().await, None, "the trap");
    assert!(is_refused(&reader.body_at(&a, old).await, Reason::Gone));
}

async fn a_difference_whose_start_is_pruned_meanwhile_is_refused(store: Arc<dyn Store>) {
    let (pruner, reader) = (Server::over(&store), Server::over(&store));
    let p = partition(1);
    pruner.found(p).await;
    let a = key(p, "a");
    let from = pruner.put(&a, "1").await.unwrap().revision;
    pruner.put(&a, "2").await.unwrap();
    let to = pruner.put(&a, "3").await.unwrap().revision;
    let hold = reader.faults.pause("changes_between", When::Before, 1);
    let partitions = reader.partitions.clone();
    let difference =
        tokio::spawn(async move { partitions.changes_between(p, from, to, None, 10).await });
    hold.arrived().await;
    pruner.partitions.prune(p, Duration::ZERO).await.unwrap();
    let rest = store.changes_between(p, from, to, None, 10).await.unwrap();
    assert_eq!(rest.len(), 1, "the trap: one of two changes is left");
    hold.resume();
    assert!(is_refused(&difference.await.unwrap(), Reason::Gone));
}

async fn a_consumer_that_has_seen_everything_survives_pruning(store: Arc<dyn Store>) {
    let server = Server::over(&store);
    let p = partition(1);
    server.found(p).await;
    let a = key(p, "a");
    server.put(&a, "1").await.unwrap();
    let last = server.put(&a, "2").await.unwrap().revision;
    let page = server
        .partitions
        .feed(Some(p), None, 10, Duration::ZERO)
        .await;
    let cursor = page.unwrap().next;
    // The clock moves on without a change.
    server.body_at(&a, Revision(last.0 + 1)).await.unwrap();
    server.partitions.prune(p, Duration::ZERO).await.unwrap();
    let feed = server
        .partitions
        .feed(Some(p), Some(&cursor), 10, Duration::ZERO);
    assert_eq!(feed.await.unwrap().changes, []);
    server.put(&a, "3").await.unwrap();
    let feed = server
        .partitions
        .feed(Some(p), Some(&cursor), 10, Duration::ZERO);
    assert_eq!(feed.await.unwrap().changes.len(), 1);
}

async fn a_consumer_that_has_not_heard_of_a_partition_survives_pruning(store: Arc<dyn Store>) {
    let server = Server::over(&store);
    let (p, q) = (partition(1), partition(2));
    server.found(p).await;
    server.found(q).await;
    let page = server.partitions.feed(None, None, 10, Duration::ZERO).await;
    let cursor = page.unwrap().next;
    server.put(&key(q, "a"), "1").await.unwrap();
    let retention = Duration::from_secs(3600);
    server.partitions.prune_all(retention).await.unwrap();
    let feed = server
        .partitions
        .feed(None, Some(&cursor), 10, Duration::ZERO);
    assert_eq!(feed.await.unwrap().changes.len(), 1);
}
