//! The fault decorator does what it says, so that tests above may trust it.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_store::fault::{Fault, FaultStore, Faults, When};
use anabranch_store::suite::world::{World, object, put, table};
use anabranch_store::testing::sqlite_store;
use anabranch_store::{
    At, CommitId, ConflictReason, PartitionId, Read, Store, StoreError, WriteSet,
};

fn faulty(folder: &tempfile::TempDir) -> (Arc<dyn Store>, Faults) {
    let faults = Faults::new();
    let store = sqlite_store(folder.path()).unwrap();
    (Arc::new(FaultStore::new(store, faults.clone())), faults)
}

fn is_connection_lost(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Conflict {
            reason: ConflictReason::ConnectionLost,
            ..
        }
    )
}

#[tokio::test]
async fn a_lost_answer_leaves_the_effect_and_a_lost_request_none() {
    let folder = tempfile::tempdir().unwrap();
    let (store, faults) = faulty(&folder);
    let world = World::new(Arc::clone(&store));
    let database = world.database("db").await;
    for (when, is_applied) in [(When::Before, false), (When::After, true)] {
        let transaction = store.begin(&[database]).await.unwrap();
        let mut row = transaction.partitions()[0].clone();
        row.clock.0 += 1;
        let mut writes = WriteSet::empty(CommitId::random());
        writes.partitions.push(row.clone());
        faults.at("commit", when, 1, Fault::LostAnswer);
        let error = transaction.commit(&writes).await.unwrap_err();
        assert!(error.is_unknown(), "{error}");
        let clock = world.partition(database).await.clock;
        assert_eq!(clock == row.clock, is_applied);
    }
}

#[tokio::test]
async fn the_nth_call_gets_the_error_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let (store, faults) = faulty(&folder);
    let refused = StoreError::Unavailable {
        detail: "injected".to_owned(),
    };
    faults.at("read", When::Before, 2, Fault::Error(refused));
    let reads = [Read::Partition(PartitionId::ROOT)];
    assert!(store.read(At::Latest, &reads).await.is_ok());
    let error = store.read(At::Latest, &reads).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    assert!(store.read(At::Latest, &reads).await.is_ok());
    assert_eq!(faults.hits("read", When::Before), 3);
    assert_eq!(faults.hits("read", When::After), 2);
}

#[tokio::test]
async fn a_lost_connection_takes_the_transaction_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (store, faults) = faulty(&folder);
    let mut transaction = store.begin(&[PartitionId::ROOT]).await.unwrap();
    faults.at("tx.read", When::After, 1, Fault::LostAnswer);
    let reads = [Read::Partition(PartitionId::ROOT)];
    let error = transaction.read(At::Latest, &reads).await.unwrap_err();
    assert!(is_connection_lost(&error), "{error}");
    // Its partitions are free though nobody let go of it.
    store
        .begin(&[PartitionId::ROOT])
        .await
        .unwrap()
        .rollback()
        .await;
    let nothing = WriteSet::empty(CommitId::random());
    let error = transaction.commit(&nothing).await.unwrap_err();
    assert!(is_connection_lost(&error), "{error}");
}

#[tokio::test]
async fn a_paused_call_goes_on_when_told() {
    let folder = tempfile::tempdir().unwrap();
    let (store, faults) = faulty(&folder);
    let pause = faults.pause("begin", When::After, 1);
    let beginning = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.begin(&[PartitionId::ROOT]).await.map(|_| ()) }
    });
    pause.arrived().await;
    assert!(!beginning.is_finished());
    pause.resume();
    beginning.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_crash_is_the_tests_own() {
    let folder = tempfile::tempdir().unwrap();
    let (store, faults) = faulty(&folder);
    let crashed = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&crashed);
    let crash = move || seen.store(true, Ordering::SeqCst);
    faults.at("now", When::Before, 1, Fault::Crash(Box::new(crash)));
    store.now().await.unwrap();
    assert!(crashed.load(Ordering::SeqCst));
    let panics = || panic!("crashed here");
    faults.at("now", When::After, 1, Fault::Crash(Box::new(panics)));
    let died = tokio::spawn(async move { store.now().await }).await;
    assert!(died.unwrap_err().is_panic());
}

#[tokio::test]
async fn revisions_rise_when_the_clock_steps_back() {
    let folder = tempfile::tempdir().unwrap();
    let (store, faults) = faulty(&folder);
    let world = World::new(Arc::clone(&store));
    let database = world.database("db").await;
    let t = table(database, "t");
    let id = object();
    let first = world.write(&[database], &[put(&t, id, "1")]).await;
    let before = store.now().await.unwrap();
    faults.shift_clock(-3_600_000_000);
    assert!(store.now().await.unwrap() < before);
    let second = world.write(&[database], &[put(&t, id, "2")]).await;
    assert_eq!(second.last().0, first.last().0 + 1);
    world.assert_sound().await;
}

#[tokio::test]
async fn random_faults_repeat_with_their_seed() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let folder = tempfile::tempdir().unwrap();
        let (store, faults) = faulty(&folder);
        faults.random(42, 0.3);
        let mut run = Vec::new();
        for _ in 0..50 {
            run.push(store.now().await.is_ok());
        }
        faults.calm();
        assert!(store.now().await.is_ok());
        runs.push(run);
    }
    assert_eq!(runs[0], runs[1]);
    assert!(runs[0].contains(&true) && runs[0].contains(&false));
}
