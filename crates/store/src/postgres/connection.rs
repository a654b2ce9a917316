//! Pooled connections: statements prepared once, sent in a row, and thrown away when in doubt.

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
};
use futures::future::{MaybeDone, maybe_done};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, Error, NoTls, Row};

use super::sqlstate;
use crate::error::{ConflictReason, StoreError};

/// A value of a statement.
pub(super) type Parameter<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// One statement with its values.
pub(super) struct Statement<'a> {
    pub sql: Cow<'static, str>,
    pub parameters: Vec<Parameter<'a>>,
}

impl<'a> Statement<'a> {
    pub fn new(sql: impl Into<Cow<'static, str>>, parameters: Vec<Parameter<'a>>) -> Self {
        Statement {
            sql: sql.into(),
            parameters,
        }
    }
}

/// Boxes the values of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as $crate::postgres::connection::Parameter<'_>),*]
    };
}
pub(super) use values;

/// The connections of one store.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    pool: Pool,
    pub statements: Arc<AtomicU64>,
}

impl Connections {
    pub fn new(config: Config, size: usize, wait: Duration) -> Result<Connections, StoreError> {
        let manager = Manager::from_config(
            config,
            NoTls,
            ManagerConfig {
                recycling_method: RecyclingMethod::Fast,
            },
        );
        let pool = Pool::builder(manager)
            .max_size(size.max(1))
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(wait))
            .create_timeout(Some(wait))
            .recycle_timeout(Some(wait))
            .build()
            .map_err(|error| StoreError::Failed {
                detail: error.to_string(),
            })?;
        Ok(Connections {
            pool,
            statements: Arc::new(AtomicU64::new(0)),
        })
    }

    pub async fn get(&self) -> Result<Connection, StoreError> {
        match self.pool.get().await {
            Ok(object) => Ok(Connection {
                object: Some(object),
                is_sound: false,
                statements: Arc::clone(&self.statements),
            }),
            Err(PoolError::Backend(error)) => Err(sqlstate::connecting(&error)),
            Err(error) => Err(StoreError::Unavailable {
                detail: error.to_string(),
            }),
        }
    }
}

/// A connection that is thrown away unless it was found sound at the end.
pub(super) struct Connection {
    object: Option<Object>,
    is_sound: bool,
    statements: Arc<AtomicU64>,
}

impl Connection {
    pub fn client(&self) -> Result<&Object, StoreError> {
        self.object.as_ref().ok_or_else(|| StoreError::Conflict {
            reason: ConflictReason::ConnectionLost,
            detail: "the connection was given up".to_owned(),
        })
    }

    /// Back into the pool, idle and outside of any transaction.
    pub fn give_back(mut self) {
        self.is_sound = true;
    }

    /// Prepares once per connection.
    pub async fn prepare(&self, sql: &str) -> Result<tokio_postgres::Statement, StoreError> {
        let client = self.client()?;
        let prepared = client.prepare_cached(sql).await;
        prepared.map_err(|error| sqlstate::before_commit(&error))
    }

