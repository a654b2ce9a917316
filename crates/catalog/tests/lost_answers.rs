//! Requests that come again because their answer was lost.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;
use std::sync::Arc;

use anabranch_catalog::{Caller, NewCatalog, PointerKind, TableChange, Warehouse};
use anabranch_files::{Fault as FileFault, FaultCall, FileErrorKind};
use anabranch_partition::{Reason, RunError, Subject};
use anabranch_store::fault::{Fault, When};
use anabranch_store::{Store, StoreError};
use serde_json::json;

use support::{
    Server, append, caller, namespace, new_table, reason, request, requirement, table, update,
};

on_every_engine![
    a_resent_append_is_answered_with_success_and_applied_once,
    a_resent_append_is_recognised_although_others_came_in_between,
    a_resent_append_that_waits_beside_the_first_is_applied_once,
    a_resent_append_is_answered_with_its_own_table_whatever_stands_under_the_name,
    a_resent_append_that_cannot_be_looked_up_is_unknown,
    a_resent_multi_table_commit_is_recognised,
    a_resent_staged_create_is_recognised,
    another_request_with_the_same_snapshot_is_a_conflict,
    what_passes_its_requirements_is_applied_as_often_as_it_is_said,
    a_second_create_in_the_same_words_is_a_conflict,
    a_keyed_create_is_replayed,
    a_keyed_refusal_is_replayed,
    every_keyed_mutation_gives_its_first_answer_again,
    what_was_applied_is_not_refused_when_its_catalog_has_another_name,
    an_unknown_commit_keeps_its_files,
    a_commit_whose_file_cannot_be_stored_is_known_not_applied,
];

async fn begin(store: &Arc<dyn Store>, folder: &Path) -> Server {
    let server = Server::over(store, folder);
    server.begin().await;
    server.create("t").await.unwrap();
    server
}

async fn a_resent_append_is_answered_with_success_and_applied_once(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let server = begin(&store, folder).await;
    let said = request("append 1");
    for _ in 0..3 {
        server.commit(&said, append("t", 1, None, 1)).await.unwrap();
    }
    assert_eq!(server.snapshots("t").await, [1]);
    assert_eq!(server.metadata_files().len(), 2);
    server.healthy().await;
}

async fn a_resent_append_is_recognised_although_others_came_in_between(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let server = begin(&store, folder).await;
    let other = Server::over(&store, folder);
    let said = request("append 1");
    server.commit(&said, append("t", 1, None, 1)).await.unwrap();
    let between = append("t", 2, Some(1), 2);
    other.commit(&request("append 2"), between).await.unwrap();
    let again = other.commit(&said, append("t", 1, None, 1)).await.unwrap();
    let metadata = again.document.table().unwrap();
    assert_eq!(metadata.current_snapshot_id(), Some(2));
    assert_eq!(server.snapshots("t").await, [1, 2]);
    server.healthy().await;
}

async fn a_resent_append_that_waits_beside_the_first_is_applied_once(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let server = begin(&store, folder).await;
    let hold = server.faults.pause("begin", When::Before, 1);
    let blocker = server.set("t", "a", "1");
    let said = request("append 1");
    let both = async {
        hold.arrived().await;
        let commits = async {
            tokio::join!(
                server.commit(&said, append("t", 1, None, 1)),
                server.commit(&said, append("t", 1, None, 1)),
            )
        };
        let (answers, ()) = tokio::join!(commits, async { hold.resume() });
        answers
    };
    let (first, (one, two)) = tokio::join!(blocker, both);
    assert!(
        first.is_ok() && one.is_ok() && two.is_ok(),
        "{one:?} {two:?}"
    );
    assert_eq!(server.snapshots("t").await, [1]);
    server.healthy().await;
}

