//! The plain way on SQLite: one writer, one transaction per commit, statements prepared once.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use uuid::Uuid;

use super::{CALLERS, Rate};
use crate::failure::Failure;

#[derive(Clone)]
pub struct PlainSqlite {
    writer: Arc<Mutex<Writer>>,
}

struct Writer {
    connection: Connection,
    number: u64,
}

const PARTITION: i64 = super::PLAIN_PARTITION;

impl PlainSqlite {
    /// On a store that is there and empty.
    pub fn open(path: &Path) -> Result<PlainSqlite, Failure> {
        let connection = Connection::open(path)?;
        connection.set_prepared_statement_cache_capacity(16);
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        for caller in 0..CALLERS {
            connection.execute(
                "INSERT INTO current (partition, branch, scope, class, name, kind, object, \
                 version, from_rev, body) VALUES (?1, 0, '', 2, ?2, 10, ?3, 1, 1, '{}')",
                params![PARTITION, super::table_name(caller), caller as i64],
            )?;
        }
        let writer = Writer {
            connection,
            number: 1,
        };
        Ok(PlainSqlite {
            writer: Arc::new(Mutex::new(writer)),
        })
    }

    pub async fn commit_for(&self, callers: usize, turn: Duration) -> Result<Rate, Failure> {
        let started = Instant::now();
        let threads: Vec<_> = (0..callers)
            .map(|caller| {
                let plain = self.clone();
                tokio::task::spawn_blocking(move || plain.commit_until(caller, started + turn))
            })
            .collect();
        let mut done = 0;
        for thread in threads {
            let ended = thread
                .await
                .map_err(|error| Failure::told(error.to_string()))?;
            done += ended?;
        }
        Ok(done as f64 / started.elapsed().as_secs_f64())
    }

    fn commit_until(&self, caller: usize, until: Instant) -> Result<u64, Failure> {
        let mut done = 0;
        while Instant::now() < until {
            let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            writer.commit(&super::table_name(caller))?;
            done += 1;
        }
        Ok(done)
    }
}

impl Writer {
    fn commit(&mut self, table: &str) -> Result<(), Failure> {
        self.number += 1;
        let number = self.number;
        let run = |sql: &str| self.connection.prepare_cached(sql)?.execute(());
        run("BEGIN IMMEDIATE")?;
        let read = "SELECT object, version, from_rev, body FROM current \
             WHERE partition = ?1 AND branch = 0 AND scope = '' AND class = 2 AND name = ?2";
        let (object, before): (i64, String) = self
            .connection
            .prepare_cached(read)?
            .query_row(params![PARTITION, table], |row| {
                Ok((row.get(0)?, row.get(3)?))
            })?;
        let after = super::body(number);
        let write = "UPDATE current SET version = version + 1, from_rev = ?3, body = ?4 \
             WHERE partition = ?1 AND branch = 0 AND scope = '' AND class = 2 AND name = ?2";
        self.connection.prepare_cached(write)?.execute(params![
            PARTITION,
            table,
            number as i64,
            after
        ])?;
        let log = "INSERT INTO change (partition, revision, place, commit_id, at, principal, \
             action, branch, scope, class, name, kind, object, before, after) \
             VALUES (?1, ?2, 0, ?3, 0, 'bench', 2, 0, '', 2, ?4, 10, ?5, ?6, ?7)";
        let commit = Uuid::new_v4();
        self.connection.prepare_cached(log)?.execute(params![
            PARTITION,
            number as i64,
            commit.as_bytes(),
            table,
            object,
            before,
            after
        ])?;
        let record = "INSERT INTO operation (key, principal, fingerprint, state, answer, at, \
             expires) VALUES (?1, 'bench', ?2, 2, ?3, 0, 0)";
        self.connection.prepare_cached(record)?.execute(params![
            format!("plain-{number}"),
            super::FINGERPRINT,
            super::ANSWER
        ])?;
        run("COMMIT")?;
        Ok(())
    }
}
