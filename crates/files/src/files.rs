//! The handle through which everything above reaches files.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use moka::future::Cache;

use crate::backend::{Backend, DeleteReport, FileEntry};
use crate::error::{FileError, FileErrorKind};
#[cfg(feature = "testing")]
use crate::faults::{Faults, FaultyBackend};
use crate::gzip;
use crate::local::{LocalBackend, blocking};
use crate::location::{Location, Scheme};
use crate::remote::ObjectBackend;
use crate::settings::StorageSettings;

/// Compressed documents from this size on are decompressed off the async threads.
const INLINE_BYTES: usize = 64 * 1024;

/// Limits in time and number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesOptions {
    /// A whole read or a single delete, repetitions included.
    pub read_timeout: Duration,
    /// A whole conditional create, repetitions included.
    pub write_timeout: Duration,
    /// One request to an object store.
    pub request_timeout: Duration,
    /// One attempt to connect to an object store.
    pub connect_timeout: Duration,
    /// Repetitions of a read, listing or delete on an object store.
    pub read_retries: usize,
    /// Attempts of a conditional create on an object store.
    pub write_attempts: u32,
    /// Longest wait before the first repetition; it doubles from there, with jitter.
    pub first_backoff: Duration,
    /// Clients of object stores kept, one for each bucket and settings.
    pub max_clients: u64,
}

impl Default for FilesOptions {
    fn default() -> Self {
        Self {
            read_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(45),
            request_timeout: Duration::from_secs(15),
            connect_timeout: Duration::from_secs(5),
            read_retries: 3,
            write_attempts: 3,
            first_backoff: Duration::from_millis(100),
            max_clients: 64,
        }
    }
}

type ClientKey = (String, Arc<StorageSettings>);

/// The files that one catalog's settings reach. Cheap to clone; all handles made from one by
/// [`Files::with_settings`] share its clients.
#[derive(Clone)]
pub struct Files {
    settings: Arc<StorageSettings>,
    options: Arc<FilesOptions>,
    local: Arc<dyn Backend>,
    clients: Cache<ClientKey, Arc<dyn Backend>>,
    #[cfg(feature = "testing")]
    faults: Option<Faults>,
}

impl Files {
    /// A handle with default settings. One per process; see [`Files::with_settings`].
    pub fn new(options: FilesOptions) -> Self {
        Self {
            settings: Arc::default(),
            clients: Cache::new(options.max_clients),
            options: Arc::new(options),
            local: Arc::new(LocalBackend::default()),
            #[cfg(feature = "testing")]
            faults: None,
        }
    }

    /// The same, for a catalog with these settings.
    pub fn with_settings(&self, settings: &StorageSettings) -> Self {
        Self {
            settings: Arc::new(settings.clone()),
            ..self.clone()
        }
    }

    /// The same, with every call going through `faults` first.
    #[cfg(feature = "testing")]
    pub fn with_faults(&self, faults: Faults) -> Self {
        Self {
            faults: Some(faults),
            ..self.clone()
        }
    }

    /// The settings of this handle.
    pub fn settings(&self) -> &StorageSettings {
        &self.settings
    }

    /// Creates the file with these bytes, or refuses because there is one; never overwrites.
    ///
    /// Durable when it returns `Ok`: on `file`, the file, its folder and every folder above that
    /// was new are synced. Missing folders are created. After an attempt on an object store whose
    /// end is unknown it reads the file back, and finding exactly its own bytes is success: use
    /// names that carry a fresh UUID ([`crate::MetadataName`]), so that they can only be its own.
    /// On an error [`FileError::maybe_written`] says whether something may be left behind. So it
    /// may be after the future was dropped.
    pub async fn put_new(&self, location: &Location, bytes: Bytes) -> Result<(), FileError> {
        let backend = self.backend(location).await?;
        let timeout = self.options.write_timeout;
        match tokio::time::timeout(timeout, backend.put_new(location, bytes)).await {
            Ok(done) => done,
            Err(_) => Err(timed_out(location, timeout).with_maybe_written(true)),
        }
    }

