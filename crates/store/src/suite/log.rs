//! The change log as a feed, as a proof, and its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::world::{Command, World, object, put, retry, table};
use crate::{
    At, Change, CommitId, Feed, FeedPosition, Kind, PartitionId, Revision, Store, StoreError,
};

fn start(partition: PartitionId) -> FeedPosition {
    FeedPosition {
        partition,
        revision: Revision::ZERO,
        place: i32::MAX,
        commit: None,
    }
}

async fn feed(world: &World, after: &[FeedPosition], limit: u32) -> Feed {
    retry(|| world.store.feed(after, limit)).await
}

/// Moves positions behind the changes of a page.
fn advance(positions: &mut [FeedPosition], changes: &[Change]) {
    for change in changes {
        let position = positions
            .iter_mut()
            .find(|position| position.partition == change.key.partition)
            .unwrap();
        position.revision = change.revision;
        position.place = change.place;
        position.commit = Some(change.commit);
    }
}

/// The whole feed behind the given positions, in pages.
async fn drain(world: &World, positions: &mut [FeedPosition], limit: u32) -> Vec<Change> {
    let mut all = Vec::new();
    loop {
        let page = feed(world, positions, limit).await;
        assert!(page.lost.is_empty());
        assert!(page.changes.len() <= limit as usize);
        if page.changes.is_empty() {
            return all;
        }
        advance(positions, &page.changes);
        all.extend(page.changes);
    }
}

/// A page may end inside one revision; the next goes on right there.
pub async fn a_feed_page_may_end_inside_a_revision(store: Arc<dyn Store>) {
    let world = World::new(store);
    let database = world.database("db").await;
    let puts: Vec<_> = (0..10)
        .map(|number| {
            let key = table(database, &format!("t{number}"));
            (key, Kind::IcebergTable, object(), number.to_string())
        })
        .collect();
    let done = world.write(&[database], &[Command::PutAll(puts)]).await;
    for limit in [1, 3, 4, 100] {
        let all = drain(&world, &mut [start(database)], limit).await;
        let places: Vec<i32> = all.iter().map(|change| change.place).collect();
        assert_eq!(places, (0..10).collect::<Vec<i32>>());
        assert!(all.iter().all(|change| change.revision == done.last()));
    }
    let steps = retry(|| {
        let (from, to) = (Revision(done.last().0 - 1), done.last());
        let after = Some((done.last(), 6));
        world.store.changes_between(database, from, to, after, 2)
    })
    .await;
    let places: Vec<i32> = steps.iter().map(|change| change.place).collect();
    assert_eq!(places, [7, 8]);
}

/// The difference between two revisions is what lies behind the first, up to the second.
pub async fn changes_between_two_revisions(store: Arc<dyn Store>) {
    let world = World::new(store);
    let database = world.database("db").await;
    let mut revisions = Vec::new();
    for number in 0..5 {
        let key = table(database, &format!("t{number}"));
        let done = world.write(&[database], &[put(&key, object(), "v")]).await;
        revisions.push(done.last());
    }
    let between = async |from, to, after| {
        let found = retry(|| world.store.changes_between(database, from, to, after, 10)).await;
        found
            .iter()
            .map(|change| change.revision)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        between(revisions[1], revisions[3], None).await,
        revisions[2..=3]
    );
    assert_eq!(
        between(Revision::ZERO, Revision::MAX, None).await,
        revisions
    );
    let after = Some((revisions[2], i32::MAX));
    assert_eq!(
        between(revisions[1], revisions[3], after).await,
        revisions[3..=3]
    );
    assert!(between(revisions[3], revisions[3], None).await.is_empty());
}

