//! What every kind of store does. Retries and time limits that depend on the store are inside.

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use crate::error::FileError;
use crate::location::Location;

/// A file that a listing found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Where it is, in the spelling of the folder that was listed.
    pub location: Location,
    /// When it was written, by the clock of the store.
    pub last_modified: SystemTime,
    /// Its size in bytes.
    pub size: u64,
}

/// What [`crate::Files::delete_under`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeleteReport {
    /// Files deleted by this call.
    pub deleted: u64,
    /// Files that `keep` asked to keep.
    pub kept: u64,
}

/// Decides by a file's canonical location whether it stays.
pub(crate) type Keep = Arc<dyn Fn(&str) -> bool + Send + Sync>;

#[async_trait]
pub(crate) trait Backend: Send + Sync {
    /// Creates the file or refuses; durable when it returns `Ok`.
    async fn put_new(&self, location: &Location, bytes: Bytes) -> Result<(), FileError>;

    /// The stored bytes, at most `limit_bytes` of them.
    async fn get(&self, location: &Location, limit_bytes: u64) -> Result<Bytes, FileError>;

    /// Deletes the file; fine if there is none.
    async fn delete(&self, location: &Location) -> Result<(), FileError>;

    /// Every file below `prefix`; empty if there is no such folder.
    fn list(&self, prefix: &Location) -> BoxStream<'static, Result<FileEntry, FileError>>;

    /// Deletes every file below `prefix` that isn't kept, and the folders that this leaves empty.
    async fn delete_under(&self, prefix: &Location, keep: Keep) -> Result<DeleteReport, FileError>;

    /// Creates the folders, if the store has folders.
    async fn ensure_folders(&self, folders: &[Location]) -> Result<(), FileError>;
}
