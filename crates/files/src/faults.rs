//! Faults at chosen calls, for tests of the layers above.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use tokio::sync::Semaphore;

use crate::backend::{Backend, DeleteReport, FileEntry, Keep};
use crate::error::{FileError, FileErrorKind};
use crate::location::Location;

/// A call of [`crate::Files`] that faults can be put on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultCall {
    /// `put_new`
    PutNew,
    /// `get`, also through a [`crate::MetadataCache`]
    Get,
    /// `delete`
    Delete,
    /// `list`
    List,
    /// `delete_under`
    DeleteUnder,
    /// `ensure_table_folders`
    EnsureFolders,
}

/// What happens at a call.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Fails and does nothing.
    FailBefore(FileErrorKind),
    /// Does it and then fails as if it hadn't: the lost answer. On `PutNew`, `maybe_written` is true.
    FailAfter(FileErrorKind),
    /// Waits, then does it. Use with tokio's paused clock.
    DelayBefore(Duration),
    /// Does it, then waits.
    DelayAfter(Duration),
    /// Waits at the gate, then does it.
    HoldBefore(FaultGate),
    /// Does it, then waits at the gate.
    HoldAfter(FaultGate),
}

/// A place where a call waits until the test lets it go on.
#[derive(Debug, Clone)]
pub struct FaultGate {
    arrived: Arc<Semaphore>,
    opened: Arc<Semaphore>,
}

impl Default for FaultGate {
    fn default() -> Self {
        Self {
            arrived: Arc::new(Semaphore::new(0)),
            opened: Arc::new(Semaphore::new(0)),
        }
    }
}

impl FaultGate {
    /// Waits until a call has arrived; each arrival answers one wait.
    pub async fn arrived(&self) {
        pass(&self.arrived).await;
    }

    /// Lets one call go on, whether it has arrived or not.
    pub fn open(&self) {
        self.opened.add_permits(1);
    }

    async fn wait(&self) {
        self.arrived.add_permits(1);
        pass(&self.opened).await;
    }
}

async fn pass(semaphore: &Semaphore) {
    // The semaphore is never closed.
    if let Ok(permit) = semaphore.acquire().await {
        permit.forget();
    }
}

#[derive(Default)]
struct Plan {
    calls: HashMap<FaultCall, u64>,
    planned: Vec<(FaultCall, Option<u64>, Fault)>,
}

/// Plans faults and counts calls. Clones share both.
#[derive(Clone, Default)]
pub struct Faults {
    plan: Arc<Mutex<Plan>>,
}

impl Faults {
    /// No faults yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts `fault` on the `nth` call of its kind from the start, counted from 1.
    pub fn on_nth(&self, call: FaultCall, nth: u64, fault: Fault) {
        self.lock().planned.push((call, Some(nth), fault));
    }

    /// Puts `fault` on the next call of its kind.
    pub fn on_next(&self, call: FaultCall, fault: Fault) {
        let nth = self.calls(call) + 1;
        self.on_nth(call, nth, fault);
    }

    /// Puts `fault` on every call of its kind, until [`Faults::clear`].
    pub fn on_every(&self, call: FaultCall, fault: Fault) {
        self.lock().planned.push((call, None, fault));
    }

    /// Takes all faults away; the counts stay.
    pub fn clear(&self) {
        self.lock().planned.clear();
    }

    /// How many calls of this kind have been made.
    pub fn calls(&self, call: FaultCall) -> u64 {
        self.lock().calls.get(&call).copied().unwrap_or_default()
    }

    fn meet(&self, call: FaultCall) -> Vec<Fault> {
        let mut plan = self.lock();
        let count = plan.calls.entry(call).or_default();
        *count += 1;
        let number = *count;
        plan.planned
            .iter()
            .filter(|(kind, nth, _)| *kind == call && nth.is_none_or(|nth| nth == number))
            .map(|(_, _, fault)| fault.clone())
            .collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct FaultyBackend {
    inner: Arc<dyn Backend>,
    faults: Faults,
}

impl FaultyBackend {
    pub(crate) fn new(inner: Arc<dyn Backend>, faults: Faults) -> Self {
        Self { inner, faults }
    }

    async fn around<T>(
        &self,
        call: FaultCall,
        location: &Location,
        work: impl Future<Output = Result<T, FileError>>,
    ) -> Result<T, FileError> {
        let faults = self.faults.meet(call);
        before(&faults, location).await?;
        let done = work.await;
        for fault in &faults {
            match fault {
                Fault::FailAfter(kind) => {
                    let lost = injected(*kind, location);
                    return Err(lost.with_maybe_written(call == FaultCall::PutNew));
                }
                Fault::DelayAfter(delay) => tokio::time::sleep(*delay).await,
                Fault::HoldAfter(gate) => gate.wait().await,
                _ => {}
            }
        }
        done
    }
}

async fn before(faults: &[Fault], location: &Location) -> Result<(), FileError> {
    for fault in faults {
        match fault {
            Fault::FailBefore(kind) => return Err(injected(*kind, location)),
            Fault::DelayBefore(delay) => tokio::time::sleep(*delay).await,
            Fault::HoldBefore(gate) => gate.wait().await,
            _ => {}
        }
    }
    Ok(())
}

fn injected(kind: FileErrorKind, location: &Location) -> FileError {
    FileError::new(kind, location.as_str(), "injected fault")
}

#[async_trait]
impl Backend for FaultyBackend {
    async fn put_new(&self, location: &Location, bytes: Bytes) -> Result<(), FileError> {
        let work = self.inner.put_new(location, bytes);
        self.around(FaultCall::PutNew, location, work).await
    }

    async fn get(&self, location: &Location, limit_bytes: u64) -> Result<Bytes, FileError> {
        let work = self.inner.get(location, limit_bytes);
        self.around(FaultCall::Get, location, work).await
    }

    async fn delete(&self, location: &Location) -> Result<(), FileError> {
        let work = self.inner.delete(location);
        self.around(FaultCall::Delete, location, work).await
    }

    fn list(&self, prefix: &Location) -> BoxStream<'static, Result<FileEntry, FileError>> {
        let faults = self.faults.meet(FaultCall::List);
        let lost = faults.iter().find_map(|fault| match fault {
            Fault::FailAfter(kind) => Some(Err(injected(*kind, prefix))),
            _ => None,
        });
        let listed = self.inner.list(prefix).chain(futures::stream::iter(lost));
        let place = prefix.clone();
        futures::stream::once(async move {
            match before(&faults, &place).await {
                Ok(()) => listed.boxed(),
                Err(error) => futures::stream::once(async { Err(error) }).boxed(),
            }
        })
        .flatten()
        .boxed()
    }

    async fn delete_under(&self, prefix: &Location, keep: Keep) -> Result<DeleteReport, FileError> {
        let work = self.inner.delete_under(prefix, keep);
        self.around(FaultCall::DeleteUnder, prefix, work).await
    }

    async fn ensure_folders(&self, folders: &[Location]) -> Result<(), FileError> {
        let Some(first) = folders.first() else {
            return Ok(());
        };
        let work = self.inner.ensure_folders(folders);
        self.around(FaultCall::EnsureFolders, first, work).await
    }
}
