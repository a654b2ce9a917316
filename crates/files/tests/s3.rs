//! The calls against a real S3 server. Give its address (`http://…`), with an existing bucket
//! `lake` and any keys accepted, in `ANABRANCH_TEST_S3_ENDPOINT`, and run with `--ignored`.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use anabranch_files::{
    DeleteReport, FileEntry, FileErrorKind, Files, FilesOptions, Location, StorageSettings,
};
use bytes::Bytes;
use futures::TryStreamExt;
use uuid::Uuid;

const DOCUMENT: Bytes = Bytes::from_static(b"{\"format-version\":2}");

fn files(endpoint: &str) -> Files {
    let properties = BTreeMap::from([
        ("s3.endpoint", endpoint),
        ("s3.region", "us-east-1"),
        ("s3.access-key-id", "test"),
        ("s3.secret-access-key", "test-secret"),
        ("s3.path-style-access", "true"),
    ]);
    let settings = StorageSettings::from_properties(&properties).unwrap();
    Files::new(FilesOptions::default()).with_settings(&settings)
}

#[tokio::test]
#[ignore = "needs ANABRANCH_TEST_S3_ENDPOINT"]
async fn every_call_on_a_server() {
    let endpoint = std::env::var("ANABRANCH_TEST_S3_ENDPOINT").unwrap();
    let files = files(&endpoint);
    let table = Location::parse(&format!("s3://lake/{}", Uuid::now_v7())).unwrap();
    files.ensure_table_folders(&table).await.unwrap();
    let names = [
        "metadata/m.json",
        "data/a b",
        "data/a%20b",
        "data/ä🦀+c",
        "data/~[x]",
    ];
    for name in names {
        let place = table.join(name).unwrap();
        files.put_new(&place, DOCUMENT).await.unwrap();
        let refused = files.put_new(&place, DOCUMENT).await.unwrap_err();
        assert_eq!(refused.kind(), FileErrorKind::AlreadyExists, "{refused:?}");
        assert_eq!(files.get(&place, 100).await.unwrap(), DOCUMENT);
    }
    let place = table.join("contended").unwrap();
    let creators = (0..16u8).map(|number| files.put_new(&place, Bytes::from(vec![number])));
    let outcomes = futures::future::join_all(creators.collect::<Vec<_>>()).await;
    assert_eq!(
        outcomes.iter().filter(|outcome| outcome.is_ok()).count(),
        1,
        "{outcomes:?}"
    );

    let listed: Vec<FileEntry> = files.list(&table).try_collect().await.unwrap();
    let mut found: Vec<String> = listed.iter().map(|e| e.location.to_string()).collect();
    found.sort_unstable();
    let mut expected: Vec<String> = names.iter().map(|n| format!("{table}/{n}")).collect();
    expected.push(place.to_string());
    expected.sort_unstable();
    assert_eq!(found, expected);

    let kept = table.join("data/a b").unwrap().canonical();
    let report = files
        .delete_under(&table, move |name| name == kept)
        .await
        .unwrap();
    assert_eq!(
        report,
        DeleteReport {
            deleted: 5,
            kept: 1
        }
    );
    let report = files.delete_under(&table, |_| false).await.unwrap();
    assert_eq!(
        report,
        DeleteReport {
            deleted: 1,
            kept: 0
        }
    );
    files.delete(&place).await.unwrap();
    let gone = files.get(&place, 100).await.unwrap_err();
    assert_eq!(gone.kind(), FileErrorKind::NotFound);

    let no_bucket = Location::parse("s3://no-such-bucket/m.json").unwrap();
    let refused = files.put_new(&no_bucket, DOCUMENT).await.unwrap_err();
    assert_eq!(refused.kind(), FileErrorKind::NotFound, "{refused:?}");
    assert!(!refused.maybe_written());
}

#[tokio::test]
async fn server_that_is_not_there_is_unavailable_and_nothing_was_written() {
    let files = files("http://127.0.0.1:1");
    let place = Location::parse("s3://lake/m.json").unwrap();
    let failed = files.put_new(&place, DOCUMENT).await.unwrap_err();
    assert_eq!(failed.kind(), FileErrorKind::Unavailable, "{failed:?}");
    assert!(failed.is_retryable() && !failed.maybe_written());
    let shown = format!("{failed} {failed:?}");
    assert!(!shown.contains("test-secret"), "{shown}");
}

/// Answers every request with one status and a body of XML.
async fn server_that_answers(status: &'static str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let body = "<Error><Code>Scripted</Code></Error>";
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn answers_of_a_server_are_told_apart() {
    let expected = [
        (
            "301 Moved Permanently",
            FileErrorKind::InvalidSettings,
            false,
        ),
        ("400 Bad Request", FileErrorKind::InvalidSettings, false),
        ("501 Not Implemented", FileErrorKind::InvalidSettings, false),
        ("403 Forbidden", FileErrorKind::Denied, false),
        ("401 Unauthorized", FileErrorKind::Denied, false),
        ("503 Slow Down", FileErrorKind::Unavailable, true),
        (
            "500 Internal Server Error",
            FileErrorKind::Unavailable,
            true,
        ),
    ];
    for (status, kind, maybe_written) in expected {
        let files = files(&server_that_answers(status).await);
        let place = Location::parse("s3://lake/m.json").unwrap();
        let failed = files.put_new(&place, DOCUMENT).await.unwrap_err();
        assert_eq!(failed.kind(), kind, "{status}: {failed:?}");
        assert_eq!(
            failed.maybe_written(),
            maybe_written,
            "{status}: {failed:?}"
        );
        assert!(!failed.to_string().contains("Scripted"));
        let failed = files.get(&place, 100).await.unwrap_err();
        assert_eq!(failed.kind(), kind, "{status}: {failed:?}");
    }
}
