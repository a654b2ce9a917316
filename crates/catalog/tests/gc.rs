//! Garbage collection: a file goes when nothing that is kept names it, and never before.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_catalog::reference::{ReferenceKind, ReferenceName};
use anabranch_catalog::{GcRun, GcState, Limits, NewGc, NewReference, SourceReference};
use anabranch_files::{Fault as FileFault, FaultCall, FaultGate, FileErrorKind};
use anabranch_partition::Reason;
use anabranch_store::Store;
use anabranch_store::fault::When;
use serde_json::json;

use support::manifests::{
    ADDED, DELETED, age_all, files_below, folder_of, put, put_list, put_manifest,
};
use support::{Server, caller, reason, table};

on_every_engine![
    what_any_reference_shows_stays_and_goes_with_the_last_one,
    every_kind_of_file_goes_once_nothing_names_it,
    a_dry_run_lists_what_a_run_removes,
    a_snapshot_expired_on_main_stays_whole_on_a_branch_and_a_tag,
    what_a_commit_names_while_a_gc_runs_stays,
    nothing_is_registered_where_a_gc_removes_files,
    a_gc_goes_on_after_a_crash,
    what_cannot_be_read_keeps_all_files_of_its_table,
    young_and_hidden_files_stay,
    a_table_in_another_database_keeps_what_it_names,
    a_purge_on_main_waits_for_the_branches,
    a_purge_is_given_up_if_a_merge_brought_the_table_back,
];

fn at_once() -> Limits {
    Limits {
        history_retention: Duration::ZERO,
        job_interval: Duration::ZERO,
        ..Limits::default()
    }
}

const DRY: NewGc = NewGc {
    database: None,
    dry_run: true,
    grace: None,
};
const REAL: NewGc = NewGc {
    dry_run: false,
    ..DRY
};

impl Server {
    async fn gc(&self, new: &NewGc) -> GcRun {
        let started = self.catalog.start_gc(&self.lake, new).await.unwrap();
        self.gc_ended(&started).await
    }

    async fn gc_ended(&self, started: &GcRun) -> GcRun {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            self.work_on_gc("worker").await;
            let id = started.id.to_string();
            let run = self.catalog.gc(&self.lake, &id).await.unwrap();
            if run.body.state == GcState::Done {
                return run;
            }
            assert!(Instant::now() < deadline, "it never ends");
        }
    }

    async fn work_on_gc(&self, worker: &str) -> Option<String> {
        let due = self.catalog.due_gc(worker).await.unwrap()?;
        Some(due.run().await.unwrap().summary)
    }

    async fn prune(&self) {
        let partitions = self.catalog.partitions();
        partitions.prune_all(Duration::ZERO).await.unwrap();
    }

    async fn make(&self, kind: ReferenceKind, name: &str) {
        let new = NewReference {
            name: ReferenceName {
                kind,
                name: name.to_owned(),
            },
            source: SourceReference {
                name: ReferenceName {
                    kind: ReferenceKind::Branch,
                    name: "main".to_owned(),
                },
                revision: None,
            },
            expected: None,
        };
        let (who, lake) = (caller(), &self.lake);
        let made = self.catalog.create_reference(&who, lake, "db", &new);
        made.await.unwrap();
    }

    async fn unmake(&self, name: &str) {
        let (who, lake) = (caller(), &self.lake);
        let catalog = &self.catalog;
        let deleted = catalog.delete_reference(&who, lake, "db", name, None, None);
        deleted.await.unwrap();
    }
}

/// Names of files below a folder.
fn names(files: impl IntoIterator<Item = PathBuf>) -> BTreeSet<String> {
    let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    files.into_iter().map(name).collect()
}