/// Two partitions written by several writers while the feed is read: every change comes once, and
/// each partition's in order.
pub async fn a_feed_over_partitions_misses_and_repeats_nothing(store: Arc<dyn Store>) {
    const WRITES: usize = 20;
    let world = World::new(store);
    let one = world.database("one").await;
    let two = world.database("two").await;
    let writers: Vec<_> = [(one, "a"), (one, "b"), (two, "a"), (two, "b")]
        .into_iter()
        .map(|(database, name)| {
            let (world, key) = (world.clone(), table(database, name));
            tokio::spawn(async move {
                let id = object();
                for _ in 0..WRITES {
                    world.write(&[database], &[put(&key, id, "v")]).await;
                }
            })
        })
        .collect();
    let mut positions = [start(one), start(two)];
    let mut seen: Vec<Change> = Vec::new();
    while !writers.iter().all(|writer| writer.is_finished()) {
        let page = feed(&world, &positions, 7).await;
        assert!(page.lost.is_empty());
        assert!(
            page.changes.is_sorted_by_key(|change| {
                (change.revision, change.key.partition, change.place)
            })
        );
        advance(&mut positions, &page.changes);
        seen.extend(page.changes);
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    seen.extend(drain(&world, &mut positions, 7).await);
    assert_eq!(seen.len(), 4 * WRITES);
    let mut by_partition: BTreeMap<PartitionId, Vec<Revision>> = BTreeMap::new();
    for change in &seen {
        let revisions = by_partition.entry(change.key.partition).or_default();
        revisions.push(change.revision);
    }
    for revisions in by_partition.values() {
        assert_eq!(revisions.len(), 2 * WRITES);
        assert!(revisions.is_sorted_by(|earlier, later| earlier < later));
    }
}

/// Since a commit that the log holds, the changed keys are known; since any other, nothing is.
pub async fn changed_since_a_commit_that_is_held(store: Arc<dyn Store>) {
    let world = World::new(store);
    let database = world.database("db").await;
    let (a, b) = (table(database, "a"), table(database, "b"));
    let (one, two) = (object(), object());
    let first = world.write(&[database], &[put(&a, one, "1")]).await;
    let second = world
        .write(&[database], &[put(&b, two, "1"), put(&b, two, "2")])
        .await;
    let third = world
        .write(&[database], &[put(&a, one, "2"), put(&b, two, "3")])
        .await;
    let since = async |revision, commit| {
        let keys = retry(|| async {
            let mut transaction = world.store.begin(&[database]).await?;
            let keys = transaction.changed_since(database, revision, commit).await;
            transaction.rollback().await;
            keys
        });
        keys.await.map(|mut keys| {
            keys.sort();
            keys
        })
    };
    assert_eq!(since(third.last(), third.commit).await, Some(vec![]));
    assert_eq!(
        since(second.last(), second.commit).await,
        Some(vec![a.clone(), b.clone()])
    );
    assert_eq!(since(first.last(), first.commit).await, Some(vec![a, b]));
    assert_eq!(since(first.last(), CommitId::random()).await, None);
    assert_eq!(since(first.last(), second.commit).await, None);
    assert_eq!(
        since(Revision(first.last().0 - 1), first.commit).await,
        None
    );
    assert_eq!(since(Revision::ZERO, CommitId::NONE).await, None);
}

/// What is below the horizon goes, what can still be read stays, and positions below are lost.
pub async fn pruning_ends_at_the_horizon(store: Arc<dyn Store>) {
    let world = World::new(store);
    let database = world.database("db").await;
    let t = table(database, "t");
    let one = object();
    let mut done = Vec::new();
    for number in 0..6 {
        let body = number.to_string();
        done.push(world.write(&[database], &[put(&t, one, &body)]).await);
        if number == 3 {
            world
                .write(&[database], &[Command::RaiseHorizon(database)])
                .await;
        }
    }
    let horizon = world.partition(database).await.horizon;
    assert_eq!(horizon, done[3].last());
    let mut gone = 0;
    loop {
        let more = match world.store.prune(database, 2).await {
            Ok(more) => more,
            Err(StoreError::Failed { detail }) => panic!("{detail}"),
            Err(_) => continue,
        };
        assert!(more <= 2);
        gone += more;
        if more == 0 {
            break;
        }
    }
    assert!(
        gone <= 6,
        "three versions and three changes, less what was lost on the way"
    );
    for (number, commit) in done.iter().enumerate().skip(3) {
        let entry = world.get_at(At::Revision(commit.last()), &t).await.unwrap();
        assert_eq!(&*entry.body, number.to_string());
    }
    let history = retry(|| world.store.history_page(database, None, 100)).await;
    assert_eq!(history.len(), 2);
    let left = retry(|| {
        let (from, to) = (Revision::ZERO, Revision::MAX);
        world.store.changes_between(database, from, to, None, 100)
    });
    let left: Vec<Revision> = left.await.iter().map(|change| change.revision).collect();
    let expected: Vec<Revision> = done[3..].iter().map(|commit| commit.last()).collect();
    assert_eq!(left, expected);
    let since = retry(|| async {
        let mut transaction = world.store.begin(&[database]).await?;
        let (revision, commit) = (done[1].last(), done[1].commit);
        let keys = transaction.changed_since(database, revision, commit).await;
        transaction.rollback().await;
        keys
    });
    assert_eq!(since.await, None);
    world.assert_sound().await;
}

/// A position is lost below the horizon, or if the log doesn't hold its transaction.
pub async fn a_lost_position_is_told(store: Arc<dyn Store>) {
    let world = World::new(store);
    let one = world.database("one").await;
    let two = world.database("two").await;
    let early = world
        .write(&[one], &[put(&table(one, "t"), object(), "1")])
        .await;
    let late = world
        .write(&[one], &[put(&table(one, "u"), object(), "1")])
        .await;
    world
        .write(&[two], &[put(&table(two, "t"), object(), "1")])
        .await;
    let at = |commit: Option<CommitId>, revision: Revision| FeedPosition {
        commit,
        revision,
        ..start(one)
    };
    let intact = feed(
        &world,
        &[at(Some(early.commit), early.last()), start(two)],
        10,
    )
    .await;
    assert!(intact.lost.is_empty());
    assert_eq!(intact.changes.len(), 2);
    let restored = [at(Some(CommitId::random()), early.last()), start(two)];
    let found = feed(&world, &restored, 10).await;
    assert_eq!(found.lost, [one]);
    assert!(
        found
            .changes
            .iter()
            .all(|change| change.key.partition == two)
    );
    assert_eq!(found.changes.len(), 1);
    world.write(&[one], &[Command::RaiseHorizon(one)]).await;
    assert_eq!(
        feed(&world, &[at(None, early.last())], 10).await.lost,
        [one]
    );
    assert_eq!(feed(&world, &[start(one)], 10).await.lost, [one]);
    let kept = feed(&world, &[at(Some(late.commit), late.last())], 10).await;
    assert!(kept.lost.is_empty() && kept.changes.is_empty());
    let unknown = FeedPosition {
        partition: PartitionId(one.0 ^ 1),
        ..start(one)
    };
    assert_eq!(feed(&world, &[unknown], 10).await.lost, [unknown.partition]);
}

/// Ended versions come page by page, in key order, each once.
pub async fn history_comes_in_pages(store: Arc<dyn Store>) {
    let world = World::new(store);
    let database = world.database("db").await;
    for name in ["a", "b", "c"] {
        let id = object();
        for _ in 0..4 {
            world
                .write(&[database], &[put(&table(database, name), id, name)])
                .await;
        }
    }
    for limit in [1, 2, 5, 100] {
        let mut all = Vec::new();
        let mut after = None;
        loop {
            let page = retry(|| world.store.history_page(database, after.clone(), limit)).await;
            let Some((key, entry, _)) = page.last() else {
                break;
            };
            after = Some((key.clone(), entry.from));
            all.extend(page);
        }
        assert_eq!(all.len(), 9);
        assert!(all.is_sorted_by_key(|(key, entry, _)| (key.clone(), entry.from)));
        assert!(all.iter().all(|(_, entry, to)| entry.from < *to));
    }
}
