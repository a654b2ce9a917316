//! Namespaces.

use std::collections::HashMap;
use std::slice::from_ref;

use anabranch_catalog::{Namespace, Page};
use iceberg::{Catalog, ErrorKind, NamespaceIdent};

use crate::server::{Server, lake, named, refused, refused_as};

fn levels(names: &[&str]) -> NamespaceIdent {
    NamespaceIdent::from_strs(names).unwrap()
}

#[tokio::test]
async fn a_namespace_has_the_properties_that_it_was_created_with() {
    let server = Server::start().await;
    let db = levels(&["db"]);
    let properties = HashMap::from([("owner".to_owned(), "ann".to_owned())]);
    let created = server.client.create_namespace(&db, properties.clone());
    let created = created.await.unwrap();
    assert_eq!((created.name(), created.properties()), (&db, &properties));
    assert_eq!(server.client.get_namespace(&db).await.unwrap(), created);

    let name = Namespace::new(vec!["db".to_owned()]).unwrap();
    let held = server.service.load_namespace(&lake(), &name).await.unwrap();
    let held: HashMap<_, _> = held.properties.into_iter().collect();
    assert_eq!(held, properties);

    // This client has no way to change them.
    let changed = server.client.update_namespace(&db, HashMap::new()).await;
    refused(changed, ErrorKind::FeatureUnsupported);
    server.audited().await;
}

#[tokio::test]
async fn nested_namespaces_are_listed_one_level_at_a_time() {
    let server = Server::start().await;
    let (b, a) = (levels(&["b"]), levels(&["a"]));
    let (inner, innermost) = (levels(&["a", "inner"]), levels(&["a", "inner", "most"]));
    for namespace in [&b, &a, &inner, &innermost] {
        let created = server.client.create_namespace(namespace, HashMap::new());
        assert_eq!(created.await.unwrap().name(), namespace);
        let loaded = server.client.get_namespace(namespace).await.unwrap();
        assert_eq!(loaded.name(), namespace);
    }
    let list = async |parent| server.client.list_namespaces(parent).await.unwrap();
    assert_eq!(list(None).await, [a.clone(), b.clone()]);
    assert_eq!(list(Some(&a)).await, from_ref(&inner));
    assert_eq!(list(Some(&inner)).await, from_ref(&innermost));
    assert_eq!(list(Some(&innermost)).await, []);

    let parent = Namespace::new(a.inner()).unwrap();
    let (lake, page) = (lake(), Page::default());
    let held = server.service.list_namespaces(&lake, Some(&parent), &page);
    let held = held.await.unwrap().items;
    assert_eq!(held, [Namespace::new(inner.inner()).unwrap()]);
    server.audited().await;
}

#[tokio::test]
async fn a_namespace_is_there_until_it_is_dropped() {
    let server = Server::start().await;
    let outer = server.namespace(&["db"]).await;
    let inner = server.namespace(&["db", "inner"]).await;
    let exists = async |namespace| server.client.namespace_exists(namespace).await.unwrap();
    assert!(exists(&outer).await && exists(&inner).await);
    server.client.drop_namespace(&inner).await.unwrap();
    assert!(exists(&outer).await && !exists(&inner).await);
    server.client.drop_namespace(&outer).await.unwrap();
    assert!(!exists(&outer).await);
    assert_eq!(server.client.list_namespaces(None).await.unwrap(), []);
    server.audited().await;
}

#[tokio::test]
async fn a_namespace_that_holds_something_stays() {
    let server = Server::start().await;
    let outer = server.namespace(&["db"]).await;
    let inner = server.namespace(&["db", "inner"]).await;
    server.table(&inner, "t").await;
    for namespace in [&outer, &inner] {
        let dropped = server.client.drop_namespace(namespace).await;
        refused_as(dropped, 409, "NamespaceNotEmptyException");
        assert!(server.client.namespace_exists(namespace).await.unwrap());
    }
    let t = named(&inner, "t");
    assert!(server.client.table_exists(&t).await.unwrap());
    server.audited().await;
}

#[tokio::test]
async fn a_namespace_that_is_taken_or_missing_has_its_own_kind_of_error() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let client = &server.client;
    let again = client.create_namespace(&db, HashMap::new()).await;
    refused(again, ErrorKind::NamespaceAlreadyExists);
    let missing = levels(&["db", "missing"]);
    let not_found = ErrorKind::NamespaceNotFound;
    refused(client.get_namespace(&missing).await, not_found);
    refused(client.drop_namespace(&missing).await, not_found);
    refused(client.list_namespaces(Some(&missing)).await, not_found);
    refused(client.list_tables(&missing).await, not_found);
    let orphan = levels(&["missing", "orphan"]);
    let orphan = client.create_namespace(&orphan, HashMap::new()).await;
    let text = refused(orphan, ErrorKind::Unexpected).to_string();
    assert!(text.contains("namespace missing does not exist"), "{text}");
    server.audited().await;
}

#[tokio::test]
async fn a_warehouse_that_is_missing_is_told_with_the_first_request() {
    let server = Server::start().await;
    let client = server.connect("ocean").await;
    let listed = client.list_namespaces(None).await;
    refused_as(listed, 404, "NoSuchWarehouseException");
    server.audited().await;
}
