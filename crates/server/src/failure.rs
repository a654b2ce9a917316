//! How the program ends when it can't do what it was asked to.

use std::fmt;

use anabranch_store::StoreError;

use crate::out;

/// One line for the operator, and the exit status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    message: String,
    status: u8,
}

impl Failure {
    /// What the operator has to mend before the program can work: exit status 2. The message says
    /// what, where and how to mend it.
    pub fn setup(message: impl Into<String>) -> Failure {
        Failure {
            message: message.into(),
            status: 2,
        }
    }

    /// What went wrong while working: exit status 1.
    pub fn work(message: impl Into<String>) -> Failure {
        Failure {
            message: message.into(),
            status: 1,
        }
    }

    /// A store that can't be used, where the store is.
    pub fn store(error: &StoreError, place: &str) -> Failure {
        match error {
            StoreError::Unusable { message } => Failure::setup(message.clone()),
            other => Failure::setup(format!(
                "{place}: {other}; check the setting `store` and that its database runs"
            )),
        }
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        self.status
    }
}

impl fmt::Display for Failure {
    /// Always one line, safe for a terminal.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.message.split_whitespace().collect();
        formatter.write_str(&out::escaped(&words.join(" ")))
    }
}
