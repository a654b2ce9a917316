//! Walks through a local folder: listing and deleting what lies below.
//!
//! Every folder is opened relative to the one above it and never through a link, so a link that
//! appears in the middle of a walk can't lead it elsewhere. A link is no file to a listing; a
//! delete removes the link and leaves what it points to alone.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use futures::stream::{self, BoxStream, StreamExt};
use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use tokio::sync::mpsc;

use crate::backend::{DeleteReport, FileEntry, Keep};
use crate::error::FileError;
use crate::local::blocking;
use crate::location::Location;

/// Deepest nesting that is followed; each level holds a file descriptor open.
const MAX_DEPTH: usize = 128;
/// Entries that a listing reads ahead of its consumer.
const LIST_AHEAD: usize = 256;

/// Streams every file below `prefix`. The walk ends when the stream is dropped.
pub(crate) fn list(prefix: Location) -> BoxStream<'static, Result<FileEntry, FileError>> {
    let (sender, receiver) = mpsc::channel(LIST_AHEAD);
    // Not awaited: it ends with its work or with the receiver.
    drop(tokio::task::spawn_blocking(move || {
        let walked = match open_prefix(&prefix) {
            Ok(Some(folder)) => list_folder(&prefix, &folder, prefix.key(), 0, &sender),
            Ok(None) => Ok(()),
            Err(error) => Err(Stop::Failed(error)),
        };
        if let Err(Stop::Failed(error)) = walked {
            let failed = FileError::from_io(&prefix, &io::Error::from(error));
            // A receiver that is gone doesn't want to know.
            let _ = sender.blocking_send(Err(failed));
        }
    }));
    stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|entry| (entry, receiver))
    })
    .boxed()
}

enum Stop {
    Failed(Errno),
    ReceiverGone,
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Self {
        Self::Failed(error)
    }
}

fn list_folder(
    prefix: &Location,
    folder: &OwnedFd,
    key: &str,
    depth: usize,
    sender: &mpsc::Sender<Result<FileEntry, FileError>>,
) -> Result<(), Stop> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        // Locations are text: a name that isn't can't be anyone's table file.
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        if name == "." || name == ".." {
            continue;
        }
        let child_key = format!("{key}/{name}");
        let found = match fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            found => found?,
        };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => {
                if let Some(child) = open_child(folder, name, depth)? {
                    list_folder(prefix, &child, &child_key, depth + 1, sender)?;
                }
            }
            FileType::RegularFile => {
                let entry = FileEntry {
                    location: prefix.listed(&child_key),
                    last_modified: modified(&found),
                    size: u64::try_from(found.st_size).unwrap_or_default(),
                };
                sender
                    .blocking_send(Ok(entry))
                    .map_err(|_| Stop::ReceiverGone)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Deletes below `prefix`; stops soon after the future is dropped. Goes on after an entry that
/// can't be deleted and answers with the first such error at the end.
pub(crate) async fn delete_under(prefix: &Location, keep: Keep) -> Result<DeleteReport, FileError> {
    let place = prefix.clone();
    let cancelled = Arc::new(AtomicBool::new(false));
    let _cancel_on_drop = CancelOnDrop(Arc::clone(&cancelled));
    blocking(prefix, move || {
        let mut deletion = Deletion {
            keep,
            cancelled,
            report: DeleteReport::default(),
            first_error: None,
        };
        deletion.run(&place);
        match deletion.first_error {
            None => Ok(deletion.report),
            Some(error) => Err(FileError::from_io(&place, &io::Error::from(error))),
        }
    })
    .await?
}

struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Deletion {
    keep: Keep,
    cancelled: Arc<AtomicBool>,
    report: DeleteReport,
    first_error: Option<Errno>,
}

impl Deletion {
    fn run(&mut self, prefix: &Location) {
        let folder = match open_prefix(prefix) {
            Ok(Some(folder)) => folder,
            Ok(None) => return,
            Err(error) => return self.note(error),
        };
        self.empty_folder(&folder, &prefix.canonical(), 0);
        drop(folder);
        let path = prefix.local_path();
        let Some(parent) = path.parent() else { return };
        match fs::rmdir(&path) {
            Ok(()) => match fs::open(parent, folder_flags(), Mode::empty()).and_then(fs::fsync) {
                Err(error) if error != Errno::INVAL => self.note(error),
                _ => {}
            },
            Err(error) => self.note_unless_expected(error),
        }
    }

    fn empty_folder(&mut self, folder: &OwnedFd, canonical: &str, depth: usize) {
        let entries = match Dir::read_from(folder) {
            Ok(entries) => entries,
            Err(error) => return self.note(error),
        };
        for entry in entries {
            if self.cancelled.load(Ordering::Relaxed) {
                return self.note(Errno::CANCELED);
            }
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => return self.note(error),
            };
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let child_canonical = format!("{canonical}/{}", name.to_string_lossy());
            match fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(error) => self.note_unless_expected(error),
                Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Directory => {
                    match open_child(folder, name, depth) {
                        Ok(Some(child)) => self.empty_folder(&child, &child_canonical, depth + 1),
                        Ok(None) => {}
                        Err(error) => self.note(error),
                    }
                    if let Err(error) = fs::unlinkat(folder, name, AtFlags::REMOVEDIR) {
                        self.note_unless_expected(error);
                    }
                }
                Ok(_) if (self.keep)(&child_canonical) => self.report.kept += 1,
                Ok(_) => match fs::unlinkat(folder, name, AtFlags::empty()) {
                    Ok(()) => self.report.deleted += 1,
                    Err(error) => self.note_unless_expected(error),
                },
            }
        }
        match fs::fsync(folder) {
            Err(error) if error != Errno::INVAL => self.note(error),
            _ => {}
        }
    }

    /// Gone already, or a folder with something kept in it: both as it should be.
    fn note_unless_expected(&mut self, error: Errno) {
        if !matches!(error, Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) {
            self.note(error);
        }
    }

    fn note(&mut self, error: Errno) {
        self.first_error.get_or_insert(error);
    }
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
}

/// Opens the folder to walk, `None` if there is none. A link in its place is refused.
fn open_prefix(prefix: &Location) -> Result<Option<OwnedFd>, Errno> {
    let flags = folder_flags() | OFlags::NOFOLLOW;
    match fs::open(prefix.local_path(), flags, Mode::empty()) {
        Ok(folder) => Ok(Some(folder)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a folder below, `None` if it went or turned into something else in the meantime.
fn open_child<P: rustix::path::Arg>(
    folder: &OwnedFd,
    name: P,
    depth: usize,
) -> Result<Option<OwnedFd>, Errno> {
    if depth + 1 >= MAX_DEPTH {
        return Err(Errno::NAMETOOLONG);
    }
    let flags = folder_flags() | OFlags::NOFOLLOW;
    match fs::openat(folder, name, flags, Mode::empty()) {
        Ok(child) => Ok(Some(child)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error),
    }
}

fn modified(found: &Stat) -> SystemTime {
    let seconds = u64::try_from(found.st_mtime).unwrap_or_default();
    let nanoseconds = u32::try_from(found.st_mtime_nsec).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds)
}
