//! What is particular to a store in a file: one serving process, one writer, a copy while in use.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_store::suite::world::{World, object, put, table};
use anabranch_store::{
    Answer, At, ConflictReason, OpenOptions, PartitionId, Read, SqliteOptions, SqliteStore, Store,
    StoreError, open,
};

fn serve(path: &Path) -> Result<SqliteStore, StoreError> {
    let options = SqliteOptions {
        migrate: true,
        exclusive: true,
        ..SqliteOptions::default()
    };
    SqliteStore::open(path, &options)
}

fn look(path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(path, &SqliteOptions::default())
}

fn message(error: &StoreError) -> String {
    assert!(matches!(error, StoreError::Unusable { .. }), "{error:?}");
    let message = error.to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

#[tokio::test]
async fn one_process_serves_and_others_may_look() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let serving = World::new(Arc::new(serve(&path).unwrap()));
    let text = message(&serve(&path).err().unwrap());
    assert!(text.contains("in use by another process"), "{text}");
    assert!(text.contains("store.db.lock"), "{text}");
    let doctor = look(&path).unwrap();
    assert_eq!(doctor.audit().await.unwrap(), []);
    drop(serving);
    serve(&path).unwrap();
}

#[tokio::test]
async fn a_store_that_cannot_be_used_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let text = message(&look(&path).err().unwrap());
    assert!(text.contains("there is no store at"), "{text}");
    drop(serve(&path).unwrap());
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute("UPDATE schema_version SET version = 99", ())
        .unwrap();
    for refused in [serve(&path), look(&path)] {
        let text = message(&refused.err().unwrap());
        assert!(
            text.contains("version 99") && text.contains("up to 2"),
            "{text}"
        );
    }
    raw.execute("UPDATE schema_version SET version = 0", ())
        .unwrap();
    let text = message(&look(&path).err().unwrap());
    assert!(text.contains("anabranch migrate"), "{text}");
    let garbage = folder.path().join("garbage.db");
    std::fs::write(
        &garbage,
        "this is no database at all, whatever its name says",
    )
    .unwrap();
    let text = message(&serve(&garbage).err().unwrap());
    assert!(text.contains("garbage.db"), "{text}");
    let nowhere = folder.path().join("absent").join("store.db");
    message(&serve(&nowhere).err().unwrap());
    let unknown = open("mysql://u:secret@h/d", &OpenOptions::default()).await;
    let text = message(&unknown.err().unwrap());
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn the_writer_is_waited_for_but_not_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions {
        migrate: true,
        wait: Duration::from_millis(50),
        ..SqliteOptions::default()
    };
    let store = SqliteStore::open(&folder.path().join("store.db"), &options).unwrap();
    let holder = store.begin(&[PartitionId::ROOT]).await.unwrap();
    let error = store.begin(&[PartitionId::ROOT]).await.err().unwrap();
    let is_lock_timeout = matches!(
        error,
        StoreError::Conflict {
            reason: ConflictReason::LockTimeout,
            ..
        }
    );
    assert!(is_lock_timeout, "{error}");
    // Readers don't wait for the writer.
    let reads = [Read::Partition(PartitionId::ROOT)];
    let answers = store.read(At::Latest, &reads).await.unwrap();
    assert!(matches!(answers[0], Answer::Partition(Some(_))));
    holder.rollback().await;
    store
        .begin(&[PartitionId::ROOT])
        .await
        .unwrap()
        .rollback()
        .await;
}

/// A caller that gives up in the middle of a call leaves the writer free.
#[tokio::test]
async fn a_caller_that_gives_up_leaves_the_writer_free() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(serve(&folder.path().join("store.db")).unwrap());
    for _ in 0..50 {
        let begun = store.begin(&[PartitionId::ROOT]);
        let _ = tokio::time::timeout(Duration::ZERO, begun).await;
    }
    let world = World::new(store);
    let database = world.database("db").await;
    let t = table(database, "t");
    world.write(&[database], &[put(&t, object(), "v")]).await;
    world.assert_sound().await;
}

/// Another process that writes the file meanwhile is a lost race, not a failure.
#[tokio::test]
async fn a_foreign_writer_is_a_lock_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = serve(&path).unwrap();
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.begin(&[PartitionId::ROOT]).await.err().unwrap();
    assert!(error.is_retryable(), "{error}");
    raw.execute_batch("ROLLBACK").unwrap();
    store
        .begin(&[PartitionId::ROOT])
        .await
        .unwrap()
        .rollback()
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_one_state_of_a_store_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(Arc::new(serve(&folder.path().join("store.db")).unwrap()));
    let database = world.database("db").await;
    let (a, b) = (table(database, "a"), table(database, "b"));
    let (one, two) = (object(), object());
    let body = "x".repeat(20_000);
    world
        .write(&[database], &[put(&a, one, &body), put(&b, two, &body)])
        .await;
    let writing = tokio::spawn({
        let (world, a, b, body) = (world.clone(), a.clone(), b.clone(), body.clone());
        async move {
            for _ in 0..100 {
                world
                    .write(&[database], &[put(&a, one, &body), put(&b, two, &body)])
                    .await;
            }
        }
    });
    let mut copies = 0;
    while !writing.is_finished() {
        let target = folder.path().join(format!("copy-{copies}.db"));
        world.store.backup(&target).await.unwrap();
        let copy = World::new(Arc::new(look(&target).unwrap()));
        copy.assert_sound().await;
        let versions = [copy.get(&a).await.unwrap(), copy.get(&b).await.unwrap()];
        assert_eq!(versions[0].version, versions[1].version);
        copies += 1;
    }
    writing.await.unwrap();
    let target = folder.path().join("copy-0.db");
    let before = std::fs::read(&target).unwrap();
    let text = message(&world.store.backup(&target).await.unwrap_err());
    assert!(text.contains("exists already"), "{text}");
    assert_eq!(std::fs::read(&target).unwrap(), before);
}