    pub async fn prepare_all(
        &self,
        statements: &[Statement<'_>],
    ) -> Result<Vec<tokio_postgres::Statement>, StoreError> {
        let mut prepared = Vec::with_capacity(statements.len());
        for statement in statements {
            prepared.push(self.prepare(&statement.sql).await?);
        }
        Ok(prepared)
    }

    /// Sends a prepared statement when first polled.
    pub async fn send(
        &self,
        prepared: &tokio_postgres::Statement,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, SendError> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let client = self.client().map_err(SendError::Store)?;
        let references: Vec<&(dyn ToSql + Sync)> = parameters
            .iter()
            .map(|value| value.as_ref() as &(dyn ToSql + Sync))
            .collect();
        let rows = client.query(prepared, &references).await;
        rows.map_err(SendError::Driver)
    }

    /// Sends BEGIN, COMMIT or ROLLBACK when first polled.
    pub async fn control(&self, sql: &str) -> Result<(), SendError> {
        let client = self.client().map_err(SendError::Store)?;
        client.batch_execute(sql).await.map_err(SendError::Driver)
    }

    /// Runs statements that change nothing, all in one round trip.
    pub async fn run(&self, statements: &[Statement<'_>]) -> Result<Vec<Vec<Row>>, StoreError> {
        let prepared = self.prepare_all(statements).await?;
        let answers = self.send_all(&prepared, statements).await.into_iter();
        answers
            .map(|answer| answer.map_err(SendError::before_commit))
            .collect()
    }

    /// BEGIN and statements behind it in one round trip: how it began, and each answer.
    pub async fn run_begun(
        &self,
        begin: &str,
        statements: &[Statement<'_>],
    ) -> Result<(Result<(), SendError>, Vec<Sent>), StoreError> {
        let prepared = self.prepare_all(statements).await?;
        Ok(futures::join!(
            self.control(begin),
            self.send_all(&prepared, statements)
        ))
    }

    async fn send_all(
        &self,
        prepared: &[tokio_postgres::Statement],
        statements: &[Statement<'_>],
    ) -> Vec<Sent> {
        let sent = prepared
            .iter()
            .zip(statements)
            .map(|(prepared, statement)| self.send(prepared, &statement.parameters))
            .collect();
        in_order(sent).await
    }

    /// The same in one database snapshot. A single statement is a snapshot by itself.
    pub async fn run_in_snapshot(
        &self,
        statements: &[Statement<'_>],
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        if statements.len() < 2 {
            return self.run(statements).await;
        }
        let prepared = self.prepare_all(statements).await?;
        let (begun, answers, ended) = futures::join!(
            self.control("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
            self.send_all(&prepared, statements),
            self.control("COMMIT"),
        );
        begun.map_err(SendError::before_commit)?;
        let answers: Result<Vec<_>, _> = answers.into_iter().collect();
        let answers = answers.map_err(SendError::before_commit)?;
        ended.map_err(SendError::before_commit)?;
        Ok(answers)
    }

    /// Runs one statement that commits by itself.
    pub async fn run_committed(&self, statement: Statement<'_>) -> Result<Vec<Row>, StoreError> {
        let prepared = self.prepare(&statement.sql).await?;
        let rows = self.send(&prepared, &statement.parameters).await;
        rows.map_err(SendError::before_pipelined_commit)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.is_sound
            && let Some(object) = self.object.take()
        {
            // Closing it rolls back whatever is open.
            drop(Object::take(object));
        }
    }
}

/// What came of one statement of several.
pub(super) type Sent = Result<Vec<Row>, SendError>;

/// Why something that was to be sent has no answer.
#[derive(Debug)]
pub(super) enum SendError {
    Store(StoreError),
    Driver(Error),
}

impl SendError {
    pub fn before_commit(self) -> StoreError {
        match self {
            SendError::Store(error) => error,
            SendError::Driver(error) => sqlstate::before_commit(&error),
        }
    }

    pub fn before_pipelined_commit(self) -> StoreError {
        match self {
            SendError::Store(error) => error,
            SendError::Driver(error) => sqlstate::before_pipelined_commit(&error),
        }
    }

    pub fn at_commit(self) -> StoreError {
        match self {
            SendError::Store(error) => error,
            SendError::Driver(error) => sqlstate::at_commit(&error),
        }
    }
}

/// Polls all futures in their order, so that the order on the wire is theirs, and waits for all.
pub(super) async fn in_order<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<MaybeDone<F>>>> = futures
        .into_iter()
        .map(|future| Box::pin(maybe_done(future)))
        .collect();
    poll_fn(|context| {
        let mut are_done = true;
        for future in &mut running {
            are_done &= future.as_mut().poll(context).is_ready();
        }
        if are_done {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    let outputs = running.iter_mut();
    outputs
        .filter_map(|future| future.as_mut().take_output())
        .collect()
}
