//! Why a command was not accepted, told by what the caller can do.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What kind of thing a refusal is about; the protocols name their errors after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Subject {
    /// A metalake.
    Metalake,
    /// A catalog.
    Catalog,
    /// A database or nested namespace.
    Namespace,
    /// A table.
    Table,
    /// A view.
    View,
    /// A branch of a database.
    Branch,
    /// A tag of a database.
    Tag,
}

/// The reason, by what the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// Mend the input (400).
    InvalidInput,
    /// The named thing isn't there (404).
    NotFound(Subject),
    /// The name is taken (409); the subject is what takes it.
    AlreadyExists(Subject),
    /// Empty it first (409).
    NotEmpty(Subject),
    /// A requirement on the current state doesn't hold; read again and decide anew (409).
    Conflict,
    /// The named reference never changes (403).
    ReadOnly(Subject),
    /// The operation key was used for another request (422).
    KeyReused,
    /// The asked-for state isn't kept any more (410).
    Gone,
}

/// A final, known-not-applied answer to a command; recorded under its operation key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// One sentence in plain words that names the field or thing and the remedy.
    pub message: String,
    /// What a program may want to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl Refusal {
    /// A refusal without details.
    pub fn new(reason: Reason, message: impl Into<String>) -> Refusal {
        Refusal {
            reason,
            message: message.into(),
            details: None,
        }
    }

    /// The input has to be mended.
    pub fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::new(Reason::InvalidInput, message)
    }
}
