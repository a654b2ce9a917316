//! Answers, as they are given and as operation records keep them.

use anabranch_store::{Answer, BranchId, OperationRecord, Read, Revision, StoreTime};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::RunError;
use crate::executor::{OperationKey, Partitions};
use crate::refusal::{Reason, Refusal};

/// The outcome of an accepted command.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted<T> {
    /// What the command answered.
    pub outcome: T,
    /// The revision of its changes; the one of the first time if it is replayed.
    pub revision: Revision,
    /// The branch whose map it changed.
    pub branch: BranchId,
    /// Whether this is the recorded answer of an earlier, equal request.
    pub replayed: bool,
}

/// The record of an operation, as it may be shown.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedOperation {
    /// Who asked.
    pub principal: String,
    /// A digest of what was asked.
    pub fingerprint: String,
    /// When it was recorded.
    pub at: StoreTime,
    /// What was answered.
    pub answer: RecordedAnswer,
}

/// What a recorded operation was answered.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedAnswer {
    /// It was accepted, with this outcome.
    Outcome(Value),
    /// It was refused.
    Refused(Refusal),
}

impl Partitions {
    /// What is recorded under an operation key, with the scope that it is unique in.
    pub async fn recorded(&self, key: &str) -> Result<Option<RecordedOperation>, RunError> {
        let read = [Read::Operation(key.to_owned())];
        let Some(Answer::Operation(Some(record))) = self.read(&read).await?.pop() else {
            return Ok(None);
        };
        let answer = match serde_json::from_str::<Recorded>(&record.answer) {
            Ok(Recorded::Outcome { outcome, .. }) => RecordedAnswer::Outcome(outcome),
            Ok(Recorded::Refused(refusal)) => RecordedAnswer::Refused(refusal),
            Err(error) => {
                tracing::error!(%error, key, "operation record can't be read");
                return Err(RunError::Failed);
            }
        };
        Ok(Some(RecordedOperation {
            principal: record.principal,
            fingerprint: record.fingerprint,
            at: record.at,
            answer,
        }))
    }
}

/// What an operation record keeps.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Recorded {
    Outcome {
        outcome: Value,
        revision: Revision,
        #[serde(default)]
        branch: BranchId,
    },
    Refused(Refusal),
}

pub(crate) type Reply = Result<Accepted<Value>, RunError>;

impl Recorded {
    pub(crate) fn of(reply: &Reply) -> Option<Recorded> {
        match reply {
            Ok(accepted) => Some(Recorded::Outcome {
                outcome: accepted.outcome.clone(),
                revision: accepted.revision,
                branch: accepted.branch,
            }),
            Err(RunError::Refused(refusal)) => Some(Recorded::Refused(refusal.clone())),
            Err(_) => None,
        }
    }
}

/// The answer to a request whose key has a record.
pub(crate) fn replay(record: &OperationRecord, key: &OperationKey, principal: &str) -> Reply {
    if record.fingerprint != key.fingerprint || record.principal != principal {
        return Err(RunError::Refused(Refusal::new(
            Reason::KeyReused,
            "the idempotency key was used for another request; send a fresh key with a new request",
        )));
    }
    match serde_json::from_str::<Recorded>(&record.answer) {
        Ok(Recorded::Outcome {
            outcome,
            revision,
            branch,
        }) => Ok(Accepted {
            outcome,
            revision,
            branch,
            replayed: true,
        }),
        Ok(Recorded::Refused(refusal)) => Err(RunError::Refused(refusal)),
        Err(error) => {
            tracing::error!(%error, key = record.key, "operation record can't be read");
            Err(RunError::Failed)
        }
    }
}
