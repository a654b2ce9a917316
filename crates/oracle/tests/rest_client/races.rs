//! Commits that others are faster than.

use std::collections::HashMap;

use iceberg::spec::NullOrder;
use iceberg::table::Table;
use iceberg::transaction::{ApplyTransactionAction, Transaction};
use iceberg::{Catalog, ErrorKind, NamespaceIdent, Result};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::commits::{commit, data_file, data_files};
use crate::server::{Server, creation, named, refused};

/// A table whose commits the client tries so often, without waiting long in between.
async fn table(server: &Server, namespace: &NamespaceIdent, retries: u32) -> Table {
    let mut new = creation("t");
    let properties = [
        ("commit.retry.num-retries", retries.to_string()),
        ("commit.retry.min-wait-ms", "1".to_owned()),
        ("commit.retry.max-wait-ms", "20".to_owned()),
    ];
    new.properties = HashMap::from(properties.map(|(key, value)| (key.to_owned(), value)));
    server.client.create_table(namespace, new).await.unwrap()
}

async fn sort_by_text(server: &Server, table: &Table) -> Result<Table> {
    commit!(&server.client, table, transaction => transaction
        .replace_sort_order()
        .asc("text", NullOrder::First))
}

/// Somebody else sorts by `id`.
fn sorted_by_id(direction: &str) -> Value {
    let field = json!({
        "transform": "identity",
        "source-id": 1,
        "direction": direction,
        "null-order": "nulls-first",
    });
    json!([
        {"action": "add-sort-order", "sort-order": {"order-id": 9, "fields": [field]}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ])
}

#[tokio::test]
async fn a_lost_race_is_a_conflict_that_may_be_tried_again() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let table = table(&server, &db, 0).await;
    server.let_win(table.identifier(), sorted_by_id("asc"));
    let lost = sort_by_text(&server, &table).await;
    let error = refused(lost, ErrorKind::CatalogCommitConflicts);
    assert!(error.retryable());
    let stands = server.client.load_table(table.identifier()).await.unwrap();
    let order = stands.metadata().default_sort_order();
    assert_eq!(order.fields[0].source_id, 1);
    assert_eq!(stands.metadata().metadata_log().len(), 1);
    server.assert_held(&stands).await;
    server.audited().await;
}

#[tokio::test]
async fn a_lost_race_is_run_again_on_what_the_winner_left() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let table = table(&server, &db, 4).await;
    server.let_win(table.identifier(), sorted_by_id("asc"));
    server.let_win(table.identifier(), sorted_by_id("desc"));
    let won = sort_by_text(&server, &table).await.unwrap();
    let order = won.metadata().default_sort_order();
    assert_eq!(order.fields[0].source_id, 2);
    // No order at all, the two of the others, and this one.
    assert_eq!(won.metadata().sort_orders_iter().len(), 4);
    assert_eq!(won.metadata().metadata_log().len(), 3);
    server.assert_held(&won).await;
    server.audited().await;
}

#[tokio::test]
async fn updates_without_requirements_are_applied_to_what_others_left() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let table = table(&server, &db, 0).await;
    server.let_win(table.identifier(), sorted_by_id("asc"));
    let rival = json!([{"action": "set-properties", "updates": {"theirs": "1", "both": "theirs"}}]);
    server.let_win(table.identifier(), rival);
    let change = async |table: &Table| {
        commit!(&server.client, table, transaction => transaction
            .update_table_properties()
            .set("ours".to_owned(), "1".to_owned())
            .set("both".to_owned(), "ours".to_owned()))
    };
    let first = change(&table).await.unwrap();
    assert_eq!(first.metadata().default_sort_order().fields.len(), 1);
    server.assert_held(&first).await;
    let second = change(&table).await.unwrap();
    let properties = second.metadata().properties();
    assert_eq!(properties["theirs"], "1");
    assert_eq!(properties["both"], "ours");
    server.assert_held(&second).await;
    server.audited().await;
}

#[tokio::test]
async fn appends_of_many_clients_all_stand() {
    const CLIENTS: usize = 6;
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let table = table(&server, &db, 1000).await;
    let mut appends = JoinSet::new();
    for number in 0..CLIENTS {
        let client = server.connect("lake").await;
        let table = table.clone();
        appends.spawn(async move {
            let file = data_file(&table, &number.to_string(), 1);
            commit!(&client, &table, transaction => transaction.fast_append().add_data_files([file]))
        });
    }
    for appended in appends.join_all().await {
        appended.unwrap();
    }
    let loaded = server.client.load_table(table.identifier()).await.unwrap();
    assert_eq!(loaded.metadata().snapshots().len(), CLIENTS);
    assert_eq!(loaded.metadata().history().len(), CLIENTS);
    assert_eq!(data_files(&loaded).await.len(), CLIENTS);
    server.assert_held(&loaded).await;
    server.audited().await;
}

#[tokio::test]
async fn a_commit_to_a_table_that_was_dropped_finds_none() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let table = table(&server, &db, 0).await;
    server.client.drop_table(&named(&db, "t")).await.unwrap();
    let late = sort_by_text(&server, &table).await;
    refused(late, ErrorKind::TableNotFound);
    server.audited().await;
}

#[tokio::test]
async fn an_append_never_reaches_a_table_that_took_the_name_meanwhile() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let old = table(&server, &db, 0).await;
    server.let_replace(old.identifier());
    let lost = commit!(&server.client, &old, transaction => transaction
        .fast_append()
        .add_data_files([data_file(&old, "a", 1)]));
    refused(lost, ErrorKind::CatalogCommitConflicts);
    let new = server.client.load_table(old.identifier()).await.unwrap();
    assert_ne!(new.metadata().uuid(), old.metadata().uuid());
    assert!(new.metadata().current_snapshot().is_none());
    server.assert_held(&new).await;
    server.audited().await;
}