async fn a_resent_append_is_answered_with_its_own_table_whatever_stands_under_the_name(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let server = begin(&store, folder).await;
    let said = request("append 1");
    let uuid = server.create("u").await.unwrap();
    let uuid = uuid.document.table().unwrap().uuid();
    let assert_uuid = requirement(json!({"type": "assert-table-uuid", "uuid": uuid}));
    let mut change = append("u", 1, None, 1);
    change.requirements.push(assert_uuid);
    server.commit(&said, change.clone()).await.unwrap();
    server.rename("u", "v").await.unwrap();
    let again = server.commit(&said, change.clone()).await.unwrap();
    assert_eq!(again.document.table().unwrap().uuid(), uuid);
    server.create("u").await.unwrap();
    let again = server.commit(&said, change.clone()).await.unwrap();
    let answered = again.document.table().unwrap();
    assert_eq!(
        (answered.uuid(), answered.current_snapshot_id()),
        (uuid, Some(1))
    );
    let many = server
        .catalog
        .commit_tables(&said, &server.lake, vec![change.clone()]);
    assert!(many.await.is_ok());
    let never_applied = server.commit(&request("append 2"), change).await;
    assert_eq!(reason(&never_applied), Some(Reason::Conflict));
    server.healthy().await;
}

async fn a_resent_append_that_cannot_be_looked_up_is_unknown(store: Arc<dyn Store>, folder: &Path) {
    let server = begin(&store, folder).await;
    let said = request("append 1");
    server.commit(&said, append("t", 1, None, 1)).await.unwrap();
    let gone = Fault::Error(StoreError::Unavailable {
        detail: "gone".to_owned(),
    });
    server.faults.at("read", When::Before, 1, gone);
    let again = server.commit(&said, append("t", 1, None, 1)).await;
    assert_eq!(again.unwrap_err(), RunError::Unknown.into());
    server.commit(&said, append("t", 1, None, 1)).await.unwrap();
    server.healthy().await;
}

async fn a_resent_multi_table_commit_is_recognised(store: Arc<dyn Store>, folder: &Path) {
    let server = begin(&store, folder).await;
    server.create("u").await.unwrap();
    let said = request("append both");
    let changes = || vec![append("t", 1, None, 1), append("u", 2, None, 1)];
    for _ in 0..2 {
        let committed = server.catalog.commit_tables(&said, &server.lake, changes());
        committed.await.unwrap();
    }
    // Still recognised after one of the tables is gone.
    server.drop_table("u", false).await.unwrap();
    let again = server.catalog.commit_tables(&said, &server.lake, changes());
    again.await.unwrap();
    assert_eq!(server.snapshots("t").await, [1]);
    server.healthy().await;
}

