//! Tables, from their creation to their end.

use std::time::{Duration, Instant};

use anabranch_catalog::{Limits, Page, PointerKind};
use iceberg::spec::{
    FormatVersion, NullOrder, SortDirection, SortField, SortOrder, Transform, UnboundPartitionSpec,
};
use iceberg::{Catalog, ErrorKind, TableCreation};

use crate::server::{Server, creation, here, lake, named, refused, refused_as, schema};

#[tokio::test]
async fn a_created_table_is_what_was_asked_for_and_what_is_held() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let spec = UnboundPartitionSpec::builder()
        .add_partition_field(1, "bucket", Transform::Bucket(4))
        .unwrap()
        .build();
    let field = SortField::builder()
        .source_id(2)
        .transform(Transform::Identity)
        .direction(SortDirection::Descending)
        .null_order(NullOrder::Last)
        .build();
    let order = SortOrder::builder()
        .with_order_id(1)
        .with_sort_field(field.clone())
        .build_unbound()
        .unwrap();
    let new = TableCreation::builder()
        .name("t".to_owned())
        .schema(schema())
        .partition_spec(spec)
        .sort_order(order)
        .properties([("owner".to_owned(), "ann".to_owned())])
        .build();
    let created = server.client.create_table(&db, new).await.unwrap();
    let metadata = created.metadata();
    assert_eq!(metadata.format_version(), FormatVersion::V2);
    assert_eq!(metadata.current_schema().as_struct(), schema().as_struct());
    let partition = &metadata.default_partition_spec().fields()[0];
    assert_eq!(partition.name, "bucket");
    assert_eq!(partition.transform, Transform::Bucket(4));
    assert_eq!(metadata.default_sort_order().fields, [field]);
    assert_eq!(metadata.properties()["owner"], "ann");
    assert!(metadata.current_snapshot().is_none());
    server.assert_held(&created).await;
    server.audited().await;
}

#[tokio::test]
async fn the_format_version_of_a_new_table_is_chosen_by_its_property() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let versions = [
        ("1", FormatVersion::V1),
        ("2", FormatVersion::V2),
        ("3", FormatVersion::V3),
    ];
    for (number, version) in versions {
        let property = ("format-version".to_owned(), number.to_owned());
        let new = TableCreation::builder()
            .name(format!("v{number}"))
            .schema(schema())
            .properties([property])
            .build();
        let created = server.client.create_table(&db, new).await.unwrap();
        assert_eq!(created.metadata().format_version(), version);
        server.assert_held(&created).await;
    }
    server.audited().await;
}

#[tokio::test]
async fn a_table_lies_where_the_client_says() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let location = format!("file://{}", server.file("warehouse/chosen").display());
    let new = TableCreation::builder()
        .name("t".to_owned())
        .schema(schema())
        .location(location.clone())
        .build();
    let created = server.client.create_table(&db, new).await.unwrap();
    assert_eq!(created.metadata().location(), location);
    let document = created.metadata_location().unwrap();
    assert!(
        document.starts_with(&format!("{location}/metadata/")),
        "{document}"
    );
    server.assert_held(&created).await;
    server.audited().await;
}

#[tokio::test]
async fn tables_are_listed_where_they_stand() {
    let server = Server::start().await;
    let outer = server.namespace(&["db"]).await;
    let inner = server.namespace(&["db", "inner"]).await;
    server.table(&outer, "b").await;
    server.table(&outer, "a").await;
    server.table(&inner, "c").await;
    let listed = server.client.list_tables(&outer).await.unwrap();
    assert_eq!(listed, [named(&outer, "a"), named(&outer, "b")]);
    let namespace = here(&named(&outer, "a")).namespace;
    let (lake, kind, page) = (lake(), PointerKind::Table, Page::default());
    let held = server.service.list_pointers(&lake, &namespace, kind, &page);
    let held = held.await.unwrap().items;
    assert_eq!(held, listed.iter().map(here).collect::<Vec<_>>());
    let listed = server.client.list_tables(&inner).await.unwrap();
    assert_eq!(listed, [named(&inner, "c")]);
    server.audited().await;
}

