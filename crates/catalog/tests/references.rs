//! Branches and tags through the service: what is written where, and what each reference shows.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_catalog::reference::{Mode, Modes, Outcome, ReferenceKind, ReferenceName};
use anabranch_catalog::{
    CatalogError, Changed, JobReport, Limits, Merged, NewMerge, NewReference, Page, PointerKind,
    SourceReference,
};
use anabranch_partition::{Reason, Subject};
use anabranch_store::{BranchId, Store};

use support::{Server, append, caller, namespace, new_table, reason, table};

on_every_engine![
    a_branch_is_written_and_main_shows_nothing_of_it,
    a_merge_brings_all_tables_at_once,
    a_merge_of_many_tables_takes_the_statements_of_one,
    a_tag_shows_what_it_froze,
    what_never_changes_is_not_written,
    a_missing_reference_is_not_main,
    two_writers_of_one_branch_admit_one,
    nested_namespaces_are_made_and_dropped_on_a_branch,
    expected_revisions_are_checked,
    what_was_moved_to_another_database_is_not_merged_into_two_places,
    a_deleted_branch_between_two_others_takes_no_common_ancestor_along,
    nothing_is_left_of_a_deleted_branch_that_nothing_needs,
    a_dropped_catalog_takes_its_branches_with_it,
];

fn reference(kind: ReferenceKind, name: &str) -> ReferenceName {
    ReferenceName {
        kind,
        name: name.to_owned(),
    }
}

fn source(kind: ReferenceKind, name: &str) -> SourceReference {
    SourceReference {
        name: reference(kind, name),
        revision: None,
    }
}

const BRANCH: ReferenceKind = ReferenceKind::Branch;
const TAG: ReferenceKind = ReferenceKind::Tag;

impl Server {
    async fn make(
        &self,
        kind: ReferenceKind,
        name: &str,
        from: &str,
    ) -> Result<String, CatalogError> {
        let new = NewReference {
            name: reference(kind, name),
            source: source(BRANCH, from),
            expected: None,
        };
        let who = caller();
        let made = self.catalog.create_reference(&who, &self.lake, "db", &new);
        made.await.map(|made| made.revision)
    }

    fn merge_of(&self, from: SourceReference, target: &str) -> NewMerge {
        NewMerge {
            target: target.to_owned(),
            source: from,
            expected: None,
            modes: Modes::default(),
            dry_run: false,
        }
    }

    async fn merge(&self, new: &NewMerge) -> Result<Changed<Merged>, CatalogError> {
        self.catalog.merge(&caller(), &self.lake, "db", new).await
    }

    async fn create_at(&self, database: &str, name: &str) -> Result<(), CatalogError> {
        let new = new_table(table(&[database], name));
        let created = self.catalog.create_table(&caller(), &self.lake, new).await;
        created.map(|_| ())
    }

    async fn append_at(
        &self,
        database: &str,
        name: &str,
        snapshot: i64,
        parent: Option<i64>,
    ) -> Result<(), CatalogError> {
        let mut change = append(name, snapshot, parent, snapshot);
        change.identifier = table(&[database], name);
        self.commit(&caller(), change).await.map(|_| ())
    }

    async fn tables_at(&self, database: &str) -> Result<Vec<String>, CatalogError> {
        let (namespace, page) = (namespace(&[database]), Page::default());
        let kind = PointerKind::Table;
        let listed = self
            .catalog
            .list_pointers(&self.lake, &namespace, kind, &page);
        let listed = listed.await?.items.into_iter();
        Ok(listed.map(|one| one.name).collect())
    }

    async fn drop_at(&self, levels: &[&str], name: &str) -> Result<(), CatalogError> {
        let (who, at) = (caller(), table(levels, name));
        let kind = PointerKind::Table;
        let dropped = self.catalog.drop_pointer(&who, &self.lake, &at, kind, true);
        dropped.await.map(|_| ())
    }

    async fn delete(&self, name: &str, kind: Option<ReferenceKind>) -> Result<(), CatalogError> {
        let who = caller();
        let catalog = &self.catalog;
        let deleted = catalog.delete_reference(&who, &self.lake, "db", name, kind, None);
        deleted.await.map(|_| ())
    }

    async fn snapshots_at(&self, database: &str, name: &str) -> Result<Vec<i64>, CatalogError> {
        let at = table(&[database], name);
        let pointer = self
            .catalog
            .pointer(&self.lake, &at, PointerKind::Table)
            .await?;
        let document = self.catalog.document(&pointer).await?;
        let metadata = document.table().unwrap();
        Ok(metadata.snapshots().map(|one| one.snapshot_id()).collect())
    }
}

