//! Why a request on the catalog has no outcome.

use anabranch_files::FileError;
use anabranch_partition::{Refusal, RunError};
use thiserror::Error;

/// Told by what the caller can do.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum CatalogError {
    /// Refused, busy, unavailable or unknown.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file can't be read or written; known not applied.
    #[error("{message}")]
    Storage {
        /// One sentence for the caller, without paths that it doesn't know and without secrets.
        message: String,
        /// Whether it may pass: the same request is worth another try.
        may_pass: bool,
    },
}

impl From<Refusal> for CatalogError {
    fn from(refusal: Refusal) -> CatalogError {
        CatalogError::Run(RunError::Refused(refusal))
    }
}

impl CatalogError {
    /// A file that can't be written now: the disk may be emptied, the store may come back.
    pub(crate) fn unwritten(error: &FileError) -> CatalogError {
        tracing::warn!(detail = error.detail(), "a file can't be written");
        CatalogError::Storage {
            message: error.to_string(),
            may_pass: true,
        }
    }

    /// A file that can't be read or deleted: what is lost or damaged stays so.
    pub(crate) fn unreadable(error: &FileError) -> CatalogError {
        tracing::warn!(detail = error.detail(), "a file can't be read or deleted");
        CatalogError::Storage {
            message: error.to_string(),
            may_pass: error.is_retryable(),
        }
    }

    /// A metadata document that is there and doesn't say what it should.
    pub(crate) fn damaged(why: impl std::fmt::Display) -> CatalogError {
        tracing::error!(%why, "a metadata document is damaged");
        CatalogError::Storage {
            message: format!("the metadata document can't be read: {why}"),
            may_pass: false,
        }
    }

    /// The refusal, if it is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            CatalogError::Run(RunError::Refused(refusal)) => Some(refusal),
            _ => None,
        }
    }

    /// Whether a file written for the change may be deleted: only if it is known not applied.
    pub(crate) fn is_known_not_applied(&self) -> bool {
        !matches!(self, CatalogError::Run(RunError::Unknown))
    }
}
