//! Commits through the client's transactions, with nobody else about.

use std::collections::{HashMap, HashSet};

use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, FormatVersion, NullOrder,
    Operation, PrimitiveType, SortDirection, StatisticsFile, Struct, Type,
};
use iceberg::table::Table;
use iceberg::transaction::{AddColumn, ApplyTransactionAction, Transaction};
use iceberg::{Catalog, ErrorKind};

use crate::server::{Server, named, refused, refused_as};

/// A transaction of one action, committed.
macro_rules! commit {
    ($client:expr, $table:expr, $transaction:ident => $action:expr) => {{
        let $transaction = Transaction::new($table);
        let transaction = $action.apply($transaction).unwrap();
        transaction.commit($client).await
    }};
}
pub(crate) use commit;

pub fn data_file(table: &Table, name: &str, records: u64) -> DataFile {
    DataFileBuilder::default()
        .content(DataContentType::Data)
        .file_path(format!(
            "{}/data/{name}.parquet",
            table.metadata().location()
        ))
        .file_format(DataFileFormat::Parquet)
        .file_size_in_bytes(100)
        .record_count(records)
        .partition(Struct::empty())
        .partition_spec_id(0)
        .build()
        .unwrap()
}

/// The data files of the current snapshot, as its manifests list them.
pub async fn data_files(table: &Table) -> Vec<String> {
    let snapshot = table.metadata().current_snapshot().unwrap();
    let manifests = table.manifest_list_reader(snapshot).load().await.unwrap();
    let mut files = Vec::new();
    for manifest in manifests.entries() {
        let manifest = manifest.load_manifest(table.file_io()).await.unwrap();
        let paths = manifest.entries().iter().map(|entry| entry.file_path());
        files.extend(paths.map(str::to_owned));
    }
    files.sort();
    files
}

#[tokio::test]
async fn properties_are_set_and_removed_without_any_requirement() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let table = server.table(&db, "t").await;
    let first = commit!(&server.client, &table, transaction => transaction
        .update_table_properties()
        .set("keep".to_owned(), "1".to_owned())
        .set("odd \u{1f986} key".to_owned(), "a\"b\\c\n".to_owned()))
    .unwrap();
    assert_eq!(
        first.metadata().properties()["odd \u{1f986} key"],
        "a\"b\\c\n"
    );
    server.assert_held(&first).await;
    let second = commit!(&server.client, &first, transaction => transaction
        .update_table_properties()
        .remove("odd \u{1f986} key".to_owned())
        .remove("never there".to_owned())
        .set("more".to_owned(), "2".to_owned()))
    .unwrap();
    let expected = [("keep", "1"), ("more", "2")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(second.metadata().properties(), &HashMap::from(expected));
    server.assert_held(&second).await;
    // The documents that were replaced are in the log, in their order.
    let log = second.metadata().metadata_log().iter();
    let log: Vec<_> = log.map(|entry| entry.metadata_file.as_str()).collect();
    let documents = [&table, &first].map(|table| table.metadata_location().unwrap());
    assert_eq!(log, documents);
    server.audited().await;
}

#[tokio::test]
async fn a_commit_that_changes_nothing_leaves_the_document_where_it_is() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let table = server.table(&db, "t").await;
    let same = commit!(&server.client, &table, transaction => transaction
        .update_table_properties()
        .remove("never there".to_owned()))
    .unwrap();
    assert_eq!(same.metadata_location(), table.metadata_location());
    assert_eq!(same.metadata(), table.metadata());
    server.assert_held(&same).await;
    server.audited().await;
}

#[tokio::test]
async fn a_sort_order_becomes_the_default() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let table = server.table(&db, "t").await;
    let sorted = commit!(&server.client, &table, transaction => transaction
        .replace_sort_order()
        .desc("text", NullOrder::Last)
        .asc("id", NullOrder::First))
    .unwrap();
    let order = sorted.metadata().default_sort_order();
    let fields: Vec<_> = order
        .fields
        .iter()
        .map(|field| (field.source_id, field.direction, field.null_order))
        .collect();
    let expected = [
        (2, SortDirection::Descending, NullOrder::Last),
        (1, SortDirection::Ascending, NullOrder::First),
    ];
    assert_eq!(fields, expected);
    server.assert_held(&sorted).await;
    server.audited().await;
}