fn garbage(run: &GcRun) -> BTreeSet<String> {
    names(
        run.body
            .report
            .files
            .iter()
            .map(|file| PathBuf::from(&file.location)),
    )
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

/// A table `t` whose first snapshot has the data file `data-1`; answers its folder.
async fn table_with_snapshot(server: &Server) -> PathBuf {
    server.begin().await;
    add_table_with_snapshot(server).await
}

async fn add_table_with_snapshot(server: &Server) -> PathBuf {
    server.create("t").await.unwrap();
    let folder = folder_of(server, "db", "t").await;
    let data = put(&folder, "data/data-1", b"rows");
    let manifest = put_manifest(&folder, "metadata/m-1.avro", &[(ADDED, 0, &data)]);
    let list = put_list(&folder, "metadata/snap-1.avro", &[&manifest]);
    server.add_snapshot("db", "t", 1, &list).await.unwrap();
    folder
}

/// Adds a snapshot with one data file of its own, and nothing of the others.
async fn add_alone(server: &Server, database: &str, folder: &Path, number: i64) {
    let data = put(folder, &format!("data/data-{number}"), b"rows");
    let name = format!("metadata/m-{number}.avro");
    let manifest = put_manifest(folder, &name, &[(ADDED, 0, &data)]);
    let name = format!("metadata/snap-{number}.avro");
    let list = put_list(folder, &name, &[&manifest]);
    server
        .add_snapshot(database, "t", number, &list)
        .await
        .unwrap();
}

/// Makes the metadata log short, so that metadata documents go too.
async fn forget_old_metadata(server: &Server, database: &str) {
    let set = json!({"action": "set-properties", "updates": {
        "write.metadata.previous-versions-max": "1"}});
    server.apply(database, "t", vec![set]).await.unwrap();
}

async fn what_any_reference_shows_stays_and_goes_with_the_last_one(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let server = Server::with(&store, folder, at_once());
    let files = table_with_snapshot(&server).await;
    server.make(ReferenceKind::Tag, "v1").await;
    add_alone(&server, "db", &files, 2).await;
    server.expire("db", "t", &[1]).await;
    server.make(ReferenceKind::Branch, "x").await;
    add_alone(&server, "db$branch_x", &files, 3).await;
    server.expire("db$branch_x", "t", &[2]).await;
    add_alone(&server, "db", &files, 4).await;
    server.expire("db", "t", &[2]).await;
    age_all(&files);
    server.prune().await;
    // Only the tag shows 1, only the state that was branched off shows 2, only the branch 3.
    assert_eq!(garbage(&server.gc(&DRY).await), set([]));
    let kept_by = |number: i64| {
        set([
            &format!("data-{number}"),
            &format!("m-{number}.avro"),
            &format!("snap-{number}.avro"),
        ])
    };
    // Each reference that goes shows that nothing else kept what it showed.
    server.unmake("v1").await;
    server.prune().await;
    assert_eq!(garbage(&server.gc(&DRY).await), kept_by(1));
    server.unmake("x").await;
    // Until then its states can be asked for by their revision.
    assert_eq!(garbage(&server.gc(&DRY).await), kept_by(1));
    server.prune().await;
    let run = server.gc(&REAL).await;
    let left: BTreeSet<String> = (1..=3).flat_map(kept_by).collect();
    let removed = garbage(&run);
    assert!(removed.is_superset(&left), "{removed:?}");
    assert!(
        removed
            .difference(&left)
            .all(|name| name.contains(".metadata.json")),
        "{removed:?}"
    );
    let there = names(files_below(&files));
    assert!(
        there.is_superset(&kept_by(4)) && there.is_disjoint(&left),
        "{there:?}"
    );
    assert_eq!(server.snapshots("t").await, [4]);
    server.healthy().await;
}

async fn every_kind_of_file_goes_once_nothing_names_it(store: Arc<dyn Store>, folder: &Path) {
    let server = Server::with(&store, folder, at_once());
    let files = table_with_snapshot(&server).await;
    forget_old_metadata(&server, "db").await;
    let data = put(&files, "data/data-2", b"rows");
    let position = put(&files, "data/positions", b"rows");
    let vectors = put(&files, "data/vectors.puffin", b"rows");
    let old = put(&files, "data/data-1", b"rows");
    let entries = [
        (ADDED, 0, &*data),
        (ADDED, 1, &*position),
        (ADDED, 1, &*vectors),
    ];
    let manifest = put_manifest(&files, "metadata/m-2.avro", &entries);
    let removed = put_manifest(&files, "metadata/m-3.avro", &[(DELETED, 0, &old)]);
    let list = put_list(&files, "metadata/snap-2.avro", &[&manifest, &removed]);
    server.add_snapshot("db", "t", 2, &list).await.unwrap();
    let statistics = put(&files, "metadata/2.stats", b"sketch");
    let partitions = put(&files, "metadata/partitions", b"rows");
    let of_snapshot = |path: &str| {
        json!({"snapshot-id": 2, "statistics-path": path,
        "file-size-in-bytes": 6, "file-footer-size-in-bytes": 1, "blob-metadata": []})
    };
    server
        .apply(
            "db",
            "t",
            vec![
                json!({"action": "set-statistics", "statistics": of_snapshot(&statistics)}),
                json!({"action": "set-partition-statistics", "partition-statistics":
                {"snapshot-id": 2, "statistics-path": partitions, "file-size-in-bytes": 4}}),
            ],
        )
        .await
        .unwrap();
    age_all(&files);
    server.prune().await;
    let only_metadata = |run: &GcRun| {
        let files = run.body.report.files.iter();
        files
            .map(|file| file.location.clone())
            .all(|name| name.contains(".metadata.json"))
    };
    assert!(only_metadata(&server.gc(&REAL).await));
    // Without snapshot 1 only manifest 3 knows of data-1, and that says that it was removed.
    server.expire("db", "t", &[1]).await;
    age_all(&files);
    server.prune().await;
    let run = server.gc(&REAL).await;
    let told: Vec<_> = run
        .body
        .report
        .files
        .iter()
        .filter(|file| file.told_removed)
        .collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].location.ends_with("data-1") && told[0].why().contains("removed"));
    let wanted = set(["data-1", "m-1.avro", "snap-1.avro"]);
    assert!(garbage(&run).is_superset(&wanted));
    // A new table in the place of all else.
    let empty = put_list(&files, "metadata/snap-9.avro", &[]);
    server.add_snapshot("db", "t", 9, &empty).await.unwrap();
    server.expire("db", "t", &[2]).await;
    age_all(&files);
    server.prune().await;
    let run = server.gc(&REAL).await;
    let gone = set([
        "data-2",
        "positions",
        "vectors.puffin",
        "m-2.avro",
        "m-3.avro",
        "snap-2.avro",
        "2.stats",
        "partitions",
    ]);
    assert!(garbage(&run).is_superset(&gone), "{:?}", garbage(&run));
    for file in &run.body.report.files {
        assert!(!file.why().is_empty() && file.table == "lake.db.t");
    }
    let there = names(files_below(&files));
    assert!(there.is_disjoint(&gone) && there.contains("snap-9.avro"));
    server.healthy().await;
}