async fn begin(store: &Arc<dyn Store>, folder: &Path) -> Server {
    let server = Server::over(store, folder);
    server.begin().await;
    server.create_at("db", "t").await.unwrap();
    server.append_at("db", "t", 1, None).await.unwrap();
    server
}

async fn a_branch_is_written_and_main_shows_nothing_of_it(store: Arc<dyn Store>, folder: &Path) {
    let server = begin(&store, folder).await;
    server.make(BRANCH, "x", "main").await.unwrap();
    assert_eq!(server.snapshots_at("db$branch_x", "t").await.unwrap(), [1]);
    server
        .append_at("db$branch_x", "t", 2, Some(1))
        .await
        .unwrap();
    server.create_at("db$branch_x", "u").await.unwrap();
    server.append_at("db", "t", 3, Some(1)).await.unwrap();
    assert_eq!(
        server.snapshots_at("db$branch_x", "t").await.unwrap(),
        [1, 2]
    );
    assert_eq!(server.snapshots_at("db", "t").await.unwrap(), [1, 3]);
    assert_eq!(server.tables_at("db$branch_x").await.unwrap(), ["t", "u"]);
    assert_eq!(server.tables_at("db$branch_main").await.unwrap(), ["t"]);
    let kind = PointerKind::Table;
    let (from, to) = (table(&["db$branch_x"], "t"), table(&["db$branch_x"], "v"));
    let who = caller();
    let renamed = server
        .catalog
        .rename_pointer(&who, &server.lake, kind, &from, &to);
    renamed.await.unwrap();
    server.drop_at(&["db$branch_x"], "u").await.unwrap();
    assert_eq!(server.tables_at("db$branch_x").await.unwrap(), ["v"]);
    assert_eq!(server.tables_at("db").await.unwrap(), ["t"]);
    server.healthy().await;
}

async fn a_merge_brings_all_tables_at_once(store: Arc<dyn Store>, folder: &Path) {
    let server = begin(&store, folder).await;
    server.make(BRANCH, "x", "main").await.unwrap();
    server
        .append_at("db$branch_x", "t", 2, Some(1))
        .await
        .unwrap();
    server.create_at("db$branch_x", "u").await.unwrap();
    let before = server.tables_at("db").await.unwrap();
    let mut merge = server.merge_of(source(BRANCH, "x"), "main");
    merge.dry_run = true;
    let planned = server.merge(&merge).await.unwrap().value;
    assert_eq!(server.tables_at("db").await.unwrap(), before);
    merge.dry_run = false;
    let merged = server.merge(&merge).await.unwrap().value;
    assert!(merged.fast_forward);
    assert_eq!(merged.tables, planned.tables);
    assert!(
        merged
            .tables
            .iter()
            .all(|one| one.outcome == Outcome::Taken)
    );
    assert_eq!(server.snapshots_at("db", "t").await.unwrap(), [1, 2]);
    assert_eq!(server.tables_at("db").await.unwrap(), ["t", "u"]);
    let again = server.merge(&merge).await.unwrap();
    assert_eq!(again.value.tables, []);
    assert_eq!(again.revision, merged.revision);
    // Both go on by themselves; a change on both sides needs a mode.
    server
        .append_at("db$branch_x", "t", 3, Some(2))
        .await
        .unwrap();
    server.append_at("db", "t", 4, Some(2)).await.unwrap();
    let refused = server.merge(&merge).await;
    assert_eq!(reason(&refused), Some(Reason::Conflict));
    assert_eq!(server.snapshots_at("db", "t").await.unwrap(), [1, 2, 4]);
    merge.modes.default = Mode::Force;
    server.merge(&merge).await.unwrap();
    assert_eq!(server.snapshots_at("db", "t").await.unwrap(), [1, 2, 3]);
    server.append_at("db", "t", 5, Some(3)).await.unwrap();
    assert_eq!(
        server.snapshots_at("db$branch_x", "t").await.unwrap(),
        [1, 2, 3]
    );
    server.healthy().await;
}

async fn a_merge_of_many_tables_takes_the_statements_of_one(store: Arc<dyn Store>, folder: &Path) {
    let server = begin(&store, folder).await;
    let mut counts = Vec::new();
    for (branch, tables) in [("one", 1), ("many", 12)] {
        server.make(BRANCH, branch, "main").await.unwrap();
        let at = format!("db$branch_{branch}");
        for table in 0..tables {
            let name = format!("{branch}_{table}");
            server.create_at(&at, &name).await.unwrap();
        }
        let before = store.statements();
        let merge = server.merge_of(source(BRANCH, branch), "main");
        let merged = server.merge(&merge).await.unwrap();
        assert_eq!(merged.value.tables.len(), tables);
        counts.push(store.statements() - before);
    }
    // An embedded engine has a statement for each row.
    if !store.is_serial() {
        // The second merge also reads the first one.
        assert!(counts[1] <= counts[0] + 3, "{counts:?}");
    }
}

