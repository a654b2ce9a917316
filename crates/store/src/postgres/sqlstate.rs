//! What an SQLSTATE means for the caller: the one table.
//!
//! Before COMMIT was sent, nothing can have been applied. Once COMMIT may be on the wire, only the
//! codes of an allow-list say so; whatever isn't on it is [`StoreError::Unknown`].

use std::error::Error as _;

use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::error::{ConflictReason, StoreError};

/// An error of anything that was sent before COMMIT.
pub(super) fn before_commit(error: &Error) -> StoreError {
    let detail = describe(error);
    if let Some(database) = error.as_db_error() {
        return classify(database.code(), detail);
    }
    let is_io = error
        .source()
        .is_some_and(|source| source.is::<std::io::Error>());
    if error.is_closed() || is_io {
        return conflict(ConflictReason::ConnectionLost, detail);
    }
    StoreError::Failed { detail }
}

/// An error of a statement behind which COMMIT was sent without waiting, or of a statement that
/// commits by itself. If the server refused just this statement, its transaction is over.
pub(super) fn before_pipelined_commit(error: &Error) -> StoreError {
    match error.as_db_error() {
        Some(database) if is_statement_error(database) => before_commit(error),
        _ => at_commit(error),
    }
}

/// An error of COMMIT itself.
pub(super) fn at_commit(error: &Error) -> StoreError {
    let detail = describe(error);
    match error.as_db_error() {
        Some(database) if is_known_not_applied(database.code()) => {
            classify(database.code(), detail)
        }
        _ => StoreError::Unknown { detail },
    }
}

/// An error of connecting, or of waiting for a connection.
pub(super) fn connecting(error: &Error) -> StoreError {
    StoreError::Unavailable {
        detail: describe(error),
    }
}

/// Whether a concurrent start explains the error, so that starting again helps.
pub(super) fn is_concurrent_start(error: &Error) -> bool {
    error.code().is_some_and(|code| {
        [
            SqlState::UNIQUE_VIOLATION,
            SqlState::DUPLICATE_TABLE,
            SqlState::DUPLICATE_OBJECT,
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::INTERNAL_ERROR,
        ]
        .contains(code)
    })
}

fn classify(code: &SqlState, detail: String) -> StoreError {
    if *code == SqlState::T_R_SERIALIZATION_FAILURE {
        return conflict(ConflictReason::Serialization, detail);
    }
    if *code == SqlState::T_R_DEADLOCK_DETECTED {
        return conflict(ConflictReason::Deadlock, detail);
    }
    if *code == SqlState::LOCK_NOT_AVAILABLE {
        return conflict(ConflictReason::LockTimeout, detail);
    }
    if *code == SqlState::UNIQUE_VIOLATION {
        return conflict(ConflictReason::UniqueKey, detail);
    }
    if *code == SqlState::TOO_MANY_CONNECTIONS || *code == SqlState::CANNOT_CONNECT_NOW {
        return StoreError::Unavailable { detail };
    }
    if *code == SqlState::DISK_FULL {
        return StoreError::Unwritable { detail };
    }
    let is_connection_gone = [
        SqlState::QUERY_CANCELED,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
    ]
    .contains(code)
        || code.code() == TRANSACTION_TIMEOUT
        || code.code().starts_with(CONNECTION_CLASS);
    if is_connection_gone {
        return conflict(ConflictReason::ConnectionLost, detail);
    }
    StoreError::Failed { detail }
}

/// `transaction_timeout` of PostgreSQL 17.
const TRANSACTION_TIMEOUT: &str = "25P04";
const CONNECTION_CLASS: &str = "08";

/// Codes with which COMMIT certainly applied nothing. Not among them: 40003 (completion unknown),
/// class 08 (connection), class 57 (shutdown), class XX (a defect of the server).
fn is_known_not_applied(code: &SqlState) -> bool {
    const CLASSES: &[&str] = &[
        "22", // data
        "23", // constraints, deferred ones too
        "25", // transaction state
        "42", // syntax and names
        "53", // no memory, no disk
        "54", // limits
    ];
    const CODES: &[&str] = &[
        "40000", // rolled back
        "40001", // serialization
        "40002", // constraint at commit
        "40P01", // deadlock
        "55P03", // lock timeout
    ];
    let code = code.code();
    CODES.contains(&code) || CLASSES.iter().any(|class| code.starts_with(class))
}

fn is_statement_error(error: &DbError) -> bool {
    error.parsed_severity() == Some(Severity::Error)
        && *error.code() != SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
}

fn conflict(reason: ConflictReason, detail: String) -> StoreError {
    StoreError::Conflict { reason, detail }
}

fn describe(error: &Error) -> String {
    match error.as_db_error() {
        Some(database) => format!("{}: {}", database.code().code(), database.message()),
        None => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_codes_are_determinate_at_commit() {
        for code in [
            "40001", "40P01", "23505", "23503", "55P03", "25P02", "53100",
        ] {
            assert!(is_known_not_applied(&SqlState::from_code(code)), "{code}");
        }
        for code in [
            "40003", "08006", "08007", "57P01", "57P02", "57014", "XX000", "58030",
        ] {
            assert!(!is_known_not_applied(&SqlState::from_code(code)), "{code}");
        }
    }

    #[test]
    fn lost_races_are_told_apart() {
        let reason = |code: &str| match classify(&SqlState::from_code(code), String::new()) {
            StoreError::Conflict { reason, .. } => Some(reason),
            _ => None,
        };
        assert_eq!(reason("40001"), Some(ConflictReason::Serialization));
        assert_eq!(reason("40P01"), Some(ConflictReason::Deadlock));
        assert_eq!(reason("55P03"), Some(ConflictReason::LockTimeout));
        assert_eq!(reason("23505"), Some(ConflictReason::UniqueKey));
        for code in [
            "57014", "25P03", "25P04", "57P01", "57P02", "08003", "08006",
        ] {
            assert_eq!(reason(code), Some(ConflictReason::ConnectionLost), "{code}");
        }
        for code in ["22012", "42601", "53100", "25P02", "XX000"] {
            assert_eq!(reason(code), None, "{code}");
        }
        let full = classify(&SqlState::DISK_FULL, String::new());
        assert!(matches!(full, StoreError::Unwritable { .. }), "{full}");
    }
}
