//! Two servers over one store: whoever comes second meets the first, whatever the order.
//!
//! Each race stops one server between the reading of names and the lock, lets the other one
//! finish, and goes on.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anabranch_catalog::{Page, PointerKind, TableChange};
use anabranch_partition::{Reason, Subject};
use anabranch_store::Store;
use anabranch_store::fault::When;
use futures::future::join_all;
use serde_json::json;

use support::{
    Server, append, caller, namespace, reason, request, requirement, set_property, table,
};

on_every_engine![
    a_table_is_not_created_in_a_namespace_dropped_meanwhile,
    a_table_is_not_created_in_a_nested_namespace_dropped_meanwhile,
    a_table_is_not_created_below_a_catalog_dropped_meanwhile,
    a_namespace_is_not_dropped_over_a_table_created_meanwhile,
    a_namespace_is_not_created_in_a_catalog_renamed_meanwhile,
    a_table_is_not_renamed_into_a_namespace_dropped_meanwhile,
    one_of_two_creates_of_a_name_wins,
    one_of_two_drops_wins,
    one_of_two_renames_to_a_name_wins,
    two_servers_expecting_one_version_admit_one_writer,
    commits_without_requirements_are_all_applied,
    a_requirement_only_change_takes_part_in_the_check,
    multi_table_commits_in_opposite_order_all_end,
    property_updates_of_one_namespace_lose_nothing,
    a_commit_chain_survives_a_refusal_in_its_middle,
    a_chain_that_another_server_overtook_is_prepared_again,
    a_catalog_dropped_meanwhile_is_not_listed_as_empty,
    a_commit_tells_its_version_although_its_table_was_renamed_there_and_back,
    any_number_of_servers_may_start_at_once,
];

fn pair(store: &Arc<dyn Store>, folder: &Path) -> (Server, Server) {
    (Server::over(store, folder), Server::over(store, folder))
}

async fn a_table_is_not_created_in_a_namespace_dropped_meanwhile(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let (a, b) = pair(&store, folder);
    a.begin().await;
    let hold = a.faults.pause("begin", When::Before, 1);
    let create = a.create("t");
    let drop = async {
        hold.arrived().await;
        b.drop_namespace(&["db"]).await.unwrap();
        hold.resume();
    };
    let (created, ()) = tokio::join!(create, drop);
    assert_eq!(reason(&created), Some(Reason::NotFound(Subject::Namespace)));
    assert_eq!(a.metadata_files().len(), 0, "its file is gone");
    a.healthy().await;
}

async fn a_table_is_not_created_in_a_nested_namespace_dropped_meanwhile(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let (a, b) = pair(&store, folder);
    a.begin().await;
    a.namespace(&["db", "in"]).await.unwrap();
    let hold = a.faults.pause("begin", When::Before, 1);
    let create = a.create_in(&["db", "in"], "t");
    let drop = async {
        hold.arrived().await;
        b.drop_namespace(&["db", "in"]).await.unwrap();
        hold.resume();
    };
    let (created, ()) = tokio::join!(create, drop);
    assert_eq!(reason(&created), Some(Reason::NotFound(Subject::Namespace)));
    a.healthy().await;
}

async fn a_table_is_not_created_below_a_catalog_dropped_meanwhile(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let (a, b) = pair(&store, folder);
    a.begin().await;
    let hold = a.faults.pause("begin", When::Before, 1);
    let create = a.create("t");
    let drop = async {
        hold.arrived().await;
        b.catalog
            .drop_catalog(&caller(), &b.lake, true)
            .await
            .unwrap();
        hold.resume();
    };
    let (created, ()) = tokio::join!(create, drop);
    assert!(
        matches!(reason(&created), Some(Reason::NotFound(_))),
        "{created:?}"
    );
    a.healthy().await;
}

async fn a_namespace_is_not_dropped_over_a_table_created_meanwhile(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let (a, b) = pair(&store, folder);
    a.begin().await;
    let hold = a.faults.pause("begin", When::Before, 1);
    let drop = a.drop_namespace(&["db"]);
    let create = async {
        hold.arrived().await;
        b.create("t").await.unwrap();
        hold.resume();
    };
    let (dropped, ()) = tokio::join!(drop, create);
    assert_eq!(reason(&dropped), Some(Reason::NotEmpty(Subject::Namespace)));
    a.healthy().await;
}

