//! Decoded immutable documents in bounded memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use moka::future::Cache;
use thiserror::Error;

use crate::error::FileError;
use crate::files::Files;
use crate::local::blocking;
use crate::location::{Location, Scheme};
use crate::settings::StorageSettings;

/// Documents from this size on are parsed off the async threads.
const INLINE_BYTES: usize = 128 * 1024;

/// What a decoded document weighs for each byte of its text: the text, what is kept of it as text
/// again, and what was read out. `anabranch-bench rest` shows the memory that follows.
const HELD_PER_BYTE: u64 = 3;
/// What every document weighs besides: its key, its fields and its place in the cache.
const HELD_BESIDES: u64 = 1024;

/// Why a document couldn't be had. Nothing is remembered of it: the next call tries again.
#[derive(Debug, Clone, Error)]
pub enum LoadError<E> {
    /// It couldn't be read.
    #[error(transparent)]
    File(FileError),
    /// It was read, and isn't what the parser wants.
    #[error(transparent)]
    Parse(E),
}

/// What a cache did so far and holds now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Calls that were answered from memory, or by a load that another call had begun.
    pub hits: u64,
    /// Loads begun.
    pub misses: u64,
    /// Documents held (approximate).
    pub entries: u64,
    /// Weight held in bytes (approximate).
    pub weight: u64,
}

/// A document is known by where it is and through which settings it was read: two catalogs may
/// have different stores, or different rights, behind one URL.
type Key = (Location, Arc<StorageSettings>);

struct Held<T> {
    document: Arc<T>,
    weight: u32,
}

impl<T> Clone for Held<T> {
    fn clone(&self) -> Self {
        Self {
            document: Arc::clone(&self.document),
            weight: self.weight,
        }
    }
}

/// A memory of decoded documents that never change once written (metadata files, by name). No
/// more than the given weight, each document loaded once however many ask for it at one time.
pub struct MetadataCache<T> {
    files: Files,
    held: Cache<Key, Held<T>>,
    limit_bytes: u64,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl<T: Send + Sync + 'static> MetadataCache<T> {
    /// A cache of at most `max_weight` bytes of memory, by what decoded documents take, that
    /// refuses documents of more than `limit_bytes`.
    pub fn new(files: Files, max_weight: u64, limit_bytes: u64) -> Self {
        let held = Cache::builder()
            .weigher(|_: &Key, held: &Held<T>| held.weight)
            .max_capacity(max_weight)
            .build();
        Self {
            files,
            held,
            limit_bytes,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// The document at `location`, from memory, or read and parsed. Calls for one document that
    /// come while it is being loaded wait for that load and share its outcome, an error too.
    pub async fn get_or_load<E, F>(
        &self,
        location: &Location,
        settings: &StorageSettings,
        parse: F,
    ) -> Result<Arc<T>, Arc<LoadError<E>>>
    where
        E: std::error::Error + Send + Sync + 'static,
        F: FnOnce(&Bytes) -> Result<T, E> + Send + 'static,
    {
        let mut loaded_here = false;
        let load = async {
            loaded_here = true;
            self.misses.fetch_add(1, Ordering::Relaxed);
            self.load(location, settings, parse).await
        };
        let held = self
            .held
            .try_get_with(key(location, settings), load)
            .await?;
        if !loaded_here {
            self.hits.fetch_add(1, Ordering::Relaxed);
        }
        Ok(held.document)
    }

    /// Puts a document in that this server has just written, with the size of its text in bytes.
    pub async fn insert(
        &self,
        location: &Location,
        settings: &StorageSettings,
        document: Arc<T>,
        size: u64,
    ) {
        let held = Held {
            document,
            weight: weight_of(size),
        };
        self.held.insert(key(location, settings), held).await;
    }

    /// Forgets a document, because its file is deleted or another one took its place.
    pub async fn invalidate(&self, location: &Location, settings: &StorageSettings) {
        self.held.invalidate(&key(location, settings)).await;
    }

    /// Counters since the start, and what is held now.
    pub fn stats(&self) -> CacheStats {
        CacheStats {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            entries: self.held.entry_count(),
            weight: self.held.weighted_size(),
        }
    }

    /// Does what the memory has put off, so that [`MetadataCache::stats`] is exact.
    pub async fn settle(&self) {
        self.held.run_pending_tasks().await;
    }

    async fn load<E, F>(
        &self,
        location: &Location,
        settings: &StorageSettings,
        parse: F,
    ) -> Result<Held<T>, LoadError<E>>
    where
        E: Send + 'static,
        F: FnOnce(&Bytes) -> Result<T, E> + Send + 'static,
    {
        let files = self.files.with_settings(settings);
        let bytes = files
            .get(location, self.limit_bytes)
            .await
            .map_err(LoadError::File)?;
        let weight = weight_of(bytes.len() as u64);
        let parsed = match bytes.len() < INLINE_BYTES {
            true => parse(&bytes),
            false => blocking(location, move || parse(&bytes))
                .await
                .map_err(LoadError::File)?,
        };
        Ok(Held {
            document: Arc::new(parsed.map_err(LoadError::Parse)?),
            weight,
        })
    }
}

/// Local files are the same through any settings.
fn key(location: &Location, settings: &StorageSettings) -> Key {
    let settings = match location.scheme() {
        Scheme::File => StorageSettings::default(),
        Scheme::S3 => settings.clone(),
    };
    (location.clone(), Arc::new(settings))
}

fn weight_of(size: u64) -> u32 {
    let weight = size
        .saturating_mul(HELD_PER_BYTE)
        .saturating_add(HELD_BESIDES);
    u32::try_from(weight).unwrap_or(u32::MAX)
}
