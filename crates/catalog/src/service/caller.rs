//! Who asks, and what they get back besides the value.

use std::time::Duration;

use anabranch_partition::{Accepted, Command, OperationKey, RecordedOperation, Request, RunError};
use anabranch_store::{BranchState, PartitionId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::CatalogError;
use crate::reference::body::state_name;
use crate::service::{Catalog, Core};

/// Who asks for a change, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The principal; `anonymous` if none is known.
    pub principal: String,
    /// The `Idempotency-Key` of the request, if it has one.
    pub idempotency_key: Option<String>,
    /// A digest of everything the request asks for: method, path and body. With it a request is
    /// recognised when it comes again.
    pub fingerprint: String,
    /// How long the request may wait in this server.
    pub patience: Duration,
}

impl Caller {
    /// The server itself, in a background job.
    pub(crate) fn server() -> Caller {
        Caller {
            principal: "anabranch".to_owned(),
            idempotency_key: None,
            fingerprint: String::new(),
            patience: Duration::from_secs(60),
        }
    }

    pub(crate) fn operation(&self) -> Option<OperationKey> {
        self.idempotency_key.as_ref().map(|key| OperationKey {
            key: operation_key(key),
            fingerprint: self.fingerprint.clone(),
        })
    }
}

/// A value together with the state of the reference that it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed<T> {
    /// The value.
    pub value: T,
    /// What the header `Anabranch-Revision` says.
    pub revision: String,
}

impl Core {
    /// Runs a command for a caller, under the caller's operation key.
    pub(crate) async fn run<C: Command>(
        &self,
        caller: &Caller,
        partitions: Vec<PartitionId>,
        command: C,
    ) -> Result<Accepted<C::Outcome>, RunError> {
        self.partitions
            .run(Request {
                command,
                partitions,
                principal: caller.principal.clone(),
                operation: caller.operation(),
                patience: caller.patience,
            })
            .await
    }

    /// The answer to a mutation that was tried. A refusal may have been found before any lock was
    /// held: under the request's key it is recorded now, unless an earlier answer stands there,
    /// which is given instead.
    pub(crate) async fn answer<T: DeserializeOwned>(
        &self,
        caller: &Caller,
        tried: Result<Changed<T>, CatalogError>,
    ) -> Result<Changed<T>, CatalogError> {
        match tried {
            Err(error) => earlier(self.refuse(caller, error).await?),
            changed => changed,
        }
    }

    /// Records a refusal under the request's key, if it has one. `Ok` is an earlier, accepted
    /// answer that stands under the key.
    pub(crate) async fn refuse(
        &self,
        caller: &Caller,
        error: CatalogError,
    ) -> Result<Accepted<Value>, CatalogError> {
        let Some(refusal) = error.refusal() else {
            return Err(error);
        };
        if caller.idempotency_key.is_none() {
            return Err(error);
        }
        let command = crate::command::Refuse {
            refusal: refusal.clone(),
        };
        Ok(self.run(caller, Vec::new(), command).await?)
    }
}

impl Catalog {
    /// What is recorded under an `Idempotency-Key`; `None` if nothing is (any more).
    pub async fn operation(&self, key: &str) -> Result<Option<RecordedOperation>, CatalogError> {
        Ok(self.core.partitions.recorded(&operation_key(key)).await?)
    }
}

/// Callers' keys are told from those that are derived from ids inside a request.
fn operation_key(key: &str) -> String {
    format!("key/{key}")
}

/// What an earlier request under the same key was answered.
fn earlier<T: DeserializeOwned>(accepted: Accepted<Value>) -> Result<Changed<T>, CatalogError> {
    let revision = state_of(&accepted);
    match serde_json::from_value(accepted.outcome) {
        Ok(value) => Ok(Changed { value, revision }),
        Err(error) => {
            tracing::error!(%error, "a recorded answer has another shape than its command's");
            Err(RunError::Failed.into())
        }
    }
}

/// A value with the revision that its change got.
pub(crate) fn changed<T, O>(value: T, accepted: &Accepted<O>) -> Changed<T> {
    Changed {
        value,
        revision: state_of(accepted),
    }
}

/// The state that a change brought its branch to.
fn state_of<O>(accepted: &Accepted<O>) -> String {
    state_name(BranchState {
        branch: accepted.branch,
        revision: accepted.revision,
    })
}