async fn a_namespace_is_not_created_in_a_catalog_renamed_meanwhile(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let (a, b) = pair(&store, folder);
    a.begin().await;
    let hold = a.faults.pause("begin", When::Before, 1);
    let create = a.namespace(&["new"]);
    let rename = async {
        hold.arrived().await;
        b.catalog
            .rename_catalog(&caller(), &b.lake, "pond")
            .await
            .unwrap();
        hold.resume();
    };
    let (created, ()) = tokio::join!(create, rename);
    assert_eq!(reason(&created), Some(Reason::NotFound(Subject::Catalog)));
    a.healthy().await;
}

async fn a_table_is_not_renamed_into_a_namespace_dropped_meanwhile(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let (a, b) = pair(&store, folder);
    a.begin().await;
    a.namespace(&["other"]).await.unwrap();
    a.create("t").await.unwrap();
    let hold = a.faults.pause("begin", When::Before, 1);
    let (from, to) = (table(&["db"], "t"), table(&["other"], "t"));
    let (who, kind) = (caller(), PointerKind::Table);
    let rename = a.catalog.rename_pointer(&who, &a.lake, kind, &from, &to);
    let drop = async {
        hold.arrived().await;
        b.drop_namespace(&["other"]).await.unwrap();
        hold.resume();
    };
    let (renamed, ()) = tokio::join!(rename, drop);
    assert_eq!(reason(&renamed), Some(Reason::NotFound(Subject::Namespace)));
    assert!(a.catalog.pointer(&a.lake, &from, kind).await.is_ok());
    a.healthy().await;
}

async fn one_of_two_creates_of_a_name_wins(store: Arc<dyn Store>, folder: &Path) {
    let (a, b) = pair(&store, folder);
    a.begin().await;
    let hold = a.faults.pause("begin", When::Before, 1);
    let first = a.create("t");
    let second = async {
        hold.arrived().await;
        let created = b.create("t").await;
        hold.resume();
        created
    };
    let (late, early) = tokio::join!(first, second);
    assert!(early.is_ok());
    assert_eq!(reason(&late), Some(Reason::AlreadyExists(Subject::Table)));
    assert_eq!(a.metadata_files().len(), 1, "the loser's file is gone");
    a.healthy().await;
}

async fn one_of_two_drops_wins(store: Arc<dyn Store>, folder: &Path) {
    let (a, b) = pair(&store, folder);
    a.begin().await;
    a.create("t").await.unwrap();
    let hold = a.faults.pause("begin", When::Before, 1);
    let second = async {
        hold.arrived().await;
        let dropped = b.drop_table("t", false).await;
        hold.resume();
        dropped
    };
    let (late, early) = tokio::join!(a.drop_table("t", false), second);
    assert!(early.is_ok());
    assert_eq!(reason(&late), Some(Reason::NotFound(Subject::Table)));
    a.healthy().await;
}

async fn one_of_two_renames_to_a_name_wins(store: Arc<dyn Store>, folder: &Path) {
    let (a, b) = pair(&store, folder);
    a.begin().await;
    a.create("t").await.unwrap();
    a.create("u").await.unwrap();
    let hold = a.faults.pause("begin", When::Before, 1);
    let second = async {
        hold.arrived().await;
        let renamed = b.rename("u", "v").await;
        hold.resume();
        renamed
    };
    let (late, early) = tokio::join!(a.rename("t", "v"), second);
    assert!(early.is_ok());
    assert_eq!(reason(&late), Some(Reason::AlreadyExists(Subject::Table)));
    assert!(a.set("t", "still", "there").await.is_ok());
    a.healthy().await;
}

async fn two_servers_expecting_one_version_admit_one_writer(store: Arc<dyn Store>, folder: &Path) {
    let (a, b) = pair(&store, folder);
    a.begin().await;
    a.create("t").await.unwrap();
    let hold = a.faults.pause("begin", When::Before, 1);
    let (first, second) = (request("first"), request("second"));
    let late = a.commit(&first, append("t", 11, None, 1));
    let early = async {
        hold.arrived().await;
        let committed = b.commit(&second, append("t", 22, None, 1)).await;
        hold.resume();
        committed
    };
    let (late, early) = tokio::join!(late, early);
    assert!(early.is_ok());
    assert_eq!(reason(&late), Some(Reason::Conflict));
    assert_eq!(a.snapshots("t").await, [22]);
    assert_eq!(a.metadata_files().len(), 2, "the loser's file is gone");
    a.healthy().await;
}