async fn a_dry_run_lists_what_a_run_removes(store: Arc<dyn Store>, folder: &Path) {
    let server = Server::with(&store, folder, at_once());
    let files = table_with_snapshot(&server).await;
    for number in 0..3 {
        put(&files, &format!("data/orphan-{number}"), b"12345");
    }
    age_all(&files);
    let before = files_below(&files);
    let dry = server.gc(&DRY).await.body.report;
    assert_eq!(files_below(&files), before);
    assert_eq!((dry.garbage.files, dry.garbage.bytes), (3, 15));
    assert_eq!(dry.removed.files, 0);
    let real = server.gc(&REAL).await.body.report;
    assert_eq!(real.files, dry.files);
    assert_eq!(real.removed, dry.garbage);
    let after: BTreeSet<_> = files_below(&files).into_iter().collect();
    let gone: Vec<_> = before
        .iter()
        .filter(|file| !after.contains(*file))
        .collect();
    assert_eq!(gone.len(), 3);
    assert_eq!(server.gc(&REAL).await.body.report.garbage.files, 0);
    server.healthy().await;
}

async fn a_snapshot_expired_on_main_stays_whole_on_a_branch_and_a_tag(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let server = Server::with(&store, folder, at_once());
    server.begin().await;
    for kind in [ReferenceKind::Branch, ReferenceKind::Tag] {
        if kind == ReferenceKind::Tag {
            server.unmake("x").await;
            server.drop_table("t", false).await.unwrap();
        }
        let files = add_table_with_snapshot(&server).await;
        server.make(kind, "x").await;
        add_alone(&server, "db", &files, 2).await;
        server.expire("db", "t", &[1]).await;
        age_all(&files);
        server.prune().await;
        let run = server.gc(&REAL).await;
        assert_eq!(run.body.report.removed.files, 0, "{:?}", garbage(&run));
        assert!(files.join("data/data-1").exists());
    }
}

/// An old file that nothing named when the run began.
async fn what_a_commit_names_while_a_gc_runs_stays(store: Arc<dyn Store>, folder: &Path) {
    let server = Server::with(&store, folder, at_once());
    let files = table_with_snapshot(&server).await;
    let data = put(&files, "data/late", b"rows");
    let manifest = put_manifest(&files, "metadata/m-late.avro", &[(ADDED, 0, &data)]);
    let list = put_list(&files, "metadata/snap-late.avro", &[&manifest]);
    put(&files, "data/orphan", b"rows");
    age_all(&files);
    let other = Server::over(&store, folder);
    // The second time: all that was kept when it began has been read.
    let hold = server.faults.pause("save_task", When::Before, 2);
    let commit = async {
        hold.arrived().await;
        other.add_snapshot("db", "t", 2, &list).await.unwrap();
        hold.resume();
    };
    let (run, ()) = tokio::join!(server.gc(&REAL), commit);
    assert_eq!(garbage(&run), set(["orphan"]));
    assert!(files.join("data/late").exists());
    server.healthy().await;
}

