//! Metadata documents that say more than this client understands.

use std::slice::from_ref;

use anabranch_catalog::NewTable;
use iceberg::transaction::{ApplyTransactionAction, Transaction};
use iceberg::{Catalog, ErrorKind};
use serde_json::{Value, json};

use crate::commits::{commit, data_file};
use crate::server::{Server, here, named, refused};

#[tokio::test]
async fn metadata_that_this_client_cannot_read_is_refused_by_it_and_kept_here() {
    let server = Server::start().await;
    let client = &server.client;
    let db = server.namespace(&["db"]).await;
    let t = named(&db, "t");
    let schema = json!({"type": "struct", "schema-id": 0, "fields": [
        {"id": 1, "name": "id", "required": true, "type": "long"},
        {"id": 2, "name": "anything", "required": false, "type": "variant"},
    ]});
    let new = NewTable {
        identifier: here(&t),
        location: None,
        schema: serde_json::from_value(schema).unwrap(),
        partition_spec: None,
        write_order: None,
        properties: [("format-version".to_owned(), "3".to_owned())].into(),
    };
    let created = server.create_here(new).await;
    let text = refused(client.load_table(&t).await, ErrorKind::Unexpected).to_string();
    assert!(text.contains("Failed to parse response"), "{text}");

    // Everything that needs no document works.
    assert!(client.table_exists(&t).await.unwrap());
    assert_eq!(client.list_tables(&db).await.unwrap(), from_ref(&t));
    let u = named(&db, "u");
    client.rename_table(&t, &u).await.unwrap();
    client.drop_table(&u).await.unwrap();
    // The client can't read the answer to its registration either, but the table stands.
    let document = created.pointer.metadata_location.clone();
    let registered = client.register_table(&t, document).await;
    refused(registered, ErrorKind::Unexpected);
    let (pointer, held) = server.held(&t).await;
    assert_eq!(pointer.metadata_location, created.pointer.metadata_location);
    assert_eq!(held.bytes(), created.document.bytes());
    assert_eq!(
        server.held_document(&t).await["schemas"][0]["fields"][1]["type"],
        "variant"
    );
    server.audited().await;
}

#[tokio::test]
async fn what_this_client_passes_over_outlives_its_commits() {
    let server = Server::start().await;
    let client = &server.client;
    let db = server.namespace(&["db"]).await;
    let table = server.table(&db, "t").await;
    let t = named(&db, "t");
    let mut document = server.held_document(&t).await;
    let foreign = json!({"of": ["another", "writer"], "number": 1.50});
    document["x-foreign"] = foreign.clone();
    document["schemas"][0]["fields"][1]["x-note"] = json!("kept");
    client.drop_table(&t).await.unwrap();
    let location = format!(
        "{}/metadata/foreign.metadata.json",
        table.metadata().location()
    );
    let output = table.file_io().new_output(&location).unwrap();
    output.write(document.to_string().into()).await.unwrap();

    let registered = client.register_table(&t, location).await.unwrap();
    let appended = commit!(client, &registered, transaction => transaction
        .fast_append()
        .add_data_files([data_file(&registered, "a", 1)]))
    .unwrap();
    let changed = commit!(client, &appended, transaction => transaction
        .update_table_properties()
        .set("a".to_owned(), "1".to_owned()))
    .unwrap();
    assert_eq!(changed.metadata().properties()["a"], "1");
    let held = server.held_document(&t).await;
    assert_eq!(held["x-foreign"], foreign);
    assert_eq!(held["schemas"][0]["fields"][1]["x-note"], "kept");
    assert_eq!(held["properties"]["a"], "1");
    server.audited().await;
}

#[tokio::test]
async fn a_table_that_grew_beyond_this_client_takes_none_of_its_commits() {
    let server = Server::start().await;
    let client = &server.client;
    let db = server.namespace(&["db"]).await;
    let table = server.table(&db, "t").await;
    let t = named(&db, "t");
    let updates: Value = json!([
        {"action": "upgrade-format-version", "format-version": 3},
        {"action": "add-schema", "schema": {"type": "struct", "schema-id": 1, "fields": [
            {"id": 1, "name": "id", "required": true, "type": "long"},
            {"id": 2, "name": "text", "required": false, "type": "string"},
            {"id": 3, "name": "anything", "required": false, "type": "variant"},
        ]}},
        {"action": "set-current-schema", "schema-id": -1},
    ]);
    let grown = server.commit_here(&t, updates).await;
    // It holds the table as it was, and reads it again before it commits.
    let late = commit!(client, &table, transaction => transaction
        .update_table_properties()
        .set("a".to_owned(), "1".to_owned()));
    refused(late, ErrorKind::Unexpected);
    let (pointer, held) = server.held(&t).await;
    assert_eq!(pointer.version, grown.pointer.version);
    assert_eq!(held.bytes(), grown.document.bytes());
    server.audited().await;
}