fn staged(name: &str, uuid: &str, location: &str) -> TableChange {
    let schema = json!({
        "type": "struct", "schema-id": 0,
        "fields": [{"id": 1, "name": "x", "required": false, "type": "long"}]
    });
    let updates = [
        json!({"action": "assign-uuid", "uuid": uuid}),
        json!({"action": "upgrade-format-version", "format-version": 2}),
        json!({"action": "add-schema", "schema": schema, "last-column-id": 1}),
        json!({"action": "add-spec", "spec": {"spec-id": 0, "fields": []}}),
        json!({"action": "set-default-spec", "spec-id": -1}),
        json!({"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}}),
        json!({"action": "set-default-sort-order", "sort-order-id": -1}),
        json!({"action": "set-location", "location": location}),
        json!({"action": "set-properties", "updates": {}}),
        json!({"action": "set-current-schema", "schema-id": -1}),
    ];
    TableChange {
        identifier: table(&["db"], name),
        requirements: vec![requirement(json!({"type": "assert-create"}))],
        updates: updates.into_iter().map(update).collect(),
    }
}

async fn a_resent_staged_create_is_recognised(store: Arc<dyn Store>, folder: &Path) {
    let server = begin(&store, folder).await;
    let new = new_table(table(&["db"], "made"));
    let staging = server.catalog.stage_table(&server.lake, new).await.unwrap();
    let metadata = staging.value.0.table().unwrap();
    let uuid = metadata.uuid().to_string();
    let said = request("create made");
    for _ in 0..2 {
        let change = staged("made", &uuid, metadata.location());
        server.commit(&said, change).await.unwrap();
    }
    let other = staged("made", &uuid, metadata.location());
    let refused = server.commit(&request("other words"), other).await;
    assert_eq!(
        reason(&refused),
        Some(Reason::AlreadyExists(Subject::Table))
    );
    server.healthy().await;
}

async fn another_request_with_the_same_snapshot_is_a_conflict(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let server = begin(&store, folder).await;
    let first = server
        .commit(&request("one"), append("t", 1, None, 1))
        .await;
    first.unwrap();
    let second = server
        .commit(&request("two"), append("t", 1, None, 1))
        .await;
    assert_eq!(reason(&second), Some(Reason::Conflict));
    let somebody_else = Caller {
        principal: "somebody else".to_owned(),
        ..request("one")
    };
    let third = server.commit(&somebody_else, append("t", 1, None, 1)).await;
    assert_eq!(reason(&third), Some(Reason::Conflict));
}

async fn what_passes_its_requirements_is_applied_as_often_as_it_is_said(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let server = begin(&store, folder).await;
    server.set("t", "p", "1").await.unwrap();
    server.set("t", "p", "2").await.unwrap();
    server.set("t", "p", "1").await.unwrap();
    assert_eq!(server.properties("t").await["p"], "1");
}

async fn a_second_create_in_the_same_words_is_a_conflict(store: Arc<dyn Store>, folder: &Path) {
    let server = begin(&store, folder).await;
    let again = server.create("t").await;
    assert_eq!(reason(&again), Some(Reason::AlreadyExists(Subject::Table)));
}

async fn a_keyed_create_is_replayed(store: Arc<dyn Store>, folder: &Path) {
    let server = begin(&store, folder).await;
    let keyed = Caller {
        idempotency_key: Some("k".to_owned()),
        ..caller()
    };
    let mut uuids = Vec::new();
    for _ in 0..2 {
        let new = new_table(table(&["db"], "made"));
        let created = server.catalog.create_table(&keyed, &server.lake, new).await;
        uuids.push(created.unwrap().document.table().unwrap().uuid());
    }
    assert_eq!(uuids[0], uuids[1]);
    assert_eq!(server.metadata_files().len(), 2);
    let other = Caller {
        fingerprint: "other".to_owned(),
        ..keyed
    };
    let new = new_table(table(&["db"], "made2"));
    let refused = server.catalog.create_table(&other, &server.lake, new).await;
    assert_eq!(reason(&refused), Some(Reason::KeyReused));
    server.healthy().await;
}

async fn a_keyed_refusal_is_replayed(store: Arc<dyn Store>, folder: &Path) {
    let server = begin(&store, folder).await;
    let keyed = Caller {
        idempotency_key: Some("k".to_owned()),
        ..caller()
    };
    let new = || new_table(table(&["db"], "t"));
    let taken = Some(Reason::AlreadyExists(Subject::Table));
    let first = server
        .catalog
        .create_table(&keyed, &server.lake, new())
        .await;
    assert_eq!(reason(&first), taken);
    server.drop_table("t", false).await.unwrap();
    let again = server
        .catalog
        .create_table(&keyed, &server.lake, new())
        .await;
    assert_eq!(reason(&again), taken);
}

/// Accepted ones although what they name is gone since, refused ones although it is there now.
async fn every_keyed_mutation_gives_its_first_answer_again(store: Arc<dyn Store>, folder: &Path) {
    let server = begin(&store, folder).await;
    let catalog = &server.catalog;
    let keyed = |key: &str| Caller {
        idempotency_key: Some(key.to_owned()),
        ..request(key)
    };
    let (lake, nothing) = (&server.lake, std::collections::BTreeMap::new);
    let (db, gone) = (namespace(&["db"]), namespace(&["gone"]));
    let pond = Warehouse::parse("pond").unwrap();
    let absent = NewCatalog {
        warehouse: pond.clone(),
        location: server.location(),
        properties: nothing(),
    };

    // Refused for what isn't there yet.
    let early = keyed("early");
    let first = catalog
        .create_namespace(&early, &pond, &db, nothing())
        .await;
    assert_eq!(reason(&first), Some(Reason::NotFound(Subject::Catalog)));
    let early_table = keyed("early table");
    let in_gone = || new_table(table(&["gone"], "t"));
    let first = catalog.create_table(&early_table, lake, in_gone()).await;
    assert_eq!(reason(&first), Some(Reason::NotFound(Subject::Namespace)));

    for _ in 0..2 {
        let made = catalog.create_catalog(&keyed("c"), &absent).await.unwrap();
        assert_eq!(made.value.warehouse, pond);
        catalog
            .create_namespace(&keyed("n"), lake, &gone, nothing())
            .await
            .unwrap();
    }
    let again = catalog
        .create_namespace(&early, &pond, &db, nothing())
        .await;
    assert_eq!(reason(&again), Some(Reason::NotFound(Subject::Catalog)));
    let again = catalog.create_table(&early_table, lake, in_gone()).await;
    assert_eq!(reason(&again), Some(Reason::NotFound(Subject::Namespace)));

    let removal = vec!["absent".to_owned()];
    for _ in 0..2 {
        let key = keyed("p");
        let update =
            catalog.update_namespace_properties(&key, lake, &gone, removal.clone(), nothing());
        assert_eq!(update.await.unwrap().value.missing, removal);
    }
    for _ in 0..2 {
        catalog
            .drop_namespace(&keyed("d"), lake, &gone)
            .await
            .unwrap();
        let kind = PointerKind::Table;
        let (t, u) = (table(&["db"], "t"), table(&["db"], "u"));
        catalog
            .rename_pointer(&keyed("r"), lake, kind, &t, &u)
            .await
            .unwrap();
        catalog
            .drop_pointer(&keyed("x"), lake, &u, kind, false)
            .await
            .unwrap();
        catalog
            .rename_catalog(&keyed("cr"), &pond, "pool")
            .await
            .unwrap();
    }
    let pool = Warehouse::parse("pool").unwrap();
    for _ in 0..2 {
        catalog
            .drop_catalog(&keyed("cd"), &pool, false)
            .await
            .unwrap();
    }
    let key = keyed("p");
    let update = catalog.update_namespace_properties(&key, lake, &gone, removal, nothing());
    assert!(update.await.is_ok(), "its namespace is gone since");
    server.healthy().await;
}

async fn what_was_applied_is_not_refused_when_its_catalog_has_another_name(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let server = begin(&store, folder).await;
    let keyed = Caller {
        idempotency_key: Some("create u".to_owned()),
        ..request("create u")
    };
    let (catalog, lake) = (&server.catalog, &server.lake);
    let new = || new_table(table(&["db"], "u"));
    let made = catalog.create_table(&keyed, lake, new()).await.unwrap();
    let uuid = made.document.table().unwrap().uuid();
    let said = request("append 1");
    let mut change = append("u", 1, None, 1);
    let assert_uuid = json!({"type": "assert-table-uuid", "uuid": uuid});
    change.requirements.push(requirement(assert_uuid));
    server.commit(&said, change.clone()).await.unwrap();
    catalog
        .rename_catalog(&caller(), lake, "pond")
        .await
        .unwrap();
    let again = catalog.create_table(&keyed, lake, new()).await;
    assert_eq!(again.unwrap_err(), RunError::Unknown.into());
    let again = server.commit(&said, change.clone()).await;
    assert_eq!(again.unwrap_err(), RunError::Unknown.into());
    let never_applied = server.commit(&request("append 2"), change).await;
    assert_eq!(
        reason(&never_applied),
        Some(Reason::NotFound(Subject::Catalog))
    );
    server.healthy().await;
}

async fn an_unknown_commit_keeps_its_files(store: Arc<dyn Store>, folder: &Path) {
    let server = begin(&store, folder).await;
    server
        .faults
        .at("commit", When::After, 1, Fault::LostAnswer);
    for nth in 2..4000 {
        let detail = "injected".to_owned();
        let gone = Fault::Error(StoreError::Unavailable { detail });
        server.faults.at("begin", When::Before, nth, gone);
    }
    let before = server.metadata_files().len();
    let outcome = tokio::time::timeout(
        std::time::Duration::from_secs(60),
        server.set("t", "a", "1"),
    );
    let outcome = outcome.await.unwrap();
    assert_eq!(outcome.unwrap_err(), RunError::Unknown.into());
    assert_eq!(server.metadata_files().len(), before + 1);
    let other = Server::over(&store, folder);
    assert_eq!(other.properties("t").await["a"], "1");
    other.healthy().await;
}

async fn a_commit_whose_file_cannot_be_stored_is_known_not_applied(
    store: Arc<dyn Store>,
    folder: &Path,
) {
    let server = begin(&store, folder).await;
    let kind = FileErrorKind::Unavailable;
    for fault in [FileFault::FailBefore(kind), FileFault::FailAfter(kind)] {
        server.file_faults.on_next(FaultCall::PutNew, fault);
        let outcome = server.set("t", "a", "1").await;
        assert!(
            outcome.is_err() && reason(&outcome).is_none(),
            "{outcome:?}"
        );
    }
    assert_eq!(server.properties("t").await.len(), 0);
    server.set("t", "a", "2").await.unwrap();
    server.healthy().await;
}
