//! The core's command interface against one SQL transaction per commit on the same engine, in
//! turns: 32 callers on 32 tables of one namespace, and one alone.
//!
//! A commit of either side reads a row, writes its new version, a line of the change log and an
//! operation record, on the same schema. Ours also keeps the version that ended and moves the
//! partition's clock; the plain way does less, so the ratios are on the careful side.

mod ours;
mod plain_postgres;
mod plain_sqlite;
mod proxy;

use std::time::{Duration, Instant};

use clap::ValueEnum;

use crate::database::{self, Database};
use crate::failure::Failure;
use crate::report::{Report, ratios};
use crate::table::{Output, Table, progress};
use crate::{machine, server};

use self::ours::Ours;
use self::plain_postgres::{Hold, PlainPostgres};
use self::plain_sqlite::PlainSqlite;
use self::proxy::Proxy;

/// Callers and tables.
const CALLERS: usize = 32;
const CONNECTIONS: usize = 16;
/// The digest of a request, as long as a real one.
const FINGERPRINT: &str = "5df6e0e2761359d30a8275058e299fcc0381534545f55cf43e41983f5d4c9456";
/// What an operation record of the plain way keeps.
const ANSWER: &str = r#"{"outcome":{"outcome":1,"revision":1}}"#;
/// Any partition of the plain way.
const PLAIN_PARTITION: i64 = 4 << 60 | 1;

fn table_name(caller: usize) -> String {
    format!("table-{caller}")
}

/// What a table's row holds, about as long as a real one.
fn body(number: u64) -> String {
    format!(
        r#"{{"metadataLocation":"file:///warehouse/lake/bench/table/metadata/{number:05}-0190a6e8.metadata.json","uuid":"0190a6e8-7d3b-7c44-9d3e-1f2a3b4c5d6e"}}"#
    )
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    Sqlite,
    Postgres,
    PostgresOptimistic,
    /// All three.
    All,
}

/// Options of `core`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Which engine.
    #[arg(long, value_enum, default_value = "all")]
    store: Engine,
    /// How long each side of each comparison runs, all rounds together.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// How often the sides take turns; ratios are the median of the rounds.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// A PostgreSQL in which databases may be made.
    #[arg(long, env = "ANABRANCH_TEST_POSTGRES", value_name = "URL")]
    postgres: Option<String>,
}

impl Options {
    fn turn(&self) -> Duration {
        Duration::from_secs_f64(self.seconds / self.rounds.max(1) as f64)
    }
}

/// Runs the measurement and prints its tables.
pub async fn run(options: &Options, output: Output) -> Result<(), Failure> {
    let is_wanted = |engine| options.store == engine || options.store == Engine::All;
    let postgres = options.postgres.as_deref();
    let with_postgres = is_wanted(Engine::Postgres) || is_wanted(Engine::PostgresOptimistic);
    machine::print(output, postgres.filter(|_| with_postgres)).await?;
    if is_wanted(Engine::Sqlite) {
        sqlite(options).await?.print(output);
    }
    for (engine, mode) in [
        (Engine::Postgres, "pessimistic"),
        (Engine::PostgresOptimistic, "optimistic"),
    ] {
        if !is_wanted(engine) {
            continue;
        }
        match postgres {
            Some(url) => self::postgres(options, url, mode).await?.print(output),
            None if options.store == Engine::All => {
                progress("no --postgres: the PostgreSQL engines are left out");
                break;
            }
            None => return Err(Failure::told("this engine needs --postgres URL")),
        }
    }
    Ok(())
}

/// Commits per second.
pub type Rate = f64;

/// Runs callers that each commit to a table of their own until the time is up.
pub async fn drive(
    callers: usize,
    turn: Duration,
    commit: impl AsyncFn(usize) -> Result<(), Failure>,
) -> Result<Rate, Failure> {
    let started = Instant::now();
    let until = started + turn;
    let runs = (0..callers).map(|caller| {
        let commit = &commit;
        async move {
            let mut done = 0_u64;
            while Instant::now() < until {
                commit(caller).await?;
                done += 1;
            }
            Ok::<u64, Failure>(done)
        }
    });
    let done: u64 = futures::future::try_join_all(runs).await?.iter().sum();
    Ok(done as f64 / started.elapsed().as_secs_f64())
}

fn title(engine: &str) -> String {
    format!("core on {engine}: ratios, and counts per commit")
}

