//! What a commit does, all of it or nothing.

use std::sync::Arc;

use super::world::{Command, World, fresh, object, put, retry, table};
use crate::{
    Answer, At, CommitId, ConflictReason, OperationRecord, OperationState, PartitionId,
    PartitionState, Read, Revision, Store, StoreError, StoreTime, WriteSet,
};

/// An operation record that ends at the given instant.
pub fn record(key: &str, expires: StoreTime) -> OperationRecord {
    OperationRecord {
        key: key.to_owned(),
        principal: "tester".to_owned(),
        fingerprint: "f".to_owned(),
        state: OperationState::Done,
        answer: "{}".to_owned(),
        at: StoreTime(0),
        expires,
    }
}

/// What was committed is there for the next reader, with history, log and partition row.
pub async fn a_commit_is_visible_as_a_whole(store: Arc<dyn Store>) {
    let world = World::new(store);
    let database = world.database("db").await;
    let t = table(database, "t");
    let key = format!("op-{}", fresh());
    let one = object();
    let commands = [
        put(&t, one, "v1"),
        put(&t, one, "v2"),
        Command::Record(record(&key, StoreTime(i64::MAX))),
    ];
    let done = world.write(&[database], &commands).await;
    assert!(done.revisions[0] < done.revisions[1]);
    let entry = world.get(&t).await.unwrap();
    assert_eq!(
        (entry.version, &*entry.body, entry.from),
        (2, "v2", done.revisions[1])
    );
    let first = world.get_at(At::Revision(done.revisions[0]), &t).await;
    assert_eq!(&*first.unwrap().body, "v1");
    let row = world.partition(database).await;
    assert_eq!(row.clock, done.last());
    assert_eq!(
        (row.last_commit, row.last_revision),
        (done.commit, done.last())
    );
    let answer = world
        .read_one(At::Latest, Read::Operation(key.clone()))
        .await;
    assert!(matches!(answer, Answer::Operation(Some(found)) if found.key == key));
    world.assert_sound().await;
}

/// Objects change names within one write set, whatever the order of the rows.
pub async fn objects_move_between_names_in_one_commit(store: Arc<dyn Store>) {
    let world = World::new(store);
    let database = world.database("db").await;
    let (a, b, c) = (
        table(database, "a"),
        table(database, "b"),
        table(database, "c"),
    );
    let (one, two) = (object(), object());
    world
        .write(&[database], &[put(&a, one, "1"), put(&b, two, "2")])
        .await;
    world
        .write(&[database], &[Command::Swap(a.clone(), b.clone())])
        .await;
    assert_eq!(world.get(&a).await.unwrap().object, two);
    assert_eq!(world.get(&b).await.unwrap().object, one);
    let commands = [
        Command::Rename(a.clone(), c.clone()),
        Command::Rename(b.clone(), a.clone()),
        Command::Rename(c.clone(), b.clone()),
    ];
    world.write(&[database], &commands).await;
    assert_eq!(world.get(&a).await.unwrap().object, one);
    assert_eq!(world.get(&b).await.unwrap().object, two);
    assert_eq!(world.get(&c).await, None);
    let replaced = object();
    let commands = [Command::Remove(a.clone()), put(&a, replaced, "3")];
    world.write(&[database], &commands).await;
    assert_eq!(world.get(&a).await.unwrap().object, replaced);
    world.assert_sound().await;
}

/// A write set that doesn't fit what stands leaves nothing behind, and is no lost race.
pub async fn what_does_not_fit_leaves_no_trace(store: Arc<dyn Store>) {
    let world = World::new(store);
    let database = world.database("db").await;
    let before = world.partition(database).await;
    let t = table(database, "t");
    world.write(&[database], &[put(&t, object(), "v1")]).await;
    let mut absent = WriteSet::empty(CommitId::random());
    absent.removals.push(table(database, "absent"));
    let mut stranger = WriteSet::empty(CommitId::random());
    stranger
        .partitions
        .push(world.partition(PartitionId::ROOT).await);
    for mut writes in [absent, stranger] {
        let mut row = world.partition(database).await;
        row.clock = Revision(row.clock.0 + 1);
        writes.partitions.push(row);
        let clock = world.partition(database).await.clock;
        let transaction = retry(|| async { world.store.begin(&[database]).await }).await;
        let error = transaction.commit(&writes).await.unwrap_err();
        assert!(matches!(error, StoreError::Failed { .. }), "{error}");
        assert_eq!(world.partition(database).await.clock, clock);
    }
    assert!(world.partition(database).await.clock > before.clock);
    world.assert_sound().await;
}

