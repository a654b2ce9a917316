//! Opening connections, and the lock file that keeps a second server away.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::error::classify;
use crate::error::StoreError;

const BUSY_TIMEOUT: Duration = Duration::from_millis(1000);
const CACHED_STATEMENTS: usize = 128;
/// What commits touch again and again stays in memory.
const WRITER_CACHE_KIB: i64 = 8 * 1024;
/// Each batch writes the same few pages again: the longer the log, the fewer of its pages have to
/// be copied into the database.
const CHECKPOINT_PAGES: i64 = 8 * 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    /// Write, and make the file if there is none.
    Create,
}

pub(super) fn open(path: &Path, access: Access) -> Result<Connection, StoreError> {
    let flags = match access {
        // A reader of a WAL database writes to the shared index, so it can't be read-only.
        Access::Read | Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        Access::Create => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    };
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|error| unusable(path, &error))?;
    configure(&connection, access).map_err(|error| unusable(path, &error))?;
    Ok(connection)
}

fn configure(connection: &Connection, access: Access) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    // Without it SQLite prepares a statement again whenever a value is bound that could have given
    // it another plan. Every statement here walks an index, whatever the values.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    if access != Access::Read {
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
        connection
            .pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))?;
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    if access == Access::Read {
        connection.pragma_update(None, "query_only", true)?;
    }
    Ok(())
}

fn unusable(path: &Path, error: &rusqlite::Error) -> StoreError {
    StoreError::Unusable {
        message: format!(
            "cannot use {} as a SQLite store ({error}); check that its folder exists, is writable \
             and that the file is a database, or restore it from a backup",
            path.display()
        ),
    }
}

/// Takes `<path>.lock` until the returned file is closed.
pub(super) fn lock_exclusively(path: &Path) -> Result<File, StoreError> {
    let lock_path = beside(path, ".lock");
    let unusable = |why: String| StoreError::Unusable { message: why };
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&lock_path)
        .map_err(|error| {
            unusable(format!(
                "cannot open the lock file {} ({error}); check that its folder exists and is \
                 writable",
                lock_path.display()
            ))
        })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(unusable(format!(
            "{} is in use by another process, which holds {}; stop that one, or give this one a \
             store of its own (several servers share a PostgreSQL store)",
            path.display(),
            lock_path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(unusable(format!(
            "cannot lock {} ({error}); the file system must support file locks",
            lock_path.display()
        ))),
    }
}

/// Fails unless there is room beside the database for as much as a large transaction writes.
pub(super) fn find_room(path: &Path) -> Result<(), StoreError> {
    const BYTES: usize = 1 << 20;
    let probe = beside(path, ".room");
    let written = File::create(&probe).and_then(|mut file| {
        file.write_all(&vec![0; BYTES])?;
        file.sync_all()
    });
    let removed = std::fs::remove_file(&probe);
    written
        .and(removed)
        .map_err(|error| StoreError::Unwritable {
            detail: format!("{}: {error}", probe.display()),
        })
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A consistent copy, a few pages at a time, from one snapshot.
pub(super) fn back_up(path: &Path, target: &Path) -> Result<(), StoreError> {
    const PAGES_PER_STEP: i32 = 256;
    let failed = |error: std::io::Error| StoreError::Failed {
        detail: format!("backup to {}: {error}", target.display()),
    };
    let file = match File::options().write(true).create_new(true).open(target) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(StoreError::Unusable {
                message: format!(
                    "the backup target {} exists already; name a new file or remove that one",
                    target.display()
                ),
            });
        }
        Err(error) => return Err(failed(error)),
    };
    let copied = (|| {
        let source = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        source.busy_timeout(BUSY_TIMEOUT)?;
        // The snapshot stays open: commits during the copy don't start it over.
        source.execute_batch("BEGIN; SELECT count(*) FROM schema_version;")?;
        let mut copy = Connection::open(target)?;
        let backup = rusqlite::backup::Backup::new(&source, &mut copy)?;
        backup.run_to_completion(PAGES_PER_STEP, Duration::ZERO, None)
    })();
    if let Err(error) = copied {
        if let Err(leftover) = std::fs::remove_file(target) {
            tracing::warn!(error = %leftover, target = %target.display(), "half a backup is left");
        }
        return Err(classify(error));
    }
    file.sync_all().map_err(failed)
}