async fn commits_without_requirements_are_all_applied(store: Arc<dyn Store>, folder: &Path) {
    let (a, b) = pair(&store, folder);
    a.begin().await;
    a.create("t").await.unwrap();
    let names: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    let commits = names.iter().enumerate().map(|(n, key)| {
        let server = if n.is_multiple_of(2) { &a } else { &b };
        server.set("t", key, "1")
    });
    for committed in join_all(commits).await {
        committed.unwrap();
    }
    assert_eq!(a.properties("t").await.len(), 40);
    a.healthy().await;
}

async fn a_requirement_only_change_takes_part_in_the_check(store: Arc<dyn Store>, folder: &Path) {
    let (a, b) = pair(&store, folder);
    a.begin().await;
    a.create("t").await.unwrap();
    a.create("u").await.unwrap();
    // Each writes one table and demands that the other one has no snapshot yet.
    let demand = |name: &str| TableChange {
        identifier: table(&["db"], name),
        requirements: vec![requirement(json!({
            "type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": null
        }))],
        updates: Vec::new(),
    };
    let hold = a.faults.pause("begin", When::Before, 1);
    let (first, second) = (request("first"), request("second"));
    let changes = vec![append("t", 1, None, 1), demand("u")];
    let late = a.catalog.commit_tables(&first, &a.lake, changes);
    let early = async {
        hold.arrived().await;
        let changes = vec![append("u", 2, None, 1), demand("t")];
        let committed = b.catalog.commit_tables(&second, &b.lake, changes).await;
        hold.resume();
        committed
    };
    let (late, early) = tokio::join!(late, early);
    assert!(early.is_ok());
    assert_eq!(reason(&late), Some(Reason::Conflict));
    assert_eq!(a.snapshots("t").await, [] as [i64; 0]);
    a.healthy().await;
}

async fn multi_table_commits_in_opposite_order_all_end(store: Arc<dyn Store>, folder: &Path) {
    let (a, b) = pair(&store, folder);
    a.begin().await;
    a.namespace(&["other"]).await.unwrap();
    a.create("t").await.unwrap();
    a.create_in(&["other"], "u").await.unwrap();
    let set = |n: usize| {
        let mut there = set_property("t", &n.to_string(), "1");
        let mut here = there.clone();
        here.identifier = table(&["other"], "u");
        if n.is_multiple_of(2) {
            std::mem::swap(&mut there, &mut here);
        }
        vec![there, here]
    };
    let who = caller();
    let commits = (0_usize..24).map(|n| {
        let server = if n.is_multiple_of(2) { &a } else { &b };
        server.catalog.commit_tables(&who, &server.lake, set(n))
    });
    for committed in join_all(commits).await {
        committed.unwrap();
    }
    assert_eq!(a.properties("t").await.len(), 24);
    a.healthy().await;
}

async fn property_updates_of_one_namespace_lose_nothing(store: Arc<dyn Store>, folder: &Path) {
    let (a, b) = pair(&store, folder);
    a.begin().await;
    a.namespace(&["db", "in"]).await.unwrap();
    for levels in [&["db"][..], &["db", "in"]] {
        let who = caller();
        let at = namespace(levels);
        let updates = (0_usize..30).map(|n| {
            let server = if n.is_multiple_of(2) { &a } else { &b };
            let set = BTreeMap::from([(n.to_string(), "1".to_owned())]);
            let catalog = &server.catalog;
            catalog.update_namespace_properties(&who, &server.lake, &at, Vec::new(), set)
        });
        for updated in join_all(updates).await {
            updated.unwrap();
        }
        let info = a.catalog.load_namespace(&a.lake, &at).await.unwrap();
        assert_eq!(info.properties.len(), 30);
    }
    a.healthy().await;
}