async fn a_tag_shows_what_it_froze(store: Arc<dyn Store>, folder: &Path) {
    let server = begin(&store, folder).await;
    let revision = server.make(TAG, "v1.0", "main").await.unwrap();
    server.append_at("db", "t", 2, Some(1)).await.unwrap();
    server.create_at("db", "u").await.unwrap();
    server.drop_table("t", false).await.unwrap();
    for at in ["db$tag_v1.0".to_owned(), format!("db$tag_rev-{revision}")] {
        assert_eq!(server.tables_at(&at).await.unwrap(), ["t"], "{at}");
        assert_eq!(server.snapshots_at(&at, "t").await.unwrap(), [1], "{at}");
    }
    assert_eq!(server.tables_at("db").await.unwrap(), ["u"]);
    server.healthy().await;
}

async fn what_never_changes_is_not_written(store: Arc<dyn Store>, folder: &Path) {
    let server = begin(&store, folder).await;
    let revision = server.make(TAG, "v1", "main").await.unwrap();
    let read_only = Some(Reason::ReadOnly(Subject::Tag));
    for at in ["db$tag_v1".to_owned(), format!("db$tag_rev-{revision}")] {
        let at = at.as_str();
        assert_eq!(reason(&server.create_at(at, "u").await), read_only);
        assert_eq!(
            reason(&server.append_at(at, "t", 2, Some(1)).await),
            read_only
        );
        assert_eq!(reason(&server.drop_at(&[at], "t").await), read_only);
        assert_eq!(reason(&server.namespace(&[at, "in"]).await), read_only);
    }
    let target = server
        .merge(&server.merge_of(source(BRANCH, "main"), "v1"))
        .await;
    assert_eq!(reason(&target), Some(Reason::Conflict));
    server.healthy().await;
}

async fn a_missing_reference_is_not_main(store: Arc<dyn Store>, folder: &Path) {
    let server = begin(&store, folder).await;
    server.make(TAG, "v1", "main").await.unwrap();
    for at in ["db$branch_x", "db$tag_x", "db$branch_v1", "db$tag_rev-7b-1"] {
        let absent = Some(Reason::NotFound(Subject::Table));
        assert_eq!(reason(&server.snapshots_at(at, "t").await), absent, "{at}");
        let absent = Some(Reason::NotFound(Subject::Namespace));
        assert_eq!(reason(&server.tables_at(at).await), absent, "{at}");
        assert_eq!(reason(&server.create_at(at, "u").await), absent, "{at}");
    }
    for at in ["db$branch_", "db$tag_rev-zz", "db$branch_x$tag_y"] {
        let invalid = Some(Reason::InvalidInput);
        assert_eq!(reason(&server.tables_at(at).await), invalid, "{at}");
    }
    let on_database = server.namespace(&["db$branch_new"]).await;
    assert_eq!(reason(&on_database), Some(Reason::InvalidInput));
}

async fn two_writers_of_one_branch_admit_one(store: Arc<dyn Store>, folder: &Path) {
    let a = begin(&store, folder).await;
    let b = Server::over(&store, folder);
    a.make(BRANCH, "x", "main").await.unwrap();
    let (one, other) = tokio::join!(
        a.append_at("db$branch_x", "t", 2, Some(1)),
        b.append_at("db$branch_x", "t", 3, Some(1)),
    );
    let failed = [&one, &other].into_iter().filter(|end| end.is_err());
    assert_eq!(failed.count(), 1, "{one:?} {other:?}");
    a.healthy().await;
}

async fn nested_namespaces_are_made_and_dropped_on_a_branch(store: Arc<dyn Store>, folder: &Path) {
    let server = begin(&store, folder).await;
    server.namespace(&["db", "in"]).await.unwrap();
    server.create_in(&["db", "in"], "n").await.unwrap();
    server.make(BRANCH, "x", "main").await.unwrap();
    let inside = ["db$branch_x", "in"];
    let not_empty = server.drop_namespace(&inside).await;
    assert_eq!(
        reason(&not_empty),
        Some(Reason::NotEmpty(Subject::Namespace))
    );
    server.drop_at(&inside, "n").await.unwrap();
    server.drop_namespace(&inside).await.unwrap();
    server.namespace(&["db$branch_x", "new"]).await.unwrap();
    server
        .create_in(&["db$branch_x", "new"], "m")
        .await
        .unwrap();
    let merged = server
        .merge(&server.merge_of(source(BRANCH, "x"), "main"))
        .await;
    let tables = merged.unwrap().value.tables.into_iter();
    let taken: Vec<String> = tables.map(|one| one.table).collect();
    assert_eq!(taken, ["in", "new", "in.n", "new.m"]);
    assert_eq!(server.tables_at("db").await.unwrap(), ["t"]);
    let absent = server.drop_namespace(&["db", "in"]).await;
    assert_eq!(reason(&absent), Some(Reason::NotFound(Subject::Namespace)));
    server.healthy().await;
}

