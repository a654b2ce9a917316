//! Local folders.
//!
//! A file is created directly under its unique final name (`O_EXCL`), written, synced, and then
//! its folder is synced: as few steps as durability allows. A crash in between leaves a part of
//! a file under a name that nothing refers to. A folder counts as durable once its entry and those
//! of all folders above it are synced; this process remembers for which it did that.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use crate::backend::{Backend, DeleteReport, FileEntry, Keep};
use crate::error::{FileError, FileErrorKind};
use crate::gzip::too_large;
use crate::local_walk;
use crate::location::Location;

/// How many folders are remembered as durable before the memory starts anew.
const MAX_REMEMBERED_FOLDERS: usize = 10_000;

#[derive(Clone, Default)]
pub(crate) struct LocalBackend {
    durable_folders: Arc<Mutex<HashSet<PathBuf>>>,
}

#[async_trait]
impl Backend for LocalBackend {
    async fn put_new(&self, location: &Location, bytes: Bytes) -> Result<(), FileError> {
        let backend = self.clone();
        let place = location.clone();
        let outcome = blocking(location, move || backend.create_file(&place, &bytes)).await;
        outcome.unwrap_or_else(|lost| Err(lost.with_maybe_written(true)))
    }

    async fn get(&self, location: &Location, limit_bytes: u64) -> Result<Bytes, FileError> {
        let place = location.clone();
        blocking(location, move || read_file(&place, limit_bytes)).await?
    }

    async fn delete(&self, location: &Location) -> Result<(), FileError> {
        let place = location.clone();
        blocking(location, move || {
            match fs::remove_file(place.local_path()) {
                Err(error) if !is_absent(&error) => Err(FileError::from_io(&place, &error)),
                _ => Ok(()),
            }
        })
        .await?
    }

    fn list(&self, prefix: &Location) -> BoxStream<'static, Result<FileEntry, FileError>> {
        local_walk::list(prefix.clone())
    }

    async fn delete_under(&self, prefix: &Location, keep: Keep) -> Result<DeleteReport, FileError> {
        local_walk::delete_under(prefix, keep).await
    }

    async fn ensure_folders(&self, folders: &[Location]) -> Result<(), FileError> {
        for folder in folders {
            let backend = self.clone();
            let place = folder.clone();
            blocking(folder, move || {
                let path = place.local_path();
                backend
                    .create_folder(&path)
                    .map_err(|error| FileError::from_io(&place, &error))
            })
            .await??;
        }
        Ok(())
    }
}

impl LocalBackend {
    fn create_file(&self, location: &Location, bytes: &[u8]) -> Result<(), FileError> {
        let path = location.local_path();
        let not_written = |error: io::Error| FileError::from_io(location, &error);
        let folder = path
            .parent()
            .ok_or_else(|| FileError::invalid_location(location.as_str(), "it has no folder"))?;
        let file = match open_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.create_folder(folder).map_err(not_written)?;
                open_new(&path).map_err(not_written)?
            }
            opened => opened.map_err(not_written)?,
        };
        let written = write_durably(file, bytes)
            .and_then(|()| sync_folder(folder))
            .and_then(|()| self.make_durable(folder, &[]));
        written.map_err(|error| {
            let removed = fs::remove_file(&path).is_ok();
            FileError::from_io(location, &error).with_maybe_written(!removed)
        })
    }

    /// Creates a folder and those above it, durably.
    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        let mut missing = Vec::new();
        for ancestor in folder.ancestors() {
            match fs::metadata(ancestor) {
                Ok(found) if found.is_dir() => break,
                Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(ancestor),
                Err(error) => return Err(error),
            }
        }
        for path in missing.iter().rev() {
            match fs::create_dir(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => created?,
            }
        }
        self.make_durable(folder, &missing)
    }

    /// Syncs the entry of `folder` and of each folder above it, unless this process did so
    /// before: another one may have created them a moment ago and not be done with it.
    fn make_durable(&self, folder: &Path, created: &[&Path]) -> io::Result<()> {
        if !created.is_empty() {
            let mut durable = self.lock_durable();
            for path in created {
                durable.remove(*path);
            }
        }
        let mut synced = Vec::new();
        for child in folder.ancestors() {
            let Some(parent) = child.parent() else { break };
            if self.lock_durable().contains(child) {
                break;
            }
            match sync_folder(parent) {
                // A folder far above that this process may pass but not read: made by others, long ago.
                Err(error)
                    if error.kind() == io::ErrorKind::PermissionDenied
                        && !created.contains(&child) => {}
                done => done?,
            }
            synced.push(child.to_owned());
        }
        if synced.is_empty() {
            return Ok(());
        }
        let mut durable = self.lock_durable();
        if durable.len() + synced.len() > MAX_REMEMBERED_FOLDERS {
            durable.clear();
        }
        durable.extend(synced);
        Ok(())
    }

    fn lock_durable(&self) -> std::sync::MutexGuard<'_, HashSet<PathBuf>> {
        self.durable_folders
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `work` where it may block. The outer error is a panic or a runtime that is shutting down.
pub(crate) async fn blocking<T: Send + 'static>(
    location: &Location,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, FileError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| FileError::new(FileErrorKind::Other, location.as_str(), error.to_string()))
}

/// No file, or no folder that it could be in.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Syncs a folder's entries. File systems without such a call answer "invalid": nothing to do.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        done => done,
    }
}

fn open_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

fn write_durably(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

fn read_file(location: &Location, limit_bytes: u64) -> Result<Bytes, FileError> {
    let path = location.local_path();
    let failed = |error: io::Error| match is_absent(&error) {
        true => FileError::new(
            FileErrorKind::NotFound,
            location.as_str(),
            error.to_string(),
        ),
        false => FileError::from_io(location, &error),
    };
    // Looked at first: to open a pipe would wait for a writer.
    let found = fs::metadata(&path).map_err(failed)?;
    if !found.is_file() {
        return Err(FileError::invalid_location(
            location.as_str(),
            "it is not a file",
        ));
    }
    if found.len() > limit_bytes {
        return Err(too_large(location, limit_bytes));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or_default());
    File::open(&path)
        .map_err(failed)?
        .take(limit_bytes.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > limit_bytes {
        return Err(too_large(location, limit_bytes));
    }
    Ok(Bytes::from(bytes))
}
