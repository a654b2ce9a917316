//! Why a request on the catalog has no outcome.

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
    },
}

impl From<Refusal> for CatalogError {
    fn from(refusal: Refusal) -> CatalogError {
        CatalogError::Run(RunError::Refused(refusal))
    }
}

impl CatalogError {
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