/// e11: one operation key in two partitions; the second is a lost race, not a serialization.
pub async fn one_operation_key_admits_one_writer(store: Arc<dyn Store>) {
    let world = World::new(store);
    let one = world.database("one").await;
    let two = world.database("two").await;
    let key = format!("op-{}", fresh());
    let with_record = |database: PartitionId| {
        let change = put(&table(database, "t"), object(), "v");
        [change, Command::Record(record(&key, StoreTime(i64::MAX)))]
    };
    world.write(&[one], &with_record(one)).await;
    let error = world
        .try_write(&[two], &with_record(two))
        .await
        .unwrap_err();
    let reason = match &error {
        StoreError::Conflict { reason, .. } => Some(*reason),
        _ => None,
    };
    assert_eq!(reason, Some(ConflictReason::UniqueKey), "{error}");
    assert_eq!(world.get(&table(two, "t")).await, None);
    world.assert_sound().await;
}

/// A transaction that was rolled back or dropped leaves nothing, and its partitions are free.
pub async fn a_dropped_transaction_leaves_nothing(store: Arc<dyn Store>) {
    let world = World::new(store);
    let database = world.database("db").await;
    let clock = world.partition(database).await.clock;
    let transaction = retry(|| async { world.store.begin(&[database]).await }).await;
    drop(transaction);
    let transaction = retry(|| async { world.store.begin(&[database]).await }).await;
    transaction.rollback().await;
    assert_eq!(world.partition(database).await.clock, clock);
    world
        .write(&[database], &[put(&table(database, "t"), object(), "v")])
        .await;
}

/// Held rows come ascending, absent ones don't; further ones come behind.
pub async fn a_transaction_holds_what_exists(store: Arc<dyn Store>) {
    let world = World::new(store);
    let database = world.database("db").await;
    let catalog = world.partition(database).await.parent;
    let metalake = world.partition(catalog).await.parent;
    let absent = PartitionId(catalog.0 ^ 1);
    let mut asked = vec![catalog, absent];
    asked.sort_unstable();
    let held = retry(|| async {
        let mut transaction = world.store.begin(&[PartitionId::ROOT, metalake]).await?;
        transaction.lock(&asked).await?;
        transaction.lock(&[database]).await?;
        let held: Vec<PartitionId> = transaction.partitions().iter().map(|row| row.id).collect();
        transaction.rollback().await;
        Ok(held)
    })
    .await;
    assert_eq!(held, [PartitionId::ROOT, metalake, catalog, database]);
}

/// A dropped partition isn't listed any more; its row stays.
pub async fn a_dropped_partition_keeps_its_row(store: Arc<dyn Store>) {
    let world = World::new(store);
    let database = world.database("db").await;
    let catalog = world.partition(database).await.parent;
    let other = world.database_in(catalog, "other").await;
    world
        .write(&[database], &[put(&table(database, "t"), object(), "v")])
        .await;
    let place = super::world::key(catalog, "", crate::Class::Container, "db");
    let commands = [
        Command::Remove(table(database, "t")),
        Command::Drop(place, database),
    ];
    world.write(&[catalog, database], &commands).await;
    assert_eq!(
        world.partition(database).await.state,
        PartitionState::Dropped
    );
    let children = world.read_one(At::Latest, Read::Children(catalog)).await;
    assert_eq!(children, Answer::Partitions(vec![other]));
    let logged = retry(|| world.store.feed_partitions(Some(catalog))).await;
    let logged: Vec<PartitionId> = logged.iter().map(|row| row.id).collect();
    assert_eq!(logged, [catalog, database]);
    world.assert_sound().await;
}

/// Many writers of one partition, each of which reads before it writes: no update is lost.
pub async fn no_update_is_lost_between_writers(store: Arc<dyn Store>) {
    const WRITERS: usize = 8;
    const WRITES: usize = 5;
    let world = World::new(store);
    let database = world.database("db").await;
    let t = table(database, "t");
    let one = object();
    world.write(&[database], &[put(&t, one, "0")]).await;
    let writers = (0..WRITERS).map(|_| {
        let (world, t) = (world.clone(), t.clone());
        tokio::spawn(async move {
            for _ in 0..WRITES {
                world.write(&[t.partition], &[put(&t, one, "more")]).await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let entry = world.get(&t).await.unwrap();
    assert_eq!(entry.version, 1 + (WRITERS * WRITES) as i64);
    world.assert_sound().await;
}
