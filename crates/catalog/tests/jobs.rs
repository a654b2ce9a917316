//! Background jobs: files go when nothing can read them, and never before.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anabranch_catalog::reference::{ReferenceKind, ReferenceName};
use anabranch_catalog::{Limits, NewReference, SourceReference};
use anabranch_files::{Fault as FileFault, FaultCall, FaultGate, FileErrorKind};
use anabranch_partition::Reason;
use anabranch_store::fault::{Fault, When};
use anabranch_store::{Store, StoreError};

use support::{Server, append, caller, new_table, reason, request, set_property, table};

on_every_engine![
    a_purge_removes_the_files_once_nothing_retained_reads_them,
    a_purge_waits_for_retained_versions,
    a_purge_goes_on_after_a_crash,
    a_purge_leaves_the_place_of_another_table_alone,
    nothing_is_registered_where_a_purge_removes_files,
    a_table_made_inside_while_a_purge_runs_keeps_its_files,
    a_document_that_is_lost_under_a_living_server_is_found,
    a_drop_without_purge_keeps_the_files_for_ever,
    what_a_failed_commit_left_is_swept,
    what_a_failed_create_left_is_forgotten,
    a_create_ends_its_note,
    a_sweep_leaves_everything_that_is_named,
    a_sweep_leaves_what_another_branch_names,
    a_commit_prepared_too_long_ago_is_prepared_again,
];

fn at_once() -> Limits {
    Limits {
        history_retention: Duration::ZERO,
        job_interval: Duration::ZERO,
        ..Limits::default()
    }
}

/// Runs due tasks until the condition holds.
async fn work_until(server: &Server, done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < deadline, "the jobs never get there");
        server.catalog.run_due_task("worker").await.unwrap();
    }
}

/// A table with a data file, and its folder.
async fn table_with_data(server: &Server, name: &str) -> PathBuf {
    let created = server.create(name).await.unwrap();
    let folder = created.pointer.location.strip_prefix("file://").unwrap();
    std::fs::write(Path::new(folder).join("data/1.parquet"), "rows").unwrap();
    PathBuf::from(folder)
}

fn age(path: &Path) {
    let file = std::fs::File::options().append(true).open(path).unwrap();
    let old = SystemTime::now() - Duration::from_secs(3 * 24 * 3600);
    file.set_modified(old).unwrap();
}

async fn a_purge_removes_the_files_once_nothing_retained_reads_them(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let server = Server::with(&store, folder, at_once());
    server.begin().await;
    server.catalog.ensure_jobs().await.unwrap();
    let files = table_with_data(&server, "t").await;
    server.set("t", "a", "1").await.unwrap();
    server.drop_table("t", true).await.unwrap();
    work_until(&server, || !files.exists()).await;
    server.healthy().await;
}

async fn a_purge_waits_for_retained_versions(store: Arc<dyn Store>, folder: &Path) {
    let limits = Limits {
        history_retention: Duration::from_millis(1),
        ..at_once()
    };
    let server = Server::with(&store, folder, limits);
    server.begin().await;
    let files = table_with_data(&server, "t").await;
    server.drop_table("t", true).await.unwrap();
    // Nobody prunes: the jobs that recur are not known to this store.
    let mut report = None;
    while report.is_none() {
        report = server.catalog.run_due_task("worker").await.unwrap();
    }
    assert!(report.unwrap().summary.contains("retained"));
    assert!(files.join("data/1.parquet").exists());
    server.catalog.ensure_jobs().await.unwrap();
    work_until(&server, || !files.exists()).await;
}

async fn a_purge_goes_on_after_a_crash(store: Arc<dyn Store>, folder: &Path) {
    let server = Server::with(&store, folder, at_once());
    server.begin().await;
    server.catalog.ensure_jobs().await.unwrap();
    let files = table_with_data(&server, "t").await;
    server.drop_table("t", true).await.unwrap();
    let gone = FileErrorKind::Unavailable;
    server
        .file_faults
        .on_next(FaultCall::DeleteUnder, FileFault::FailAfter(gone));
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let report = server.catalog.run_due_task("first").await.unwrap();
        if report.is_some_and(|report| report.summary.contains("tried again")) {
            break;
        }
        assert!(Instant::now() < deadline);
    }
    work_until(&Server::with(&store, folder, at_once()), || !files.exists()).await;
}

async fn a_purge_leaves_the_place_of_another_table_alone(store: Arc<dyn Store>, folder: &Path) {
    let server = Server::with(&store, folder, at_once());
    server.begin().await;
    server.catalog.ensure_jobs().await.unwrap();
    let files = table_with_data(&server, "t").await;
    let created = server.set("t", "a", "1").await.unwrap();
    let copy = table(&["db"], "copy");
    let document = &created.pointer.metadata_location;
    let (who, lake) = (caller(), &server.lake);
    let registered = server
        .catalog
        .register_table(&who, lake, copy, document, false);
    registered.await.unwrap();
    server.drop_table("t", true).await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let report = server.catalog.run_due_task("worker").await.unwrap();
        if report.is_some_and(|report| report.summary.contains("files stay")) {
            break;
        }
        assert!(Instant::now() < deadline);
    }
    assert!(files.join("data/1.parquet").exists());
    assert_eq!(server.properties("copy").await["a"], "1");
    server.healthy().await;
}

