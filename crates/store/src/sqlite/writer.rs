//! The one writer: a thread that owns the write connection, and the gate in front of it.
//!
//! Whoever passes the gate has the write connection to itself until it lets go of its [`Turn`].
//! Work is sent as closures and runs in the order in which it was sent.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::connection::find_room;
use super::error::gone;
use super::rows::Db;
use crate::error::{ConflictReason, StoreError};

type Job = Box<dyn FnOnce(Db<'_>) + Send>;

/// The async side of the writer thread.
#[derive(Debug)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
    gate: Arc<Semaphore>,
    wait: Duration,
    /// The disk took no write, and none was tried since by [`Writer::check`].
    is_refused: Arc<AtomicBool>,
}

impl Writer {
    pub fn start(
        connection: Connection,
        statements: Arc<AtomicU64>,
        wait: Duration,
    ) -> std::io::Result<Writer> {
        let (jobs, queue) = mpsc::channel::<Job>();
        std::thread::Builder::new()
            .name("anabranch-sqlite-writer".to_owned())
            .spawn(move || {
                for job in queue {
                    job(Db {
                        connection: &connection,
                        statements: &statements,
                    });
                }
            })?;
        Ok(Writer {
            jobs,
            gate: Arc::new(Semaphore::new(1)),
            wait,
            is_refused: Arc::default(),
        })
    }

    /// Waits in line for the write connection.
    pub async fn turn(&self) -> Result<Turn, StoreError> {
        let permit = tokio::time::timeout(self.wait, Arc::clone(&self.gate).acquire_owned());
        match permit.await {
            Ok(Ok(permit)) => Ok(Turn {
                jobs: self.jobs.clone(),
                is_open: false,
                is_refused: Arc::clone(&self.is_refused),
                _permit: permit,
            }),
            Ok(Err(_)) => Err(gone()),
            Err(_) => Err(StoreError::Conflict {
                reason: ConflictReason::LockTimeout,
                detail: format!("the writer was busy for {:?}", self.wait),
            }),
        }
    }

    /// One short transaction of its own.
    pub async fn transact<T: Send + 'static>(
        &self,
        work: impl FnOnce(Db<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let turn = self.turn().await?;
        let is_refused = Arc::clone(&turn.is_refused);
        let lost = || StoreError::Unknown {
            detail: "the writer thread ended before it answered".to_owned(),
        };
        let ended = turn.call(move |db| {
            db.control("BEGIN IMMEDIATE")?;
            match work(db) {
                Ok(done) => commit(db).map(|()| done),
                Err(error) => {
                    roll_back(db);
                    Err(error)
                }
            }
        });
        let ended = ended.await.unwrap_or_else(|_| Err(lost()));
        note(&is_refused, &ended);
        ended
    }

    /// Whether the disk takes writes. Tried only if it took none the last time: what succeeds on a
    /// full disk wrote nothing, or fitted where something was written before.
    pub async fn check(&self, database: &Path) -> Result<(), StoreError> {
        if !self.is_refused.load(Ordering::Relaxed) {
            return Ok(());
        }
        let database = database.to_owned();
        let write = move |db: Db<'_>| {
            find_room(&database)?;
            // Nobody reads this number; SQLite writes it also if it is the same.
            db.control("PRAGMA user_version = 0")
        };
        self.transact(write).await?;
        self.is_refused.store(false, Ordering::Relaxed);
        Ok(())
    }
}

/// The write connection, held. Dropping it rolls back what is open.
pub(super) struct Turn {
    jobs: mpsc::Sender<Job>,
    /// Whether a transaction may be open at the end of the queue.
    pub is_open: bool,
    is_refused: Arc<AtomicBool>,
    // Given back after the rollback was sent: fields drop after `Drop::drop`.
    _permit: OwnedSemaphorePermit,
}

/// The thread ended before it answered.
pub(super) struct NoAnswer;

impl Turn {
    pub async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(Db<'_>) -> T + Send + 'static,
    ) -> Result<T, NoAnswer> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |db| {
            // Whoever asked may have given up: the drop of its turn cleans up behind this job.
            let _ = answer.send(work(db));
        });
        self.jobs.send(job).map_err(|_| NoAnswer)?;
        answered.await.map_err(|_| NoAnswer)
    }

    /// Remembers if the disk took no write.
    pub fn note<T>(&self, ended: &Result<T, StoreError>) {
        note(&self.is_refused, ended);
    }
}

fn note<T>(is_refused: &AtomicBool, ended: &Result<T, StoreError>) {
    if matches!(ended, Err(StoreError::Unwritable { .. })) {
        is_refused.store(true, Ordering::Relaxed);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.is_open {
            // If the thread is gone, so is its connection, and with it the transaction.
            let _ = self.jobs.send(Box::new(roll_back));
        }
    }
}

pub(super) fn roll_back(db: Db<'_>) {
    if !db.connection.is_autocommit()
        && let Err(error) = db.control("ROLLBACK")
    {
        tracing::error!(%error, "could not roll back");
    }
}

/// COMMIT. After an error SQLite itself says whether the transaction is still open. It is given up
/// where a write failed: what would end it isn't whole in the log, so nothing was applied.
pub(super) fn commit(db: Db<'_>) -> Result<(), StoreError> {
    let Err(error) = db.control("COMMIT") else {
        return Ok(());
    };
    if !db.connection.is_autocommit() {
        roll_back(db);
        return Err(error);
    }
    match error {
        StoreError::Unwritable { .. } => Err(error),
        other => Err(StoreError::Unknown {
            detail: other.to_string(),
        }),
    }
}