#[tokio::test]
async fn a_format_is_upgraded_and_never_downgraded() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let mut table = server.table(&db, "t").await;
    for version in [FormatVersion::V3, FormatVersion::V3] {
        table = commit!(&server.client, &table, transaction => transaction
            .upgrade_table_version()
            .set_format_version(version))
        .unwrap();
        assert_eq!(table.metadata().format_version(), version);
        server.assert_held(&table).await;
    }
    // The client refuses by itself, before the server could.
    let downgraded = commit!(&server.client, &table, transaction => transaction
        .upgrade_table_version()
        .set_format_version(FormatVersion::V2));
    refused(downgraded, ErrorKind::DataInvalid);
    server.assert_held(&table).await;
    server.audited().await;
}

#[tokio::test]
async fn columns_are_added_and_dropped() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let table = server.table(&db, "t").await;
    let day = Type::Primitive(PrimitiveType::Date);
    let wider = commit!(&server.client, &table, transaction => transaction
        .update_schema()
        .add_column(AddColumn::optional("day", day)))
    .unwrap();
    assert_eq!(wider.metadata().last_column_id(), 3);
    server.assert_held(&wider).await;
    let narrower = commit!(&server.client, &wider, transaction => transaction
        .update_schema()
        .delete_column("text"))
    .unwrap();
    let fields = narrower.metadata().current_schema().as_struct().fields();
    let fields: Vec<_> = fields
        .iter()
        .map(|field| (field.id, field.name.as_str()))
        .collect();
    assert_eq!(fields, [(1, "id"), (3, "day")]);
    assert_eq!(narrower.metadata().schemas_iter().len(), 3);
    server.assert_held(&narrower).await;
    server.audited().await;
}

#[tokio::test]
async fn a_location_is_changed_and_the_next_document_lies_there() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let table = server.table(&db, "t").await;
    let location = format!("file://{}", server.file("warehouse/moved").display());
    let moved = commit!(&server.client, &table, transaction => transaction
        .update_location()
        .set_location(location.clone()))
    .unwrap();
    assert_eq!(moved.metadata().location(), location);
    assert!(moved.metadata_location().unwrap().starts_with(&location));
    server.assert_held(&moved).await;
    server.audited().await;
}

#[tokio::test]
async fn appended_files_are_found_by_another_client() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    for version in [FormatVersion::V1, FormatVersion::V2, FormatVersion::V3] {
        let name = format!("v{}", version as u8);
        let number = ("format-version".to_owned(), (version as u8).to_string());
        let mut new = crate::server::creation(&name);
        new.properties = HashMap::from([number]);
        let table = server.client.create_table(&db, new).await.unwrap();
        let first = commit!(&server.client, &table, transaction => transaction
            .fast_append()
            .add_data_files([data_file(&table, "a", 30)]))
        .unwrap();
        server.assert_held(&first).await;
        let second = commit!(&server.client, &first, transaction => transaction
            .fast_append()
            .add_data_files([data_file(&table, "b", 12), data_file(&table, "c", 5)]))
        .unwrap();
        server.assert_held(&second).await;

        let other = server.connect("lake").await;
        let seen = other.load_table(&named(&db, &name)).await.unwrap();
        let location = table.metadata().location();
        let expected = ["a", "b", "c"].map(|file| format!("{location}/data/{file}.parquet"));
        assert_eq!(data_files(&seen).await, expected);
        let snapshot = seen.metadata().current_snapshot().unwrap();
        assert_eq!(snapshot.summary().operation, Operation::Append);
        let summary = &snapshot.summary().additional_properties;
        assert_eq!(summary["total-records"], "47");
        let parent = first.metadata().current_snapshot_id();
        assert_eq!(snapshot.parent_snapshot_id(), parent);
        assert_eq!(seen.metadata().history().len(), 2);
        if version == FormatVersion::V3 {
            assert_eq!(snapshot.first_row_id(), Some(30));
            assert_eq!(seen.metadata().next_row_id(), 47);
        }
    }
    server.audited().await;
}