async fn sqlite(options: &Options) -> Result<Table, Failure> {
    let folder = server::folder()?;
    let url = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    let ours = Ours::new(database::open(&url("ours.db"), CONNECTIONS).await?).await?;
    // The plain way uses the same schema.
    drop(database::open(&url("plain.db"), CONNECTIONS).await?);
    let plain = PlainSqlite::open(&folder.path().join("plain.db"))?;
    ours.commit_for(CALLERS, options.turn() / 2).await?;
    plain.commit_for(1, options.turn() / 2).await?;
    let (mut together, mut serial) = (Vec::new(), Vec::new());
    let (mut alone, mut plain_alone) = (Vec::new(), Vec::new());
    for round in 0..options.rounds {
        progress(&format!(
            "sqlite, round {} of {}",
            round + 1,
            options.rounds
        ));
        together.push(ours.commit_for(CALLERS, options.turn()).await?);
        serial.push(plain.commit_for(CALLERS, options.turn()).await?);
        alone.push(ours.commit_for(1, options.turn() / 2).await?);
        plain_alone.push(plain.commit_for(1, options.turn() / 2).await?);
    }
    let mut report = Report::new(title("sqlite, synchronous = FULL"));
    // The plain way is fastest with a single caller: there is one writer, and nobody to wait for.
    let best: Vec<f64> = serial
        .iter()
        .zip(&plain_alone)
        .map(|(a, b)| a.max(*b))
        .collect();
    report.at_least(
        "32 callers: rate against serial",
        5.0,
        &ratios(&together, &best),
    );
    report.at_most(
        "alone: time against the plain way",
        1.3,
        &ratios(&plain_alone, &alone),
    );
    counts(&mut report, &ours).await?;
    report.rates(&[
        ("ours", &together),
        ("serial", &best),
        ("alone", &alone),
        ("plain alone", &plain_alone),
    ]);
    Ok(report.table)
}

async fn postgres(options: &Options, server: &str, mode: &str) -> Result<Table, Failure> {
    let (ours_database, plain_database) = (
        Database::create(server).await?,
        Database::create(server).await?,
    );
    let done = postgres_on(options, &ours_database, &plain_database, mode).await;
    ours_database.remove().await?;
    plain_database.remove().await?;
    done
}

async fn postgres_on(
    options: &Options,
    ours: &Database,
    plain: &Database,
    mode: &str,
) -> Result<Table, Failure> {
    let store_url = ours.url_in_mode(mode);
    let ours = Ours::new(database::open(&store_url, CONNECTIONS).await?).await?;
    drop(database::open(&plain.url(), 1).await?);
    let plain = PlainPostgres::open(&plain.url(), CALLERS).await?;
    ours.commit_for(CALLERS, options.turn() / 2).await?;
    plain
        .commit_for(Hold::Row, CALLERS, options.turn() / 2)
        .await?;
    plain
        .commit_for(Hold::Partition, CALLERS, options.turn() / 2)
        .await?;
    let (mut together, mut serial, mut parallel) = (Vec::new(), Vec::new(), Vec::new());
    let (mut alone, mut plain_alone) = (Vec::new(), Vec::new());
    for round in 0..options.rounds {
        progress(&format!(
            "postgres {mode}, round {} of {}",
            round + 1,
            options.rounds
        ));
        together.push(ours.commit_for(CALLERS, options.turn()).await?);
        serial.push(
            plain
                .commit_for(Hold::Partition, CALLERS, options.turn())
                .await?,
        );
        parallel.push(plain.commit_for(Hold::Row, CALLERS, options.turn()).await?);
        alone.push(ours.commit_for(1, options.turn() / 2).await?);
        plain_alone.push(
            plain
                .commit_for(Hold::Partition, 1, options.turn() / 2)
                .await?,
        );
    }
    let mut report = Report::new(title(&format!("postgres, {mode}")));
    report.at_least(
        "32 callers: rate against serial",
        8.0,
        &ratios(&together, &serial),
    );
    report.at_least(
        "32 callers: rate against row locks",
        2.0,
        &ratios(&together, &parallel),
    );
    report.at_most(
        "alone: time against the plain way",
        1.3,
        &ratios(&plain_alone, &alone),
    );
    counts(&mut report, &ours).await?;
    let proxy = Proxy::start(&store_url).await?;
    let distant = Ours::new(database::open(&proxy.url, 1).await?).await?;
    let trips = distant.round_trips(&proxy).await?;
    report.at_most("round trips of a commit alone", 3.0, &[trips]);
    report.rates(&[
        ("ours", &together),
        ("serial", &serial),
        ("row locks", &parallel),
        ("alone", &alone),
        ("plain alone", &plain_alone),
    ]);
    Ok(report.table)
}

/// Statements, BEGIN and COMMIT not counted.
async fn counts(report: &mut Report, ours: &Ours) -> Result<(), Failure> {
    if ours.is_embedded() {
        // Statements of an embedded engine are calls of functions: no bar, and no round trips.
        return Ok(());
    }
    let load = ours.statements_of_a_load().await?;
    report.at_most("statements of a load", 1.0, &[load]);
    let alone = ours.statements_of_commits(1).await?;
    report.at_most("statements of a commit alone", 6.0, &[alone]);
    let together = ours.statements_of_commits(CALLERS).await?;
    report.at_most("statements of each of 32", 0.5, &[together]);
    Ok(())
}
