//! Leases, and operation records that end. Not for a store that loses answers: a lease whose
//! answer was lost is nobody's until it runs out.

use std::sync::Arc;

use uuid::Uuid;

use super::commits::record;
use super::world::{Command, World, fresh, object, put, table};
use crate::{Answer, At, CommitId, Read, Store, StoreTime, Task, TaskId, WriteSet};

const LONG: i64 = 60_000_000;

fn task(kind: &str, due: StoreTime) -> Task {
    Task {
        id: TaskId(Uuid::new_v4()),
        kind: kind.to_owned(),
        body: "{}".to_owned(),
        due,
        attempts: 0,
    }
}

/// Of many who ask at once, each task is leased to one.
pub async fn a_lease_is_exclusive(store: Arc<dyn Store>) {
    const TASKS: usize = 5;
    for _ in 0..TASKS {
        store.ensure_task(&task("gc", StoreTime(0))).await.unwrap();
    }
    let askers: Vec<_> = (0..12)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let owner = format!("owner-{number}");
                super::world::retry(|| store.lease_task(&["gc"], &owner, LONG)).await
            })
        })
        .collect();
    let mut leased = Vec::new();
    for asker in askers {
        leased.extend(asker.await.unwrap());
    }
    assert_eq!(leased.len(), TASKS);
    assert!(leased.iter().all(|task| task.attempts == 1));
    leased.sort_by_key(|task| task.id.0);
    leased.dedup_by_key(|task| task.id);
    assert_eq!(leased.len(), TASKS);
    assert_eq!(store.lease_task(&["gc"], "late", LONG).await.unwrap(), None);
}

/// Due first, of the asked kinds only, and not before it is due.
pub async fn a_lease_takes_what_is_due(store: Arc<dyn Store>) {
    let now = store.now().await.unwrap();
    let later = task("gc", now.plus_micros(LONG));
    let second = task("gc", StoreTime(2));
    let first = task("gc", StoreTime(1));
    let other = task("purge", StoreTime(0));
    for task in [&later, &second, &first, &other] {
        store.ensure_task(task).await.unwrap();
        store.ensure_task(task).await.unwrap();
    }
    let mut ids = Vec::new();
    while let Some(task) = store.lease_task(&["gc"], "me", LONG).await.unwrap() {
        ids.push(task.id);
    }
    assert_eq!(ids, [first.id, second.id]);
    assert_eq!(store.lease_task(&[], "me", LONG).await.unwrap(), None);
    let found = store.lease_task(&["x", "purge"], "me", LONG).await.unwrap();
    assert_eq!(found.map(|task| task.id), Some(other.id));
}

/// A lease that ran out is anybody's, and its first owner has nothing to say any more.
pub async fn a_lapsed_lease_is_taken_over(store: Arc<dyn Store>) {
    let only = task("gc", StoreTime(0));
    store.ensure_task(&only).await.unwrap();
    let first = store.lease_task(&["gc"], "first", 0).await.unwrap();
    assert_eq!(first.map(|task| task.attempts), Some(1));
    let second = store.lease_task(&["gc"], "second", LONG).await.unwrap();
    assert_eq!(second.map(|task| task.attempts), Some(2));
    assert!(!store.finish_task(only.id, "first").await.unwrap());
    assert!(!store.postpone_task(only.id, "first", 0).await.unwrap());
    assert!(store.postpone_task(only.id, "second", 0).await.unwrap());
    assert!(!store.finish_task(only.id, "second").await.unwrap());
    let third = store.lease_task(&["gc"], "third", LONG).await.unwrap();
    assert_eq!(third.map(|task| task.attempts), Some(3));
    assert!(store.postpone_task(only.id, "third", LONG).await.unwrap());
    assert_eq!(
        store.lease_task(&["gc"], "fourth", LONG).await.unwrap(),
        None
    );
}

/// What its owner saved is there for everyone to read, and saving keeps the lease.
pub async fn a_saved_task_is_read_by_anyone(store: Arc<dyn Store>) {
    for _ in 0..3 {
        store.ensure_task(&task("gc", StoreTime(0))).await.unwrap();
    }
    let mine = store.lease_task(&["gc"], "me", 1).await.unwrap().unwrap();
    assert!(store.save_task(mine.id, "me", "half", LONG).await.unwrap());
    assert!(!store.save_task(mine.id, "you", "x", LONG).await.unwrap());
    let read = store.task(mine.id).await.unwrap().unwrap();
    assert_eq!((read.body.as_str(), read.attempts), ("half", 1));
    assert_eq!(store.task(TaskId(Uuid::new_v4())).await.unwrap(), None);
    // The short lease was made a long one.
    for _ in 0..2 {
        let other = store.lease_task(&["gc"], "you", LONG).await.unwrap();
        assert!(other.is_some_and(|task| task.id != mine.id));
    }
    assert_eq!(store.lease_task(&["gc"], "you", LONG).await.unwrap(), None);
}

/// A finished task is gone; a task that a commit queued is there.
pub async fn a_queued_task_is_done_once(store: Arc<dyn Store>) {
    let world = World::new(Arc::clone(&store));
    let database = world.database("db").await;
    let queued = task("purge", StoreTime(0));
    let commands = [
        put(&table(database, "t"), object(), "v"),
        Command::Queue(queued.clone()),
    ];
    world.write(&[database], &commands).await;
    let leased = store.lease_task(&["purge"], "me", LONG).await.unwrap();
    assert_eq!(leased.map(|task| task.id), Some(queued.id));
    world.assert_sound().await;
    assert!(store.finish_task(queued.id, "me").await.unwrap());
    assert_eq!(store.lease_task(&["purge"], "me", 0).await.unwrap(), None);
}

/// A commit ends the tasks that it makes needless, and is refused if one is no longer there.
pub async fn a_commit_ends_a_task_with_it(store: Arc<dyn Store>) {
    let world = World::new(Arc::clone(&store));
    let database = world.database("db").await;
    let needless = task("forget", StoreTime(0));
    store.ensure_task(&needless).await.unwrap();
    for is_there in [true, false] {
        let transaction = store.begin(&[database]).await.unwrap();
        let mut writes = WriteSet::empty(CommitId::random());
        writes.finished_tasks.push(needless.id);
        assert_eq!(transaction.commit(&writes).await.is_ok(), is_there);
    }
    let leased = store.lease_task(&["forget"], "me", LONG).await.unwrap();
    assert_eq!(leased, None);
}

/// Records that expired go, in portions; the others stay.
pub async fn operation_records_expire(store: Arc<dyn Store>) {
    let world = World::new(Arc::clone(&store));
    let database = world.database("db").await;
    let kept = format!("kept-{}", fresh());
    let mut commands = vec![
        put(&table(database, "t"), object(), "v"),
        Command::Record(record(&kept, StoreTime(i64::MAX))),
    ];
    for number in 0..5 {
        let key = format!("old-{number}-{}", fresh());
        commands.push(Command::Record(record(&key, StoreTime(1))));
    }
    world.write(&[database], &commands).await;
    assert_eq!(store.expire_operations(3).await.unwrap(), 3);
    assert_eq!(store.expire_operations(3).await.unwrap(), 2);
    assert_eq!(store.expire_operations(3).await.unwrap(), 0);
    let answer = world.read_one(At::Latest, Read::Operation(kept)).await;
    assert!(matches!(answer, Answer::Operation(Some(_))));
}