async fn a_commit_chain_survives_a_refusal_in_its_middle(store: Arc<dyn Store>, folder: &Path) {
    let (a, b) = pair(&store, folder);
    a.begin().await;
    a.create("t").await.unwrap();
    // While the first commit is held, three wait: they are prepared as one chain.
    let hold = a.faults.pause("begin", When::Before, 1);
    let first = a.set("t", "first", "1");
    let (x, y, z) = (request("x"), request("y"), request("z"));
    let others = async {
        hold.arrived().await;
        let waiting = join_all([
            a.commit(&x, append("t", 1, None, 1)),
            a.commit(&y, append("t", 2, None, 1)),
            a.commit(&z, append("t", 3, Some(1), 2)),
        ]);
        let (answers, ()) = tokio::join!(waiting, async { hold.resume() });
        answers
    };
    let (first, answers) = tokio::join!(first, others);
    assert!(first.is_ok());
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    assert_eq!(reason(&answers[1]), Some(Reason::Conflict));
    assert_eq!(b.snapshots("t").await, [1, 3]);
    a.healthy().await;
}

/// Both servers predict the same version numbers; only the contents tell them apart.
async fn a_chain_that_another_server_overtook_is_prepared_again(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let (a, b) = pair(&store, folder);
    a.begin().await;
    a.create("t").await.unwrap();
    let hold_first = a.faults.pause("begin", When::Before, 1);
    let hold_chain = a.faults.pause("begin", When::Before, 2);
    let first = a.set("t", "first", "1");
    let chain = async {
        hold_first.arrived().await;
        let waiting = join_all(["x", "y", "z"].map(|key| a.set("t", key, "1")));
        let overtake = async {
            hold_first.resume();
            hold_chain.arrived().await;
            b.set("t", "overtaken", "1").await.unwrap();
            hold_chain.resume();
        };
        let (answers, ()) = tokio::join!(waiting, overtake);
        answers
    };
    let (first, answers) = tokio::join!(first, chain);
    assert!(
        first.is_ok() && answers.iter().all(Result::is_ok),
        "{answers:?}"
    );
    let properties = a.properties("t").await;
    let keys: Vec<_> = properties.keys().map(String::as_str).collect();
    assert_eq!(keys, ["first", "overtaken", "x", "y", "z"]);
    a.healthy().await;
}

async fn any_number_of_servers_may_start_at_once(store: Arc<dyn Store>, folder: &Path) {
    let servers: Vec<_> = (0..8).map(|_| Server::over(&store, folder)).collect();
    let new = anabranch_catalog::NewCatalog {
        warehouse: servers[0].lake.clone(),
        location: servers[0].location(),
        properties: BTreeMap::new(),
    };
    let who = caller();
    let starts = servers.iter().map(|server| async {
        server.catalog.ensure_jobs().await.unwrap();
        server.catalog.ensure_catalog(&who, &new).await.unwrap()
    });
    let infos = join_all(starts).await;
    assert!(infos.iter().all(|info| info.id == infos[0].id));
    servers[0].healthy().await;
}

async fn a_catalog_dropped_meanwhile_is_not_listed_as_empty(store: Arc<dyn Store>, folder: &Path) {
    let (a, b) = pair(&store, folder);
    a.begin().await;
    let hold = a.faults.pause("resolve", When::After, 1);
    let page = Page::default();
    let list = a.catalog.list_namespaces(&a.lake, None, &page);
    let drop = async {
        hold.arrived().await;
        b.catalog
            .drop_catalog(&caller(), &b.lake, true)
            .await
            .unwrap();
        hold.resume();
    };
    let (listed, ()) = tokio::join!(list, drop);
    assert_eq!(reason(&listed), Some(Reason::NotFound(Subject::Catalog)));
}

async fn a_commit_tells_its_version_although_its_table_was_renamed_there_and_back(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let (a, b) = pair(&store, folder);
    a.begin().await;
    a.create("t").await.unwrap();
    let hold = a.faults.pause("begin", When::Before, 1);
    let set = a.set("t", "k", "1");
    let rename = async {
        hold.arrived().await;
        b.rename("t", "u").await.unwrap();
        b.rename("u", "t").await.unwrap();
        hold.resume();
    };
    let (committed, ()) = tokio::join!(set, rename);
    let told = committed.unwrap().pointer.version;
    let at = table(&["db"], "t");
    let stands = b.catalog.pointer(&b.lake, &at, PointerKind::Table).await;
    assert_eq!(told, stands.unwrap().version);
}
