//! Names with everything that clients encode differently.

use std::collections::HashMap;
use std::slice::from_ref;

use iceberg::transaction::{ApplyTransactionAction, Transaction};
use iceberg::{Catalog, ErrorKind, NamespaceIdent};

use crate::commits::commit;
use crate::server::{Server, creation, named, refused, refused_as};

#[tokio::test]
async fn odd_names_are_one_name_in_paths_bodies_and_the_service() {
    let server = Server::start().await;
    let client = &server.client;
    for name in ["a b", "v1.0", "a$b", "🦆", "ä", "a&b=c;d", "..."] {
        let outer = server.namespace(&[name]).await;
        let inner = server.namespace(&[name, "inner"]).await;
        let listed = client.list_namespaces(Some(&outer)).await.unwrap();
        assert_eq!(listed, from_ref(&inner), "{name}");
        for namespace in [&outer, &inner] {
            let created = server.table(namespace, name).await;
            let here = named(namespace, name);
            assert!(client.table_exists(&here).await.unwrap(), "{name}");
            assert_eq!(
                client.list_tables(namespace).await.unwrap(),
                from_ref(&here)
            );
            server.assert_held(&created).await;
            let changed = commit!(client, &created, transaction => transaction
                .update_table_properties()
                .set("name".to_owned(), name.to_owned()))
            .unwrap();
            server.assert_held(&changed).await;
            let there = named(namespace, &format!("{name} {name}"));
            client.rename_table(&here, &there).await.unwrap();
            let renamed = client.load_table(&there).await.unwrap();
            server.assert_held(&renamed).await;
            client.drop_table(&there).await.unwrap();
        }
        client.drop_namespace(&inner).await.unwrap();
        client.drop_namespace(&outer).await.unwrap();
    }
    assert_eq!(client.list_namespaces(None).await.unwrap(), []);
    server.audited().await;
}

/// This client writes `+` into paths as it is. From the Java clients that is a space; from this one it is itself, else
/// a drop of `a+b` would reach `a b`.
#[tokio::test]
async fn a_plus_sign_in_a_path_of_this_client_is_itself() {
    let server = Server::start().await;
    let client = &server.client;
    let db = server.namespace(&["d+b"]).await;
    let (plus, space) = (named(&db, "a+b"), named(&db, "a b"));
    server.table(&db, "a+b").await;
    server.table(&db, "a b").await;
    let loaded = client.load_table(&plus).await.unwrap();
    assert_eq!(loaded.identifier(), &plus);
    commit!(client, &loaded, transaction => transaction
        .update_table_properties()
        .set("a".to_owned(), "1".to_owned()))
    .unwrap();
    client.drop_table(&plus).await.unwrap();
    assert_eq!(client.list_tables(&db).await.unwrap(), [space]);
    client.get_namespace(&db).await.unwrap();
    server.audited().await;
}

/// `%` is sent as it is too, and begins an encoded byte.
#[tokio::test]
async fn a_percent_sign_in_a_path_of_this_client_is_refused_or_decoded() {
    let server = Server::start().await;
    let client = &server.client;
    let db = server.namespace(&["db"]).await;
    server.table(&db, "100%").await;
    let loaded = client.load_table(&named(&db, "100%")).await;
    refused_as(loaded, 400, "BadRequestException");
    let encoded = named(&db, "a%20b");
    client.create_table(&db, creation("a%20b")).await.unwrap();
    refused(client.load_table(&encoded).await, ErrorKind::TableNotFound);
    // Renames name tables in their body alone.
    let plain = named(&db, "plain");
    client.rename_table(&encoded, &plain).await.unwrap();
    let plain = client.load_table(&plain).await.unwrap();
    server.assert_held(&plain).await;
    server.audited().await;
}

#[tokio::test]
async fn control_characters_are_no_part_of_a_name() {
    let server = Server::start().await;
    let client = &server.client;
    let db = server.namespace(&["db"]).await;
    let created = client.create_table(&db, creation("a\nb")).await;
    refused_as(created, 400, "BadRequestException");
    let separator = NamespaceIdent::new("a\u{1f}b".to_owned());
    let created = client.create_namespace(&separator, HashMap::new()).await;
    refused_as(created, 400, "BadRequestException");
    assert_eq!(client.list_tables(&db).await.unwrap(), []);
    server.audited().await;
}
