//! Why a document can't be read, and why a commit is refused.

use thiserror::Error;

/// Why a metadata document can't be read.
///
/// Of a document that a client registers this is the client's mistake; of one that the catalog stored itself it is
/// damage.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MetadataError {
    /// Not JSON, or not the shape of a metadata document. The message names the field.
    #[error("malformed metadata: {message}")]
    Malformed {
        /// What is wrong, with the name of the field.
        message: String,
    },
    /// The document is well-formed but contradicts itself, e.g. the current schema isn't among the schemas.
    #[error("inconsistent metadata: {message}")]
    Inconsistent {
        /// What contradicts what.
        message: String,
    },
    /// Arrays and objects are nested deeper than a reader should have to follow.
    #[error("malformed metadata: nested deeper than {limit} levels")]
    TooDeep {
        /// The number of levels that are accepted.
        limit: usize,
    },
    /// A format version that this crate doesn't know.
    #[error("unsupported format-version {found}, versions 1 to {newest} are supported")]
    UnsupportedFormatVersion {
        /// The version that the document names.
        found: i64,
        /// The newest version that is understood.
        newest: u8,
    },
    /// Version 1 documents may lack a `table-uuid`; read those with
    /// [`crate::TableMetadata::from_json_with_uuid`].
    #[error("the metadata has no table-uuid")]
    MissingUuid,
}

/// Why a commit is refused, by what its sender can do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UpdateError {
    /// The request can never succeed as it is: change it. HTTP 400.
    #[error("{message}")]
    Invalid {
        /// What is wrong, with the name of the field and the remedy.
        message: String,
    },
    /// A stated requirement doesn't hold: reload, and build the commit anew. HTTP 409, `CommitFailedException`.
    #[error("{message}")]
    RequirementFailed {
        /// What was required and what was found.
        message: String,
    },
    /// No requirement was stated, but the commit was built on metadata that has since moved on: reload and retry.
    /// HTTP 409, `CommitFailedException`.
    #[error("{message}")]
    Conflict {
        /// What moved on.
        message: String,
    },
    /// The table was to be created and is there already. HTTP 409, `AlreadyExistsException`.
    #[error("{message}")]
    AlreadyExists {
        /// What is there already.
        message: String,
    },
    /// The commit needs a table or view that isn't there. HTTP 404.
    #[error("{message}")]
    NotFound {
        /// What is missing.
        message: String,
    },
}

impl UpdateError {
    pub(crate) fn invalid(message: impl Into<String>) -> UpdateError {
        UpdateError::Invalid {
            message: message.into(),
        }
    }

    pub(crate) fn conflict(message: impl Into<String>) -> UpdateError {
        UpdateError::Conflict {
            message: message.into(),
        }
    }

    pub(crate) fn requirement_failed(message: impl Into<String>) -> UpdateError {
        UpdateError::RequirementFailed {
            message: message.into(),
        }
    }
}

/// A JSON value that hasn't the shape it must have; the message names the object and the field.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub(crate) struct ShapeError(pub(crate) String);

impl From<ShapeError> for MetadataError {
    fn from(error: ShapeError) -> MetadataError {
        MetadataError::Malformed { message: error.0 }
    }
}

impl From<ShapeError> for UpdateError {
    fn from(error: ShapeError) -> UpdateError {
        UpdateError::Invalid { message: error.0 }
    }
}