async fn nothing_is_registered_where_a_purge_removes_files(store: Arc<dyn Store>, folder: &Path) {
    let server = Server::with(&store, folder, at_once());
    server.begin().await;
    server.catalog.ensure_jobs().await.unwrap();
    let files = table_with_data(&server, "t").await;
    let last = server.set("t", "a", "1").await.unwrap();
    server.drop_table("t", true).await.unwrap();
    let gate = FaultGate::default();
    server
        .file_faults
        .on_next(FaultCall::Delete, FileFault::HoldBefore(gate.clone()));
    let purge = work_until(&server, || !files.exists());
    let register = async {
        gate.arrived().await;
        let other = Server::over(&store, folder);
        let again = table(&["db"], "again");
        let document = &last.pointer.metadata_location;
        let (who, lake) = (caller(), &other.lake);
        let registered = other
            .catalog
            .register_table(&who, lake, again, document, false);
        let registered = registered.await;
        gate.open();
        registered
    };
    let ((), registered) = tokio::join!(purge, register);
    assert_eq!(reason(&registered), Some(Reason::Conflict));
    server.healthy().await;
}

async fn a_table_made_inside_while_a_purge_runs_keeps_its_files(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let server = Server::with(&store, folder, at_once());
    server.begin().await;
    server.catalog.ensure_jobs().await.unwrap();
    let files = table_with_data(&server, "t").await;
    server.drop_table("t", true).await.unwrap();
    let gate = FaultGate::default();
    server
        .file_faults
        .on_next(FaultCall::Delete, FileFault::HoldBefore(gate.clone()));
    let purge = work_until(&server, || !files.join("data/1.parquet").exists());
    let create = async {
        gate.arrived().await;
        let other = Server::over(&store, folder);
        let mut new = new_table(table(&["db"], "inner"));
        new.location = Some(format!("file://{}/inner", files.display()));
        let created = other
            .catalog
            .create_table(&caller(), &other.lake, new)
            .await;
        gate.open();
        created.unwrap();
    };
    tokio::join!(purge, create);
    server.catalog.run_due_task("worker").await.unwrap();
    assert!(server.set("inner", "a", "1").await.is_ok());
    server.healthy().await;
}

async fn a_document_that_is_lost_under_a_living_server_is_found(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let server = Server::over(&store, folder);
    server.begin().await;
    server.create("t").await.unwrap();
    server.healthy().await;
    std::fs::remove_file(&server.metadata_files()[0]).unwrap();
    let found = server.catalog.doctor(true).await.unwrap();
    let invariants: Vec<_> = found.iter().map(|one| one.invariant).collect();
    assert_eq!(invariants, ["metadata-document-is-readable"]);
}

async fn a_drop_without_purge_keeps_the_files_for_ever(store: Arc<dyn Store>, folder: &Path) {
    let server = Server::with(&store, folder, at_once());
    server.begin().await;
    let files = table_with_data(&server, "t").await;
    let last = server.set("t", "a", "1").await.unwrap();
    server.drop_table("t", false).await.unwrap();
    for file in server.metadata_files() {
        age(&file);
    }
    server
        .catalog
        .partitions()
        .prune_all(Duration::ZERO)
        .await
        .unwrap();
    server.catalog.sweep().await.unwrap();
    assert!(files.join("data/1.parquet").exists());
    let again = table(&["db"], "again");
    let document = &last.pointer.metadata_location;
    let (who, lake) = (caller(), &server.lake);
    let registered = server
        .catalog
        .register_table(&who, lake, again, document, false);
    registered.await.unwrap();
    assert_eq!(server.properties("again").await["a"], "1");
}

async fn what_a_failed_commit_left_is_swept(store: Arc<dyn Store>, folder: &Path) {
    let server = Server::over(&store, folder);
    server.begin().await;
    server.create("t").await.unwrap();
    let kept = server.metadata_files();
    // A server that dies between file and commit.
    let dying = Server::over(&store, folder);
    let hold = dying.faults.pause("begin", When::Before, 1);
    let doomed = tokio::spawn(async move { dying.set("t", "a", "1").await });
    hold.arrived().await;
    doomed.abort();
    assert_eq!(server.metadata_files().len(), 2);
    assert_eq!(server.catalog.sweep().await.unwrap(), 0, "it is too young");
    for file in server.metadata_files() {
        age(&file);
    }
    assert_eq!(server.catalog.sweep().await.unwrap(), 1);
    assert_eq!(server.metadata_files(), kept);
    server.healthy().await;
}

