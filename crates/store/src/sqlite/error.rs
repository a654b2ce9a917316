//! SQLite's result codes in the words of [`StoreError`].

use rusqlite::ErrorCode;
use rusqlite::ffi;

use crate::error::{ConflictReason, StoreError};

/// An error of any call but COMMIT: known not applied.
pub(super) fn classify(error: rusqlite::Error) -> StoreError {
    let detail = error.to_string();
    let rusqlite::Error::SqliteFailure(failure, _) = &error else {
        return StoreError::Failed { detail };
    };
    let reason = match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => ConflictReason::LockTimeout,
        ErrorCode::ConstraintViolation if is_unique(failure.extended_code) => {
            ConflictReason::UniqueKey
        }
        ErrorCode::DiskFull | ErrorCode::ReadOnly => return StoreError::Unwritable { detail },
        ErrorCode::SystemIoFailure if is_write(failure.extended_code) => {
            return StoreError::Unwritable { detail };
        }
        _ => return StoreError::Failed { detail },
    };
    StoreError::Conflict { reason, detail }
}

fn is_unique(extended_code: i32) -> bool {
    matches!(
        extended_code,
        ffi::SQLITE_CONSTRAINT_UNIQUE
            | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
            | ffi::SQLITE_CONSTRAINT_ROWID
    )
}

/// A write beyond a quota or a limit, not one whose sync failed: that may be on the disk.
fn is_write(extended_code: i32) -> bool {
    matches!(
        extended_code,
        ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_TRUNCATE | ffi::SQLITE_IOERR_SHMSIZE
    )
}

/// The writer or a reader isn't there any more; nothing was applied.
pub(super) fn gone() -> StoreError {
    StoreError::Unavailable {
        detail: "the thread of the database connection has ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classified(code: i32) -> StoreError {
        classify(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None))
    }

    #[test]
    fn a_disk_that_takes_no_more_is_told_from_a_defect_and_from_a_sync_that_failed() {
        for code in [
            ffi::SQLITE_FULL,
            ffi::SQLITE_IOERR_WRITE,
            ffi::SQLITE_READONLY,
        ] {
            let error = classified(code);
            assert!(
                matches!(error, StoreError::Unwritable { .. }),
                "{code}: {error}"
            );
        }
        for code in [
            ffi::SQLITE_IOERR_FSYNC,
            ffi::SQLITE_CORRUPT,
            ffi::SQLITE_ERROR,
        ] {
            let error = classified(code);
            assert!(
                matches!(error, StoreError::Failed { .. }),
                "{code}: {error}"
            );
        }
    }
}