#[tokio::test]
async fn a_renamed_table_is_the_same_table_in_its_new_namespace() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let inner = server.namespace(&["db", "inner"]).await;
    let other = server.namespace(&["other"]).await;
    let created = server.table(&db, "t").await;
    let mut from = named(&db, "t");
    for to in [named(&inner, "t2"), named(&other, "t")] {
        server.client.rename_table(&from, &to).await.unwrap();
        assert!(!server.client.table_exists(&from).await.unwrap());
        assert!(server.client.table_exists(&to).await.unwrap());
        let loaded = server.client.load_table(&to).await.unwrap();
        assert_eq!(loaded.metadata(), created.metadata());
        assert_eq!(loaded.metadata_location(), created.metadata_location());
        server.assert_held(&loaded).await;
        from = to;
    }
    server.audited().await;
}

#[tokio::test]
async fn a_dropped_table_leaves_its_files_and_can_be_registered_again() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let created = server.table(&db, "t").await;
    let document = created.metadata_location().unwrap().to_owned();
    server.client.drop_table(&named(&db, "t")).await.unwrap();
    assert!(!server.client.table_exists(&named(&db, "t")).await.unwrap());
    assert_eq!(server.client.list_tables(&db).await.unwrap(), []);

    let back = named(&db, "back");
    let registered = server.client.register_table(&back, document.clone());
    let registered = registered.await.unwrap();
    assert_eq!(registered.metadata(), created.metadata());
    assert_eq!(registered.metadata_location(), Some(document.as_str()));
    server.assert_held(&registered).await;
    server.audited().await;
}

#[tokio::test]
async fn a_purged_table_is_gone_at_once_and_its_files_with_the_jobs() {
    let server = Server::with_limits(Limits {
        history_retention: Duration::ZERO,
        job_interval: Duration::ZERO,
        ..Limits::default()
    })
    .await;
    let db = server.namespace(&["db"]).await;
    let created = server.table(&db, "t").await;
    let document = created.metadata_location().unwrap();
    server.client.purge_table(&named(&db, "t")).await.unwrap();
    assert!(!server.client.table_exists(&named(&db, "t")).await.unwrap());
    server.service.ensure_jobs().await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while created.file_io().exists(document).await.unwrap() {
        assert!(Instant::now() < deadline, "the jobs never get there");
        server.service.run_due_task("test").await.unwrap();
    }
    server.audited().await;
}

#[tokio::test]
async fn a_name_that_is_taken_or_missing_has_its_own_kind_of_error() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let t = server.table(&db, "t").await;
    let u = server.table(&db, "u").await;
    let client = &server.client;
    let (taken, missing) = (named(&db, "t"), named(&db, "missing"));
    let exists = ErrorKind::TableAlreadyExists;
    refused(client.create_table(&db, creation("t")).await, exists);
    refused(client.rename_table(&named(&db, "u"), &taken).await, exists);
    let document = u.metadata_location().unwrap().to_owned();
    refused(client.register_table(&taken, document).await, exists);

    let not_found = ErrorKind::TableNotFound;
    refused(client.load_table(&missing).await, not_found);
    refused(client.drop_table(&missing).await, not_found);
    refused(client.purge_table(&missing).await, not_found);
    refused(
        client.rename_table(&missing, &named(&db, "v")).await,
        not_found,
    );
    let nowhere = iceberg::NamespaceIdent::new("nowhere".to_owned());
    let created = client.create_table(&nowhere, creation("t")).await;
    refused(created, ErrorKind::NamespaceNotFound);
    refused(
        client.rename_table(&taken, &named(&nowhere, "t")).await,
        not_found,
    );
    assert!(!client.table_exists(&named(&nowhere, "t")).await.unwrap());

    server.assert_held(&t).await;
    server.assert_held(&u).await;
    server.audited().await;
}

#[tokio::test]
async fn what_is_no_metadata_is_not_registered() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let t = named(&db, "t");
    let path = server.file("warehouse/00000-0.metadata.json");
    let location = format!("file://{}", path.display());
    let registered = server.client.register_table(&t, location.clone()).await;
    refused_as(registered, 400, "BadRequestException");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "{}").unwrap();
    let registered = server.client.register_table(&t, location).await;
    refused_as(registered, 400, "BadRequestException");
    assert!(!server.client.table_exists(&t).await.unwrap());
    server.audited().await;
}
