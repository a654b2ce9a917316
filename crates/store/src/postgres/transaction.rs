//! Partitions held on one connection, and the commit in one round trip.

use std::borrow::Cow;

use async_trait::async_trait;
use tokio_postgres::Row;
use uuid::Uuid;

use super::connection::{Connection, Parameter, SendError, Statement, values};
use super::options::LockMode;
use super::reads::Plan;
use super::{log, rows, writes};
use crate::codec;
use crate::entry::Key;
use crate::error::{ConflictReason, StoreError};
use crate::interface::Transaction;
use crate::partition::{PartitionId, PartitionRow};
use crate::read::{Answer, At, Read};
use crate::revision::{CommitId, Revision, StoreTime};
use crate::write::WriteSet;

// The clock is read outside of the materialised part, above an aggregate: after the last row was
// locked. Nothing but the locked rows may be read here: what else a statement reads is as old as
// its start, however long it waited.
const LOCK: &str = "WITH held AS MATERIALIZED (\
         SELECT id, parent, state, clock, last_commit, last_revision, horizon FROM partition \
         WHERE id = ANY ($1) ORDER BY id FOR UPDATE) \
     SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8, array_agg(id), \
         array_agg(parent), array_agg(state), array_agg(clock), array_agg(last_commit), \
         array_agg(last_revision), array_agg(horizon) FROM held";
const LOOK: &str = "WITH held AS MATERIALIZED (\
         SELECT id, parent, state, clock, last_commit, last_revision, horizon FROM partition \
         WHERE id = ANY ($1) ORDER BY id) \
     SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8, array_agg(id), \
         array_agg(parent), array_agg(state), array_agg(clock), array_agg(last_commit), \
         array_agg(last_revision), array_agg(horizon) FROM held";

pub(super) struct PostgresTransaction {
    connection: Connection,
    mode: LockMode,
    now: StoreTime,
    held: Vec<PartitionRow>,
    /// PostgreSQL refused a statement: its COMMIT would be a ROLLBACK.
    has_failed: bool,
}

impl PostgresTransaction {
    /// BEGIN, the lock and the reads behind it in one round trip. Each statement sees what was
    /// committed when PostgreSQL came to it, the reads so what stood once the lock was there.
    pub async fn begin(
        connection: Connection,
        mode: LockMode,
        partitions: &[PartitionId],
        reads: &[Read],
    ) -> Result<(PostgresTransaction, Vec<Answer>), StoreError> {
        let begin = match mode {
            LockMode::Optimistic => "BEGIN ISOLATION LEVEL REPEATABLE READ",
            _ => "BEGIN ISOLATION LEVEL READ COMMITTED",
        };
        let mut plan = Plan::new(At::Latest, reads);
        let mut statements = vec![Statement::new(hold(mode), ids_of(partitions))];
        statements.append(&mut plan.statements);
        let (begun, sent) = connection.run_begun(begin, &statements).await?;
        begun.map_err(SendError::before_commit)?;
        let mut answers = Vec::with_capacity(sent.len());
        for answer in sent {
            match answer {
                Ok(rows) => answers.push(rows),
                Err(error) => {
                    let error = error.before_commit();
                    // A lost race leaves the connection as it was; anything else throws it away.
                    if error.is_retryable() && connection.control("ROLLBACK").await.is_ok() {
                        connection.give_back();
                    }
                    return Err(error);
                }
            }
        }
        let (now, held) = held_rows(&answers.remove(0))?;
        let answers = plan.answers(&answers)?;
        let transaction = PostgresTransaction {
            connection,
            mode,
            now,
            held,
            has_failed: false,
        };
        Ok((transaction, answers))
    }

    async fn run(&mut self, statements: &[Statement<'_>]) -> Result<Vec<Vec<Row>>, StoreError> {
        // Stays set if the caller gives up half-way.
        let had_failed = std::mem::replace(&mut self.has_failed, true);
        let answers = self.connection.run(statements).await?;
        self.has_failed = had_failed;
        Ok(answers)
    }

    /// The held rows to write: the changed ones, or, where writing is the lock, all of them.
    fn rows_to_write<'w>(
        &self,
        writes: &'w WriteSet,
    ) -> Result<Cow<'w, [PartitionRow]>, StoreError> {
        let is_held = |id: PartitionId| self.held.iter().any(|row| row.id == id);
        if let Some(stranger) = writes.partitions.iter().find(|row| !is_held(row.id)) {
            return Err(StoreError::Failed {
                detail: format!("the write set changes {:?}, which isn't held", stranger.id),
            });
        }
        if self.mode != LockMode::Optimistic {
            return Ok(Cow::Borrowed(&writes.partitions));
        }
        let changed = |id: PartitionId| writes.partitions.iter().find(|row| row.id == id);
        let guarded = self.held.iter();
        let guarded = guarded.map(|row| changed(row.id).unwrap_or(row).clone());
        Ok(Cow::Owned(guarded.collect()))
    }
}

fn hold(mode: LockMode) -> &'static str {
    match mode {
        LockMode::Pessimistic => LOCK,
        _ => LOOK,
    }
}

