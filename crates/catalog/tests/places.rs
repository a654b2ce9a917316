//! Where catalogs and tables may lie.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;

use anabranch_catalog::{Limits, NewCatalog, Warehouse};
use anabranch_files::Location;
use anabranch_partition::Reason;
use anabranch_store::testing::sqlite_store;

use support::{Server, caller, new_table, reason, table};

fn catalog_at(location: &str, allowed: Option<&str>) -> NewCatalog {
    let allowed = allowed.map(|text| ("allowed-locations".to_owned(), text.to_owned()));
    NewCatalog {
        warehouse: Warehouse::parse("pond").unwrap(),
        location: location.to_owned(),
        properties: allowed.into_iter().collect(),
    }
}

#[tokio::test]
async fn catalogs_lie_only_in_folders_that_the_operator_named() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite_store(folder.path()).unwrap();
    let root = format!("file://{}/warehouse", folder.path().display());
    let limits = Limits {
        local_roots: Some(vec![Location::parse(&root).unwrap()]),
        ..Limits::default()
    };
    let server = Server::with(&store, folder.path(), limits);
    server.begin().await;
    let inside = format!("{root}/pond");
    let outside = format!("file://{}", folder.path().display());
    for refused in [
        catalog_at(&outside, None),
        catalog_at("file:///etc", None),
        catalog_at(&inside, Some("file:///etc")),
    ] {
        let created = server.catalog.create_catalog(&caller(), &refused).await;
        assert_eq!(reason(&created), Some(Reason::InvalidInput), "{refused:?}");
    }
    let created = server
        .catalog
        .create_catalog(&caller(), &catalog_at(&inside, None))
        .await;
    assert!(created.is_ok());
}

#[tokio::test]
async fn a_table_never_holds_the_whole_catalog() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite_store(folder.path()).unwrap();
    let server = Server::over(&store, folder.path());
    server.begin().await;
    for (location, is_refused) in [
        (server.location(), true),
        (format!("{}/", server.location()), true),
        (format!("{}/below", server.location()), false),
    ] {
        let mut new = new_table(table(&["db"], "t"));
        new.location = Some(location.clone());
        let created = server
            .catalog
            .create_table(&caller(), &server.lake, new)
            .await;
        let refused = reason(&created) == Some(Reason::InvalidInput);
        assert_eq!(refused, is_refused, "{location}");
    }
}

#[tokio::test]
async fn names_and_tokens_with_nul_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite_store(folder.path()).unwrap();
    let server = Server::over(&store, folder.path());
    server.begin().await;
    let page = anabranch_catalog::Page {
        token: Some("n\0".to_owned()),
        size: None,
    };
    let listed = server
        .catalog
        .list_namespaces(&server.lake, None, &page)
        .await;
    assert_eq!(reason(&listed), Some(Reason::InvalidInput));
    let whole = anabranch_catalog::Page::default();
    let listed = server.catalog.list_catalogs("a\0", &whole).await;
    assert_eq!(reason(&listed), Some(Reason::InvalidInput));
    let mut bad = catalog_at(&format!("{}/pond", server.location()), None);
    bad.properties = BTreeMap::from([("k".to_owned(), "x".repeat(70_000))]);
    let created = server.catalog.create_catalog(&caller(), &bad).await;
    assert_eq!(reason(&created), Some(Reason::InvalidInput));
}