async fn nothing_is_registered_where_a_gc_removes_files(store: Arc<dyn Store>, folder: &Path) {
    let server = Server::with(&store, folder, at_once());
    let files = table_with_snapshot(&server).await;
    forget_old_metadata(&server, "db").await;
    let old = server.set("t", "a", "1").await.unwrap();
    for value in ["2", "3", "4"] {
        server.set("t", "a", value).await.unwrap();
    }
    let document = old.pointer.metadata_location.clone();
    age_all(&files);
    server.prune().await;
    let gate = FaultGate::default();
    let held = FileFault::HoldBefore(gate.clone());
    server.file_faults.on_next(FaultCall::Delete, held);
    let other = Server::over(&store, folder);
    let register = async {
        gate.arrived().await;
        let again = table(&["db"], "again");
        let (who, lake) = (caller(), &other.lake);
        let registered = other
            .catalog
            .register_table(&who, lake, again, &document, false);
        let registered = registered.await;
        gate.open();
        registered
    };
    let (run, registered) = tokio::join!(server.gc(&REAL), register);
    assert_eq!(reason(&registered), Some(Reason::Conflict));
    assert!(run.body.report.removed.files > 0);
    // Afterwards the place is free again.
    let current = server.set("t", "a", "5").await.unwrap();
    let again = table(&["db"], "again");
    let (who, lake) = (caller(), &other.lake);
    let document = &current.pointer.metadata_location;
    let registered = other
        .catalog
        .register_table(&who, lake, again, document, false);
    registered.await.unwrap();
    server.healthy().await;
}

async fn a_gc_goes_on_after_a_crash(store: Arc<dyn Store>, folder: &Path) {
    let server = Server::with(&store, folder, at_once());
    let files = table_with_snapshot(&server).await;
    for number in 0..4 {
        put(&files, &format!("data/orphan-{number}"), b"12345");
    }
    age_all(&files);
    let gone = FileErrorKind::Unavailable;
    let failing = FileFault::FailAfter(gone);
    server.file_faults.on_next(FaultCall::Delete, failing);
    let started = server.catalog.start_gc(&server.lake, &REAL).await.unwrap();
    let summary = server.work_on_gc("first").await;
    assert!(summary.unwrap().contains("tried again"));
    let id = started.id.to_string();
    let run = server.catalog.gc(&server.lake, &id).await.unwrap();
    assert_eq!(run.body.state, GcState::Running);
    let run = Server::with(&store, folder, at_once())
        .gc_ended(&started)
        .await;
    assert_eq!(run.body.report.garbage.files, 3);
    assert!(
        names(files_below(&files))
            .iter()
            .all(|name| !name.starts_with("orphan"))
    );
    server.healthy().await;
}

async fn what_cannot_be_read_keeps_all_files_of_its_table(store: Arc<dyn Store>, folder: &Path) {
    let server = Server::with(&store, folder, at_once());
    let files = table_with_snapshot(&server).await;
    server.create("fine").await.unwrap();
    let fine = folder_of(&server, "db", "fine").await;
    for folder in [&files, &fine] {
        put(folder, "data/orphan", b"rows");
    }
    put(&files, "metadata/m-1.avro", b"Obj\x01 and no more");
    age_all(&files);
    age_all(&fine);
    let report = server.gc(&REAL).await.body.report;
    assert_eq!(report.unreadable.len(), 1, "{:?}", report.unreadable);
    assert_eq!(report.unreadable[0].table, "lake.db.t");
    assert!(report.unreadable[0].location.ends_with("m-1.avro"));
    assert!(files.join("data/orphan").exists());
    assert!(!fine.join("data/orphan").exists());
    // Nor is a missing metadata document an empty one.
    put(&fine, "data/orphan", b"rows");
    age_all(&fine);
    for file in files_below(&fine.join("metadata")) {
        std::fs::remove_file(file).unwrap();
    }
    let report = server.gc(&REAL).await.body.report;
    assert_eq!(report.unreadable.len(), 2, "{:?}", report.unreadable);
    assert!(fine.join("data/orphan").exists());
}