fn ids_of(partitions: &[PartitionId]) -> Vec<Parameter<'static>> {
    let ids: Vec<i64> = partitions.iter().map(|partition| partition.0).collect();
    values![ids]
}

fn held_rows(found: &[Row]) -> Result<(StoreTime, Vec<PartitionRow>), StoreError> {
    let Some(row) = found.first() else {
        return Err(codec::unreadable("no row", "of held partitions"));
    };
    let now = StoreTime(rows::get(row, 0)?);
    let longs = |index: usize| rows::get::<Option<Vec<i64>>>(row, index);
    let Some(ids) = longs(1)? else {
        return Ok((now, Vec::new()));
    };
    let parents = longs(2)?.unwrap_or_default();
    let states: Vec<i16> = rows::get::<Option<_>>(row, 3)?.unwrap_or_default();
    let clocks = longs(4)?.unwrap_or_default();
    let commits: Vec<Uuid> = rows::get::<Option<_>>(row, 5)?.unwrap_or_default();
    let revisions = longs(6)?.unwrap_or_default();
    let horizons = longs(7)?.unwrap_or_default();
    let mut held = Vec::with_capacity(ids.len());
    for (index, id) in ids.iter().enumerate() {
        held.push(PartitionRow {
            id: PartitionId(*id),
            parent: PartitionId(parents[index]),
            state: codec::partition_state(i64::from(states[index]))?,
            clock: Revision(clocks[index]),
            last_commit: CommitId(commits[index]),
            last_revision: Revision(revisions[index]),
            horizon: Revision(horizons[index]),
        });
    }
    Ok((now, held))
}

#[async_trait]
impl Transaction for PostgresTransaction {
    fn now(&self) -> StoreTime {
        self.now
    }

    fn partitions(&self) -> &[PartitionRow] {
        &self.held
    }

    async fn lock(&mut self, more: &[PartitionId]) -> Result<(), StoreError> {
        let statement = Statement::new(hold(self.mode), ids_of(more));
        let found = self.run(&[statement]).await?;
        let (now, rows) = held_rows(found.first().map(Vec::as_slice).unwrap_or_default())?;
        self.now = now;
        self.held.extend(rows);
        Ok(())
    }

    async fn read(&mut self, at: At, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
        let plan = Plan::new(at, reads);
        let rows = self.run(&plan.statements).await?;
        plan.answers(&rows)
    }

    async fn changed_since(
        &mut self,
        partition: PartitionId,
        revision: Revision,
        commit: CommitId,
    ) -> Result<Option<Vec<Key>>, StoreError> {
        let statement = log::changed_since(partition, revision, commit);
        let rows = self.run(&[statement]).await?;
        log::changed_keys(rows.first().map(Vec::as_slice).unwrap_or_default())
    }

    async fn holds_commit(
        &mut self,
        partition: PartitionId,
        revision: Revision,
        commit: CommitId,
    ) -> Result<bool, StoreError> {
        let statement = log::holds_commit(partition, revision, commit);
        let rows = self.run(&[statement]).await?;
        match rows.first().and_then(|rows| rows.first()) {
            Some(row) => rows::get(row, 0),
            None => Ok(false),
        }
    }

    /// The writes and COMMIT in one round trip. PostgreSQL answers the COMMIT of a transaction
    /// with a failed statement with ROLLBACK and no error; so success is that every statement of
    /// the transaction succeeded, and COMMIT too.
    async fn commit(self: Box<Self>, writes: &WriteSet) -> Result<(), StoreError> {
        if self.has_failed {
            return Err(StoreError::Failed {
                detail: "a statement of this transaction failed or was given up".to_owned(),
            });
        }
        let partitions = self.rows_to_write(writes)?;
        let connection = self.connection;
        let Some(statement) = writes::statement(&partitions, writes) else {
            connection
                .control("COMMIT")
                .await
                .map_err(|error| error.at_commit())?;
            connection.give_back();
            return Ok(());
        };
        let prepared = connection.prepare(&statement.sql).await?;
        if connection.client()?.is_closed() {
            // Nothing was sent yet: a transaction that idled too long, for instance.
            return Err(StoreError::Conflict {
                reason: ConflictReason::ConnectionLost,
                detail: "the connection was closed before COMMIT was sent".to_owned(),
            });
        }
        let (written, ended) = futures::join!(
            connection.send(&prepared, &statement.parameters),
            connection.control("COMMIT"),
        );
        let outcome = match (written, ended) {
            (Ok(_), Ok(())) => Ok(()),
            (Ok(_), Err(error)) => return Err(error.at_commit()),
            (Err(error), Ok(())) => Err(error.before_pipelined_commit()),
            (Err(error), Err(_)) => return Err(error.before_pipelined_commit()),
        };
        if !matches!(outcome, Err(StoreError::Unknown { .. })) {
            connection.give_back();
        }
        outcome
    }

    async fn rollback(self: Box<Self>) {
        if self.connection.control("ROLLBACK").await.is_ok() {
            self.connection.give_back();
        }
    }
}
