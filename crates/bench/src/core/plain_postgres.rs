//! The plain way on PostgreSQL: one transaction per commit, statements prepared once, one after
//! the other.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio_postgres::{Client, Statement};
use uuid::Uuid;

use super::{CALLERS, Rate, drive};
use crate::database::connect;
use crate::failure::Failure;

const PARTITION: i64 = super::PLAIN_PARTITION;

/// What a commit locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The partition's row: commits to one namespace are serial.
    Partition,
    /// The table's row: commits to different tables are parallel.
    Row,
}

pub struct PlainPostgres {
    connections: Vec<Connection>,
    number: AtomicI64,
}

struct Connection {
    client: Client,
    lock_partition: Statement,
    move_clock: Statement,
    read: Statement,
    lock_row: Statement,
    write: Statement,
    log: Statement,
    record: Statement,
}

const READ: &str = "SELECT object, version, body FROM current \
     WHERE partition = $1 AND branch = 0 AND scope = '' AND class = 2 AND name = $2";

impl Connection {
    async fn open(url: &str) -> Result<Connection, Failure> {
        let client = connect(url).await?;
        Ok(Connection {
            lock_partition: client
                .prepare("SELECT clock FROM partition WHERE id = $1 FOR UPDATE")
                .await?,
            move_clock: client
                .prepare("UPDATE partition SET clock = $2 WHERE id = $1")
                .await?,
            read: client.prepare(READ).await?,
            lock_row: client.prepare(&format!("{READ} FOR UPDATE")).await?,
            write: client
                .prepare(
                    "UPDATE current SET version = version + 1, from_rev = $3, body = $4 \
                     WHERE partition = $1 AND branch = 0 AND scope = '' AND class = 2 \
                     AND name = $2",
                )
                .await?,
            log: client
                .prepare(
                    "INSERT INTO change (partition, revision, place, commit_id, at, principal, \
                     action, branch, scope, class, name, kind, object, before, after) \
                     VALUES ($1, $2, 0, $3, 0, 'bench', 2, 0, '', 2, $4, 10, $5, $6, $7)",
                )
                .await?,
            record: client
                .prepare(
                    "INSERT INTO operation (key, principal, fingerprint, state, answer, at, \
                     expires) VALUES ($1, 'bench', $2, 2, $3, 0, 0)",
                )
                .await?,
            client,
        })
    }

    async fn commit(&self, hold: Hold, table: &str, number: i64) -> Result<(), Failure> {
        let client = &self.client;
        client.batch_execute("BEGIN").await?;
        let read = match hold {
            Hold::Partition => {
                client
                    .query_one(&self.lock_partition, &[&PARTITION])
                    .await?;
                &self.read
            }
            Hold::Row => &self.lock_row,
        };
        let row = client.query_one(read, &[&PARTITION, &table]).await?;
        let (object, before): (i64, String) = (row.get(0), row.get(2));
        let after = super::body(number.unsigned_abs());
        if hold == Hold::Partition {
            client
                .execute(&self.move_clock, &[&PARTITION, &number])
                .await?;
        }
        client
            .execute(&self.write, &[&PARTITION, &table, &number, &after])
            .await?;
        client
            .execute(
                &self.log,
                &[
                    &PARTITION,
                    &number,
                    &Uuid::new_v4(),
                    &table,
                    &object,
                    &before,
                    &after,
                ],
            )
            .await?;
        client
            .execute(
                &self.record,
                &[
                    &format!("plain-{number}"),
                    &super::FINGERPRINT,
                    &super::ANSWER,
                ],
            )
            .await?;
        client.batch_execute("COMMIT").await?;
        Ok(())
    }
}

impl PlainPostgres {
    /// On a store that is there and empty.
    pub async fn open(url: &str, connections: usize) -> Result<PlainPostgres, Failure> {
        let client = connect(url).await?;
        client
            .execute(
                "INSERT INTO partition (id, parent, state, clock, last_commit, last_revision, \
                 horizon) VALUES ($1, $1, 1, 0, $2, 0, 0)",
                &[&PARTITION, &Uuid::nil()],
            )
            .await?;
        for caller in 0..CALLERS {
            client
                .execute(
                    "INSERT INTO current (partition, branch, scope, class, name, kind, object, \
                     version, from_rev, body) VALUES ($1, 0, '', 2, $2, 10, $3, 1, 1, '{}')",
                    &[&PARTITION, &super::table_name(caller), &(caller as i64)],
                )
                .await?;
        }
        let opened = (0..connections).map(|_| Connection::open(url));
        Ok(PlainPostgres {
            connections: futures::future::try_join_all(opened).await?,
            number: AtomicI64::new(1),
        })
    }

    pub async fn commit_for(
        &self,
        hold: Hold,
        callers: usize,
        turn: Duration,
    ) -> Result<Rate, Failure> {
        drive(callers, turn, async |caller| {
            let number = self.number.fetch_add(1, Ordering::Relaxed);
            let connection = &self.connections[caller];
            connection
                .commit(hold, &super::table_name(caller), number)
                .await
        })
        .await
    }
}