async fn what_a_failed_create_left_is_forgotten(store: Arc<dyn Store>, folder: &Path) {
    let limits = Limits {
        sweep_grace: Duration::from_millis(100),
        ..Limits::default()
    };
    let server = Server::with(&store, folder, limits.clone());
    server.begin().await;
    let dying = Server::with(&store, folder, limits);
    let hold = dying.faults.pause("begin", When::Before, 1);
    let doomed = tokio::spawn(async move { dying.create("t").await });
    hold.arrived().await;
    doomed.abort();
    assert_eq!(server.metadata_files().len(), 1);
    work_until(&server, || server.metadata_files().is_empty()).await;
    server.healthy().await;
}

async fn a_create_ends_its_note(store: Arc<dyn Store>, folder: &Path) {
    let limits = Limits {
        sweep_grace: Duration::from_millis(500),
        ..Limits::default()
    };
    let server = Server::with(&store, folder, limits);
    server.begin().await;
    server.create("t").await.unwrap();
    // Also if the answer to its COMMIT is lost.
    server
        .faults
        .at("commit", When::After, 1, Fault::LostAnswer);
    server.create("u").await.unwrap();
    // And not if the store can't take the note: then nothing is created.
    let error = StoreError::Unavailable {
        detail: "injected".to_owned(),
    };
    server
        .faults
        .at("ensure_task", When::Before, 1, Fault::Error(error));
    assert!(server.create("v").await.is_err());
    assert_eq!(server.metadata_files().len(), 2);
    // A note that is left comes due like that of a creation that never was.
    let left = Server::with(&store, folder, server.catalog.limits().clone());
    let hold = left.faults.pause("begin", When::Before, 1);
    let doomed = tokio::spawn(async move { left.create("w").await });
    hold.arrived().await;
    doomed.abort();
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut reports = Vec::new();
    while reports.is_empty() {
        reports.extend(server.catalog.run_due_task("worker").await.unwrap());
        assert!(Instant::now() < deadline);
    }
    reports.extend(server.catalog.run_due_task("worker").await.unwrap());
    assert_eq!(
        reports.len(),
        1,
        "one note was left, not three: {reports:?}"
    );
    assert_eq!(server.metadata_files().len(), 2);
    server.healthy().await;
}

async fn a_sweep_leaves_everything_that_is_named(store: Arc<dyn Store>, folder: &Path) {
    let server = Server::over(&store, folder);
    server.begin().await;
    server.create("t").await.unwrap();
    for n in 0..5 {
        let parent = (n > 0).then_some(n);
        let said = request(&n.to_string());
        server
            .commit(&said, append("t", n + 1, parent, n + 1))
            .await
            .unwrap();
    }
    for file in server.metadata_files() {
        age(&file);
    }
    // The log of the current metadata names them, also when the history is gone.
    server
        .catalog
        .partitions()
        .prune_all(Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(server.catalog.sweep().await.unwrap(), 0);
    assert_eq!(server.metadata_files().len(), 6);
    server.healthy().await;
}

/// They lie in one folder, and each has a log of its own.
async fn a_sweep_leaves_what_another_branch_names(store: Arc<dyn Store>, folder: &Path) {
    let server = Server::over(&store, folder);
    server.begin().await;
    server.create("t").await.unwrap();
    let main = SourceReference {
        name: ReferenceName {
            kind: ReferenceKind::Branch,
            name: "main".to_owned(),
        },
        revision: None,
    };
    let new = NewReference {
        name: ReferenceName {
            kind: ReferenceKind::Branch,
            name: "x".to_owned(),
        },
        source: main,
        expected: None,
    };
    let (who, lake) = (caller(), &server.lake);
    let made = server.catalog.create_reference(&who, lake, "db", &new);
    made.await.unwrap();
    for value in ["1", "2", "3"] {
        let mut change = set_property("t", "a", value);
        change.identifier = table(&["db$branch_x"], "t");
        server.commit(&caller(), change).await.unwrap();
    }
    for file in server.metadata_files() {
        age(&file);
    }
    let partitions = server.catalog.partitions();
    partitions.prune_all(Duration::ZERO).await.unwrap();
    assert_eq!(server.catalog.sweep().await.unwrap(), 0);
    assert_eq!(server.metadata_files().len(), 4);
    server.healthy().await;
}

/// Its first file may have been swept away while it waited.
async fn a_commit_prepared_too_long_ago_is_prepared_again(store: Arc<dyn Store>, folder: &Path) {
    let server = Server::over(&store, folder);
    server.begin().await;
    server.create("t").await.unwrap();
    let hold = server.faults.pause("begin", When::Before, 1);
    let sweep = async {
        hold.arrived().await;
        let files = server.metadata_files();
        let prepared = files
            .iter()
            .find(|file| file.to_string_lossy().contains("/00001-"));
        std::fs::remove_file(prepared.unwrap()).unwrap();
        server.faults.shift_clock(24 * 3600 * 1_000_000);
        hold.resume();
    };
    let (committed, ()) = tokio::join!(server.set("t", "a", "1"), sweep);
    committed.unwrap();
    assert_eq!(server.properties("t").await["a"], "1");
    server.healthy().await;
}