async fn young_and_hidden_files_stay(store: Arc<dyn Store>, folder: &Path) {
    let server = Server::with(&store, folder, at_once());
    let files = table_with_snapshot(&server).await;
    put(&files, "_delta_log/1.json", b"{}");
    put(&files, "data/.part.crc", b"crc");
    put(&files, "data/old", b"rows");
    age_all(&files);
    put(&files, "data/young", b"rows");
    let report = server.gc(&REAL).await.body.report;
    assert_eq!((report.kept.young, report.kept.hidden), (1, 2));
    assert_eq!(report.removed.files, 1);
    assert!(files.join("data/young").exists() && !files.join("data/old").exists());
    let hasty = NewGc {
        grace: Some(Duration::from_secs(3600)),
        ..REAL
    };
    let refused = server.catalog.start_gc(&server.lake, &hasty).await;
    assert_eq!(reason(&refused), Some(Reason::InvalidInput));
    // No period is too long to be counted with.
    let patient = NewGc {
        grace: Some(Duration::from_millis(u64::MAX)),
        ..REAL
    };
    put(&files, "data/old", b"rows");
    age_all(&files);
    assert_eq!(server.gc(&patient).await.body.report.garbage.files, 0);
}

/// A manifest may name files that lie with another table.
async fn a_table_in_another_database_keeps_what_it_names(store: Arc<dyn Store>, folder: &Path) {
    let server = Server::with(&store, folder, at_once());
    let files = table_with_snapshot(&server).await;
    server.namespace(&["other"]).await.unwrap();
    server.create_in(&["other"], "copy").await.unwrap();
    let copy = folder_of(&server, "other", "copy").await;
    let shared = put(&files, "data/shared", b"rows");
    put(&files, "data/orphan", b"rows");
    put(&copy, "data/orphan-of-other", b"rows");
    let manifest = put_manifest(&copy, "metadata/m.avro", &[(ADDED, 0, &shared)]);
    let list = put_list(&copy, "metadata/snap.avro", &[&manifest]);
    server
        .add_snapshot("other", "copy", 1, &list)
        .await
        .unwrap();
    age_all(&files);
    age_all(&copy);
    let only = NewGc {
        database: Some("db".to_owned()),
        ..REAL
    };
    assert_eq!(garbage(&server.gc(&only).await), set(["orphan"]));
    assert!(files.join("data/shared").exists());
    assert!(copy.join("data/orphan-of-other").exists());
}

async fn a_purge_on_main_waits_for_the_branches(store: Arc<dyn Store>, folder: &Path) {
    let server = Server::with(&store, folder, at_once());
    let files = table_with_snapshot(&server).await;
    server.make(ReferenceKind::Branch, "x").await;
    server.make(ReferenceKind::Tag, "v1").await;
    server.drop_table("t", true).await.unwrap();
    age_all(&files);
    for kept_by in ["x", "v1"] {
        server.prune().await;
        let mut report = None;
        let deadline = Instant::now() + Duration::from_secs(30);
        while report.is_none() && Instant::now() < deadline {
            report = server.catalog.run_due_task("worker").await.unwrap();
        }
        let summary = report.unwrap().summary;
        assert!(summary.contains("reads them"), "{kept_by}: {summary}");
        server.gc(&REAL).await;
        for file in ["data/data-1", "metadata/m-1.avro", "metadata/snap-1.avro"] {
            assert!(files.join(file).exists(), "{kept_by} needs {file}");
        }
        server.unmake(kept_by).await;
    }
    server.prune().await;
    let deadline = Instant::now() + Duration::from_secs(30);
    while files.exists() {
        assert!(
            Instant::now() < deadline,
            "the purge never comes to its end"
        );
        server.catalog.run_due_task("worker").await.unwrap();
    }
    server.healthy().await;
}

async fn a_purge_is_given_up_if_a_merge_brought_the_table_back(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    use anabranch_catalog::NewMerge;
    use anabranch_catalog::reference::{Mode, Modes};
    let server = Server::with(&store, folder, at_once());
    let files = table_with_snapshot(&server).await;
    server.make(ReferenceKind::Branch, "x").await;
    server.drop_table("t", true).await.unwrap();
    add_alone(&server, "db$branch_x", &files, 2).await;
    let merge = NewMerge {
        target: "main".to_owned(),
        source: SourceReference {
            name: ReferenceName {
                kind: ReferenceKind::Branch,
                name: "x".to_owned(),
            },
            revision: None,
        },
        expected: None,
        modes: Modes {
            default: Mode::Force,
            ..Modes::default()
        },
        dry_run: false,
    };
    let (who, lake) = (caller(), &server.lake);
    server
        .catalog
        .merge(&who, lake, "db", &merge)
        .await
        .unwrap();
    let report = server.catalog.run_due_task("worker").await.unwrap();
    assert!(report.unwrap().summary.contains("files stay"));
    assert_eq!(server.snapshots("t").await, [1, 2]);
    assert!(files.join("data/data-1").exists());
    server.healthy().await;
}