    /// The document at `location`, decompressed if it is stored as gzip. More than `limit_bytes`,
    /// stored or decompressed, is [`FileErrorKind::TooLarge`].
    pub async fn get(&self, location: &Location, limit_bytes: u64) -> Result<Bytes, FileError> {
        let backend = self.backend(location).await?;
        let stored = self
            .in_time(location, backend.get(location, limit_bytes))
            .await?;
        if stored.len() < INLINE_BYTES {
            return gzip::decompress(location, stored, limit_bytes);
        }
        let place = location.clone();
        blocking(location, move || {
            gzip::decompress(&place, stored, limit_bytes)
        })
        .await?
    }

    /// Deletes a file; fine if there is none.
    pub async fn delete(&self, location: &Location) -> Result<(), FileError> {
        let backend = self.backend(location).await?;
        self.in_time(location, backend.delete(location)).await
    }

    /// Deletes every file below `prefix` for which `keep`, asked with its canonical location
    /// ([`Location::canonical`]), says `false`; on `file` also the folders that are empty then, up
    /// to and including `prefix`. Links are removed, never followed; a `prefix` that is itself a
    /// link is refused, and so is a whole bucket.
    ///
    /// Goes on after a file that can't be deleted, and then answers with the first error. Call it
    /// again to resume: nothing is deleted twice. It has no time limit of its own (each request of
    /// an object store has), and stops when the future is dropped.
    pub async fn delete_under(
        &self,
        prefix: &Location,
        keep: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<DeleteReport, FileError> {
        if prefix.key().is_empty() {
            let why = "a whole bucket is never deleted";
            return Err(FileError::invalid_location(prefix.as_str(), why));
        }
        let backend = self.backend(prefix).await?;
        backend.delete_under(prefix, Arc::new(keep)).await
    }

    /// Streams every file below `prefix`, in no promised order; empty if there is no such folder.
    /// On `file`, links and names that aren't text are left out.
    pub fn list(&self, prefix: &Location) -> BoxStream<'static, Result<FileEntry, FileError>> {
        let files = self.clone();
        let prefix = prefix.clone();
        futures::stream::once(async move {
            match files.backend(&prefix).await {
                Ok(backend) => backend.list(&prefix),
                Err(error) => futures::stream::once(async { Err(error) }).boxed(),
            }
        })
        .flatten()
        .boxed()
    }

    /// Creates `metadata` and `data` in a table's location, durably; nothing to do on an object
    /// store. DuckDB writes into these folders and doesn't create them.
    pub async fn ensure_table_folders(&self, table: &Location) -> Result<(), FileError> {
        let folders = [table.join("metadata")?, table.join("data")?];
        let backend = self.backend(table).await?;
        self.in_time(table, backend.ensure_folders(&folders)).await
    }

    async fn in_time<T>(
        &self,
        location: &Location,
        call: impl Future<Output = Result<T, FileError>>,
    ) -> Result<T, FileError> {
        let timeout = self.options.read_timeout;
        match tokio::time::timeout(timeout, call).await {
            Ok(done) => done,
            Err(_) => Err(timed_out(location, timeout)),
        }
    }

    async fn backend(&self, location: &Location) -> Result<Arc<dyn Backend>, FileError> {
        let backend = match location.scheme() {
            Scheme::File => Arc::clone(&self.local),
            Scheme::S3 => self.client(location.bucket()).await?,
        };
        #[cfg(feature = "testing")]
        if let Some(faults) = &self.faults {
            return Ok(Arc::new(FaultyBackend::new(backend, faults.clone())));
        }
        Ok(backend)
    }

    async fn client(&self, bucket: &str) -> Result<Arc<dyn Backend>, FileError> {
        let key = (bucket.to_owned(), Arc::clone(&self.settings));
        let connect = async {
            let client = ObjectBackend::connect(bucket, &self.settings, &self.options)?;
            Ok(Arc::new(client) as Arc<dyn Backend>)
        };
        self.clients
            .try_get_with(key, connect)
            .await
            .map_err(|error: Arc<FileError>| Arc::unwrap_or_clone(error))
    }
}

fn timed_out(location: &Location, timeout: Duration) -> FileError {
    let detail = format!("no answer within {timeout:?}");
    FileError::new(FileErrorKind::TimedOut, location.as_str(), detail)
}
