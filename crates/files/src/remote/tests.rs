use std::collections::VecDeque;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use object_store::memory::InMemory;
use object_store::{
    CopyOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, PutMultipartOptions,
    PutPayload, PutResult,
};

use super::*;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Script {
    /// Applied; the answer is lost.
    Lost,
    /// Not applied; no answer either.
    Vanished,
    /// Never sent.
    NoConnection,
    /// Refused because of another request at the same moment; nothing is there.
    Conflict,
    /// Not allowed.
    Denied,
}

/// A store in memory whose creates follow a script, and then work.
#[derive(Debug, Default)]
struct ScriptedStore {
    inner: InMemory,
    script: Mutex<VecDeque<Script>>,
    puts: AtomicUsize,
}

impl fmt::Display for ScriptedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("scripted")
    }
}

#[derive(Debug, thiserror::Error)]
#[error("scripted")]
struct Scripted;

fn generic(kind: HttpErrorKind) -> object_store::Error {
    object_store::Error::Generic {
        store: "scripted",
        source: Box::new(HttpError::new(kind, Scripted)),
    }
}

#[async_trait]
impl ObjectStore for ScriptedStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> object_store::Result<PutResult> {
        self.puts.fetch_add(1, Ordering::Relaxed);
        assert_eq!(options.mode, PutMode::Create);
        let step = self.script.lock().unwrap().pop_front();
        let path = location.to_string();
        match step {
            None => self.inner.put_opts(location, payload, options).await,
            Some(Script::Lost) => {
                self.inner.put_opts(location, payload, options).await?;
                Err(generic(HttpErrorKind::Interrupted))
            }
            Some(Script::Vanished) => Err(generic(HttpErrorKind::Timeout)),
            Some(Script::NoConnection) => Err(generic(HttpErrorKind::Connect)),
            Some(Script::Conflict) => Err(object_store::Error::AlreadyExists {
                path,
                source: Box::new(Scripted),
            }),
            Some(Script::Denied) => Err(object_store::Error::PermissionDenied {
                path,
                source: Box::new(Scripted),
            }),
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(
        &self,
        location: &Path,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
    ) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

fn scripted(steps: &[Script]) -> (Arc<ScriptedStore>, ObjectBackend) {
    let store = Arc::new(ScriptedStore::default());
    store.script.lock().unwrap().extend(steps);
    let backend = ObjectBackend {
        repeating: Arc::clone(&store) as Arc<dyn ObjectStore>,
        single_shot: Arc::clone(&store) as Arc<dyn ObjectStore>,
        write_attempts: 3,
        first_backoff: Duration::from_millis(1),
    };
    (store, backend)
}

fn place(spelling: &str) -> Location {
    Location::parse(spelling).unwrap()
}

const DOCUMENT: Bytes = Bytes::from_static(b"{\"format-version\":2}");

#[tokio::test]
async fn own_earlier_attempt_is_recognised() {
    use Script::*;
    let harmless: [&[Script]; 6] = [
        &[Lost],
        &[Vanished],
        &[NoConnection, Lost],
        &[Vanished, Lost],
        &[Conflict],
        &[Conflict, NoConnection],
    ];
    for steps in harmless {
        let (_, backend) = scripted(steps);
        let location = place("s3://b/t/m.json");
        backend.put_new(&location, DOCUMENT).await.unwrap();
        assert_eq!(backend.get(&location, 100).await.unwrap(), DOCUMENT);
    }
}

#[tokio::test]
async fn file_of_someone_else_is_never_taken_for_ours() {
    for steps in [&[][..], &[Script::Vanished], &[Script::NoConnection]] {
        let (store, backend) = scripted(&[]);
        let location = place("s3://b/t/m.json");
        let other = Bytes::from_static(b"other");
        backend.put_new(&location, other.clone()).await.unwrap();
        store.script.lock().unwrap().extend(steps);
        let refused = backend.put_new(&location, DOCUMENT).await.unwrap_err();
        assert_eq!(refused.kind(), FileErrorKind::AlreadyExists);
        assert!(!refused.maybe_written());
        assert_eq!(backend.get(&location, 100).await.unwrap(), other);
    }
}

#[tokio::test]
async fn second_create_of_equal_bytes_is_refused_when_nothing_was_lost() {
    let (_, backend) = scripted(&[]);
    let location = place("s3://b/t/m.json");
    backend.put_new(&location, DOCUMENT).await.unwrap();
    let refused = backend.put_new(&location, DOCUMENT).await.unwrap_err();
    assert_eq!(refused.kind(), FileErrorKind::AlreadyExists);
}

#[tokio::test]
async fn bounded_attempts_and_an_honest_end() {
    use Script::*;
    let ends: [(&[Script], FileErrorKind, bool, usize); 5] = [
        (&[Vanished; 9], FileErrorKind::TimedOut, true, 3),
        (&[NoConnection; 9], FileErrorKind::Unavailable, false, 3),
        (&[Conflict; 9], FileErrorKind::Unavailable, false, 3),
        (&[Denied; 9], FileErrorKind::Denied, false, 1),
        (&[Vanished, Denied], FileErrorKind::Denied, true, 2),
    ];
    for (steps, kind, maybe_written, attempts) in ends {
        let (store, backend) = scripted(steps);
        let failed = backend
            .put_new(&place("s3://b/m.json"), DOCUMENT)
            .await
            .unwrap_err();
        assert_eq!(failed.kind(), kind, "{steps:?}");
        assert_eq!(failed.maybe_written(), maybe_written, "{steps:?}");
        assert_eq!(store.puts.load(Ordering::Relaxed), attempts, "{steps:?}");
    }
}

#[tokio::test]
async fn sixteen_creators_of_one_name_have_one_winner() {
    let (_, backend) = scripted(&[]);
    let backend = Arc::new(backend);
    let location = place("s3://b/t/m.json");
    let creators = (0..16u8).map(|number| {
        let (backend, location) = (Arc::clone(&backend), location.clone());
        tokio::spawn(async move { backend.put_new(&location, Bytes::from(vec![number])).await })
    });
    let outcomes = futures::future::join_all(creators).await;
    let won = outcomes
        .into_iter()
        .filter(|won| won.as_ref().unwrap().is_ok());
    assert_eq!(won.count(), 1);
}

#[tokio::test]
async fn keys_are_taken_literally_and_deleted_under_their_prefix_only() {
    let (_, backend) = scripted(&[]);
    let names = ["a b", "a%20b", "ä🦀", "a+b", "a~b", "a:b"];
    for name in names {
        let location = place(&format!("s3a://b/t/{name}/f"));
        backend.put_new(&location, DOCUMENT).await.unwrap();
    }
    let neighbour = place("s3://b/tt/f");
    backend.put_new(&neighbour, DOCUMENT).await.unwrap();

    let prefix = place("s3a://b/t/");
    let listed: Vec<FileEntry> = backend.list(&prefix).try_collect().await.unwrap();
    let mut found: Vec<&str> = listed.iter().map(|entry| entry.location.as_str()).collect();
    found.sort_unstable();
    let mut expected: Vec<String> = names.iter().map(|n| format!("s3a://b/t/{n}/f")).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert!(
        listed
            .iter()
            .all(|entry| entry.size == DOCUMENT.len() as u64)
    );

    let keep: Keep = Arc::new(|canonical: &str| canonical == "s3://b/t/a%20b/f");
    let report = backend.delete_under(&prefix, keep).await.unwrap();
    assert_eq!((report.deleted, report.kept), (5, 1));
    let all: Keep = Arc::new(|_: &str| false);
    let report = backend
        .delete_under(&prefix, Arc::clone(&all))
        .await
        .unwrap();
    assert_eq!((report.deleted, report.kept), (1, 0));
    assert_eq!(
        backend.delete_under(&prefix, all).await.unwrap(),
        DeleteReport::default()
    );
    assert_eq!(backend.get(&neighbour, 100).await.unwrap(), DOCUMENT);
    backend.delete(&neighbour).await.unwrap();
    backend.delete(&neighbour).await.unwrap();
    let gone = backend.get(&neighbour, 100).await.unwrap_err();
    assert_eq!(gone.kind(), FileErrorKind::NotFound);
}

#[tokio::test]
async fn reads_are_bounded() {
    let (_, backend) = scripted(&[]);
    let location = place("s3://b/m");
    backend.put_new(&location, DOCUMENT).await.unwrap();
    let size = DOCUMENT.len() as u64;
    assert!(backend.get(&location, size).await.is_ok());
    let refused = backend.get(&location, size - 1).await.unwrap_err();
    assert_eq!(refused.kind(), FileErrorKind::TooLarge);
}