async fn expected_revisions_are_checked(store: Arc<dyn Store>, folder: &Path) {
    let server = begin(&store, folder).await;
    let first = server.make(BRANCH, "x", "main").await.unwrap();
    server
        .append_at("db$branch_x", "t", 2, Some(1))
        .await
        .unwrap();
    let reviewed = server
        .catalog
        .reference(&server.lake, "db", "x")
        .await
        .unwrap()
        .revision;
    assert_ne!(first, reviewed);
    server
        .append_at("db$branch_x", "t", 3, Some(2))
        .await
        .unwrap();
    let target = server
        .catalog
        .reference(&server.lake, "db", "main")
        .await
        .unwrap();
    let mut merge = server.merge_of(source(BRANCH, "x"), "main");
    merge.source.revision = Some(reviewed);
    merge.expected = Some("0-1".to_owned());
    let stale = server.merge(&merge).await;
    assert_eq!(reason(&stale), Some(Reason::Conflict));
    assert!(stale.unwrap_err().to_string().contains(&target.revision));
    merge.expected = Some(target.revision);
    server.merge(&merge).await.unwrap();
    // Exactly what was reviewed, though the branch has moved.
    assert_eq!(server.snapshots_at("db", "t").await.unwrap(), [1, 2]);
    let deleted = server.delete("x", Some(TAG)).await;
    assert_eq!(reason(&deleted), Some(Reason::Conflict));
    let main = server.delete("main", None).await;
    assert_eq!(reason(&main), Some(Reason::Conflict));
    server.healthy().await;
}

async fn what_was_moved_to_another_database_is_not_merged_into_two_places(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let server = begin(&store, folder).await;
    server.namespace(&["other"]).await.unwrap();
    let (here, there) = (table(&["db"], "t"), table(&["other"], "t"));
    let (who, kind) = (caller(), PointerKind::Table);
    let catalog = &server.catalog;
    let before = catalog.reference(&server.lake, "db", "main").await.unwrap();
    let moved = catalog.rename_pointer(&who, &server.lake, kind, &here, &there);
    moved.await.unwrap();
    let mut from = source(BRANCH, "main");
    from.revision = Some(before.revision);
    let new = NewReference {
        name: reference(BRANCH, "x"),
        source: from,
        expected: None,
    };
    let made = catalog.create_reference(&who, &server.lake, "db", &new);
    made.await.unwrap();
    let changed = server.append_at("db$branch_x", "t", 2, Some(1)).await;
    changed.unwrap();
    let mut merge = server.merge_of(source(BRANCH, "x"), "main");
    for mode in [Mode::Normal, Mode::Force] {
        merge.modes.default = mode;
        let refused = server.merge(&merge).await;
        assert_eq!(reason(&refused), Some(Reason::Conflict), "{mode:?}");
    }
    assert_eq!(server.snapshots_at("other", "t").await.unwrap(), [1]);
    let back = catalog.rename_pointer(&who, &server.lake, kind, &there, &here);
    back.await.unwrap();
    server.merge(&merge).await.unwrap();
    assert_eq!(server.snapshots_at("db", "t").await.unwrap(), [1, 2]);
    // What branches or tags show stays where they are.
    let moved = catalog.rename_pointer(&who, &server.lake, kind, &here, &there);
    assert_eq!(reason(&moved.await), Some(Reason::Conflict));
    server.healthy().await;
}

