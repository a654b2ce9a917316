//! The memory of decoded documents, gzip, and the fault points.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::Path;
use std::string::FromUtf8Error;
use std::sync::Arc;
use std::time::Duration;

use anabranch_files::{
    Fault, FaultCall, FaultGate, Faults, FileErrorKind, Files, FilesOptions, LoadError, Location,
    MetadataCache, StorageSettings,
};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

fn location(folder: &Path, name: &str) -> Location {
    Location::parse(&format!("file://{}/{name}", folder.to_str().unwrap())).unwrap()
}

fn text(bytes: &Bytes) -> Result<String, FromUtf8Error> {
    String::from_utf8(bytes.to_vec())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn settings() -> StorageSettings {
    StorageSettings::default()
}

#[tokio::test]
async fn gzip_is_recognised_by_content_and_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let files = Files::new(FilesOptions::default());
    let document = vec![b' '; 1_000_000];
    for name in ["1.gz.metadata.json", "1.metadata.json"] {
        let place = location(folder.path(), name);
        files.put_new(&place, gzip(&document).into()).await.unwrap();
        assert_eq!(files.get(&place, 1_000_000).await.unwrap(), document);
        let bomb = files.get(&place, 999_999).await.unwrap_err();
        assert_eq!(bomb.kind(), FileErrorKind::TooLarge);
    }
    let place = location(folder.path(), "broken.gz.metadata.json");
    let broken = gzip(&document)[..200].to_vec();
    files.put_new(&place, broken.into()).await.unwrap();
    let error = files.get(&place, 1_000_000).await.unwrap_err();
    assert_eq!(error.kind(), FileErrorKind::Corrupt);
    let place = location(folder.path(), "plain.gz.metadata.json");
    files
        .put_new(&place, Bytes::from_static(b"{}"))
        .await
        .unwrap();
    assert_eq!(files.get(&place, 10).await.unwrap(), "{}");
}

#[tokio::test]
async fn many_callers_share_one_load() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::new();
    let files = Files::new(FilesOptions::default()).with_faults(faults.clone());
    let place = location(folder.path(), "m.json");
    files
        .put_new(&place, Bytes::from_static(b"hello"))
        .await
        .unwrap();
    let gate = FaultGate::default();
    faults.on_nth(FaultCall::Get, 1, Fault::HoldAfter(gate.clone()));

    let cache = Arc::new(MetadataCache::<String>::new(files, 1000, 1000));
    let load = || {
        let (cache, place) = (Arc::clone(&cache), place.clone());
        tokio::spawn(async move { cache.get_or_load(&place, &settings(), text).await })
    };
    let first = load();
    gate.arrived().await;
    let others: Vec<_> = (0..31).map(|_| load()).collect();
    tokio::task::yield_now().await;
    gate.open();
    for loaded in others.into_iter().chain([first]) {
        assert_eq!(loaded.await.unwrap().unwrap().as_str(), "hello");
    }
    assert_eq!(faults.calls(FaultCall::Get), 1);
    assert_eq!((cache.stats().hits, cache.stats().misses), (31, 1));
}

#[tokio::test]
async fn failure_is_shared_and_not_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::new();
    let files = Files::new(FilesOptions::default()).with_faults(faults.clone());
    let place = location(folder.path(), "m.json");
    let cache = MetadataCache::<String>::new(files.clone(), 1000, 1000);
    files
        .put_new(&place, Bytes::from_static(b"hello"))
        .await
        .unwrap();
    faults.on_next(
        FaultCall::Get,
        Fault::FailBefore(FileErrorKind::Unavailable),
    );
    let failed = cache
        .get_or_load(&place, &settings(), text)
        .await
        .unwrap_err();
    assert!(matches!(&*failed, LoadError::File(error) if error.is_retryable()));
    let parsed = cache
        .get_or_load(&place, &settings(), |_| text(&Bytes::from_static(b"\xff")))
        .await
        .unwrap_err();
    assert!(matches!(&*parsed, LoadError::Parse(_)));
    assert!(cache.get_or_load(&place, &settings(), text).await.is_ok());

    cache.invalidate(&place, &settings()).await;
    files.delete(&place).await.unwrap();
    assert!(cache.get_or_load(&place, &settings(), text).await.is_err());
    let written = Arc::new("written".to_owned());
    cache.insert(&place, &settings(), written, 7).await;
    let found = cache.get_or_load(&place, &settings(), text).await.unwrap();
    assert_eq!(found.as_str(), "written");
}

#[tokio::test]
async fn weight_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let files = Files::new(FilesOptions::default());
    let cache = MetadataCache::<String>::new(files.clone(), 10_000, 1000);
    for number in 0..100 {
        let place = location(folder.path(), &format!("{number}.json"));
        files.put_new(&place, vec![b'x'; 100].into()).await.unwrap();
        cache.get_or_load(&place, &settings(), text).await.unwrap();
    }
    cache.settle().await;
    let stats = cache.stats();
    assert!(stats.weight <= 10_000 && stats.entries <= 10, "{stats:?}");
    assert!(stats.entries > 0);
}

#[tokio::test]
async fn different_settings_are_different_documents() {
    let properties = [("s3.endpoint", "http://127.0.0.1:1")];
    let other = StorageSettings::from_properties(properties.iter().map(|(k, v)| (k, v))).unwrap();
    let cache = MetadataCache::<String>::new(Files::new(FilesOptions::default()), 1000, 1000);
    let place = Location::parse("s3://bucket/m.json").unwrap();
    for (settings, words) in [(&settings(), "one"), (&other, "two")] {
        cache
            .insert(&place, settings, Arc::new(words.to_owned()), 3)
            .await;
    }
    let one = cache.get_or_load(&place, &settings(), text).await.unwrap();
    let two = cache.get_or_load(&place, &other, text).await.unwrap();
    assert_eq!((one.as_str(), two.as_str()), ("one", "two"));
}

#[tokio::test]
async fn lost_answer_of_a_create_leaves_the_file_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::new();
    let files = Files::new(FilesOptions::default()).with_faults(faults.clone());
    let place = location(folder.path(), "m.json");
    faults.on_nth(
        FaultCall::PutNew,
        1,
        Fault::FailBefore(FileErrorKind::NoSpace),
    );
    faults.on_nth(
        FaultCall::PutNew,
        2,
        Fault::FailAfter(FileErrorKind::TimedOut),
    );
    let first = files.put_new(&place, Bytes::new()).await.unwrap_err();
    assert!(!first.maybe_written() && first.kind() == FileErrorKind::NoSpace);
    assert!(!folder.path().join("m.json").exists());
    let second = files.put_new(&place, Bytes::new()).await.unwrap_err();
    assert!(second.maybe_written() && second.is_retryable());
    assert!(folder.path().join("m.json").exists());
}

#[tokio::test(start_paused = true)]
async fn slow_store_ends_in_a_timeout_that_leaves_the_outcome_open() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::new();
    let files = Files::new(FilesOptions::default()).with_faults(faults.clone());
    let place = location(folder.path(), "m.json");
    faults.on_every(
        FaultCall::PutNew,
        Fault::DelayBefore(Duration::from_secs(3600)),
    );
    faults.on_every(
        FaultCall::Get,
        Fault::DelayBefore(Duration::from_secs(3600)),
    );
    let put = files.put_new(&place, Bytes::new()).await.unwrap_err();
    assert!(put.kind() == FileErrorKind::TimedOut && put.maybe_written());
    let get = files.get(&place, 10).await.unwrap_err();
    assert!(get.kind() == FileErrorKind::TimedOut && !get.maybe_written());
}