#[tokio::test]
async fn a_file_is_not_appended_twice() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let table = server.table(&db, "t").await;
    let file = data_file(&table, "a", 1);
    let once = commit!(&server.client, &table, transaction => transaction
        .fast_append()
        .add_data_files([file.clone()]))
    .unwrap();
    let twice = commit!(&server.client, &once, transaction => transaction
        .fast_append()
        .add_data_files([file]));
    refused(twice, ErrorKind::DataInvalid);
    server.assert_held(&once).await;
    server.audited().await;
}

#[tokio::test]
async fn one_transaction_is_one_document() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let table = server.table(&db, "t").await;
    let transaction = Transaction::new(&table);
    let properties = transaction.update_table_properties();
    let transaction = properties
        .set("a".to_owned(), "1".to_owned())
        .apply(transaction)
        .unwrap();
    let append = transaction.fast_append();
    let transaction = append
        .add_data_files([data_file(&table, "a", 1)])
        .apply(transaction)
        .unwrap();
    let order = transaction.replace_sort_order();
    let transaction = order
        .asc("id", NullOrder::First)
        .apply(transaction)
        .unwrap();
    let committed = transaction.commit(&server.client).await.unwrap();
    let metadata = committed.metadata();
    assert_eq!(metadata.metadata_log().len(), 1);
    assert_eq!(metadata.properties()["a"], "1");
    assert!(metadata.current_snapshot().is_some());
    assert!(!metadata.default_sort_order().is_unsorted());
    server.assert_held(&committed).await;
    server.audited().await;
}

#[tokio::test]
async fn statistics_are_set_and_removed() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let table = server.table(&db, "t").await;
    let appended = commit!(&server.client, &table, transaction => transaction
        .fast_append()
        .add_data_files([data_file(&table, "a", 1)]))
    .unwrap();
    let snapshot_id = appended.metadata().current_snapshot_id().unwrap();
    let statistics = StatisticsFile {
        snapshot_id,
        statistics_path: format!("{}/metadata/a.puffin", table.metadata().location()),
        file_size_in_bytes: 9,
        file_footer_size_in_bytes: 3,
        key_metadata: None,
        blob_metadata: Vec::new(),
    };
    let described = commit!(&server.client, &appended, transaction => transaction
        .update_statistics()
        .set_statistics(statistics.clone()))
    .unwrap();
    let found = described.metadata().statistics_for_snapshot(snapshot_id);
    assert_eq!(found, Some(&statistics));
    server.assert_held(&described).await;
    let bare = commit!(&server.client, &described, transaction => transaction
        .update_statistics()
        .remove_statistics(snapshot_id))
    .unwrap();
    assert_eq!(bare.metadata().statistics_iter().len(), 0);
    server.assert_held(&bare).await;
    server.audited().await;
}

#[tokio::test]
async fn expired_snapshots_are_gone() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let mut table = server.table(&db, "t").await;
    let mut snapshots = Vec::new();
    for name in ["a", "b", "c"] {
        table = commit!(&server.client, &table, transaction => transaction
            .fast_append()
            .add_data_files([data_file(&table, name, 1)]))
        .unwrap();
        snapshots.push(table.metadata().current_snapshot_id().unwrap());
    }
    let expired = commit!(&server.client, &table, transaction => transaction
        .expire_snapshots()
        .expire_snapshot_ids(snapshots[..1].to_vec()))
    .unwrap();
    let left = expired.metadata().snapshots();
    let left: HashSet<_> = left.map(|snapshot| snapshot.snapshot_id()).collect();
    assert_eq!(left, HashSet::from_iter(snapshots[1..].iter().copied()));
    server.assert_held(&expired).await;
    server.audited().await;
}

#[tokio::test]
async fn updates_that_the_server_refuses_change_nothing() {
    let server = Server::start().await;
    let db = server.namespace(&["db"]).await;
    let table = server.table(&db, "t").await;
    // Not below the warehouse: the client lets it pass.
    let elsewhere = "file:///elsewhere/t".to_owned();
    let moved = commit!(&server.client, &table, transaction => transaction
        .update_location()
        .set_location(elsewhere));
    refused_as(moved, 400, "BadRequestException");
    server.assert_held(&table).await;
    server.audited().await;
}