/// A merge of a merge: what lies between is deleted, and what both ends have in common stays.
async fn a_deleted_branch_between_two_others_takes_no_common_ancestor_along(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let server = forgetful(&store, folder);
    server.begin().await;
    server.create_at("db", "t").await.unwrap();
    server.append_at("db", "t", 1, None).await.unwrap();
    server.make(BRANCH, "s", "main").await.unwrap();
    server.make(BRANCH, "x", "main").await.unwrap();
    server
        .append_at("db$branch_s", "t", 2, Some(1))
        .await
        .unwrap();
    for (from, into) in [("s", "x"), ("x", "main")] {
        let merge = server.merge_of(source(BRANCH, from), into);
        server.merge(&merge).await.unwrap();
    }
    server.delete("x", None).await.unwrap();
    server
        .append_at("db$branch_s", "t", 3, Some(2))
        .await
        .unwrap();
    server.create_at("db", "after").await.unwrap();
    for _ in 0..3 {
        server.forget().await;
    }
    let merge = server.merge_of(source(BRANCH, "s"), "main");
    let merged = server.merge(&merge).await.unwrap().value;
    let taken: Vec<_> = merged
        .tables
        .iter()
        .map(|one| (one.table.as_str(), one.outcome))
        .collect();
    assert_eq!(taken, [("t", Outcome::Taken)]);
    assert_eq!(server.snapshots_at("db", "t").await.unwrap(), [1, 2, 3]);
    server.forget().await;
    server.create_at("db", "at_last").await.unwrap();
    server.forget().await;
    server.forget().await;
    let left = server.entries_on_branches().await;
    assert!(left > 0, "s stands");
    server.delete("s", None).await.unwrap();
    server.create_at("db", "end").await.unwrap();
    for _ in 0..3 {
        server.forget().await;
    }
    assert_eq!(server.entries_on_branches().await, 0);
    server.healthy().await;
}

impl Server {
    /// Entries that stand on any branch but `main`, in any database there is or was.
    async fn entries_on_branches(&self) -> usize {
        let store = self.catalog.partitions().store();
        let mut found = 0;
        for row in store.feed_partitions(None).await.unwrap() {
            let page = store.current_page(row.id, None, 1000).await.unwrap();
            let of_branches = page.iter().filter(|(key, _)| key.branch != BranchId::MAIN);
            found += of_branches.count();
        }
        found
    }

    /// Everything that isn't needed is let go of, by the job.
    async fn forget(&self) {
        self.catalog.ensure_jobs().await.unwrap();
        let is_done = |report: Option<JobReport>| report.is_some_and(|one| one.kind == "prune");
        while !is_done(self.catalog.run_due_task("worker").await.unwrap()) {}
    }
}

fn forgetful(store: &Arc<dyn Store>, folder: &Path) -> Server {
    let limits = Limits {
        history_retention: Duration::ZERO,
        job_interval: Duration::ZERO,
        ..Limits::default()
    };
    Server::with(store, folder, limits)
}

async fn nothing_is_left_of_a_deleted_branch_that_nothing_needs(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let server = forgetful(&store, folder);
    server.begin().await;
    server.create_at("db", "t").await.unwrap();
    for name in ["x", "y"] {
        server.make(BRANCH, name, "main").await.unwrap();
        server
            .create_at(&format!("db$branch_{name}"), name)
            .await
            .unwrap();
        let merge = server.merge_of(source(BRANCH, name), "main");
        server.merge(&merge).await.unwrap();
        // Something of its own, behind what was merged.
        server
            .create_at(&format!("db$branch_{name}"), "later")
            .await
            .unwrap();
    }
    server.make(TAG, "of_y", "y").await.unwrap();
    server.delete("x", None).await.unwrap();
    server.delete("y", None).await.unwrap();
    let before = server.entries_on_branches().await;
    server.create_at("db", "after").await.unwrap();
    server.forget().await;
    let after = server.entries_on_branches().await;
    assert!(0 < after && after < before, "{before} {after}");
    // A tag keeps what it shows.
    let shown = server.tables_at("db$tag_of_y").await.unwrap();
    assert_eq!(shown, ["later", "t", "x", "y"]);
    server.delete("of_y", None).await.unwrap();
    server.create_at("db", "at_last").await.unwrap();
    server.forget().await;
    assert_eq!(server.entries_on_branches().await, 0);
    server.healthy().await;
}

async fn a_dropped_catalog_takes_its_branches_with_it(store: Arc<dyn Store>, folder: &Path) {
    let server = forgetful(&store, folder);
    server.begin().await;
    server.create_at("db", "t").await.unwrap();
    server.make(BRANCH, "x", "main").await.unwrap();
    server.create_at("db$branch_x", "u").await.unwrap();
    let merge = server.merge_of(source(BRANCH, "x"), "main");
    server.merge(&merge).await.unwrap();
    server.create_at("db$branch_x", "v").await.unwrap();
    let who = caller();
    let dropped = server.catalog.drop_catalog(&who, &server.lake, true);
    dropped.await.unwrap();
    assert!(server.entries_on_branches().await > 0);
    server.forget().await;
    assert_eq!(server.entries_on_branches().await, 0);
    server.healthy().await;
}
