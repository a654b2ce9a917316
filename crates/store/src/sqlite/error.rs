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

/// The writer or a reader isn't there any more; nothing was applied.
pub(super) fn gone() -> StoreError {
    StoreError::Unavailable {
        detail: "the thread of the database connection has ended".to_owned(),
    }
}
