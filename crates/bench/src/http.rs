//! A closed-loop load generator for any Iceberg REST server: each client sends the next request
//! when it has the answer to the last one. With a baseline the two servers take turns, and every
//! row is the ratio of the two.

mod client;
mod operation;
mod target;

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use http::{HeaderName, HeaderValue};

pub use self::client::Client;
use self::client::Header;
pub use self::operation::{Operation, Worker};
use self::target::{SNAPSHOTS, Stage};
pub use self::target::{Target, appends, new_namespace, new_table, set_property};
use crate::database::Database;
use crate::failure::Failure;
use crate::numbers::{Times, median};
use crate::server::{Binary, Server};
use crate::table::{Output, Table, number, progress, verdict};
use crate::{machine, process, server};

/// Options of `http`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The base of the server's Iceberg routes, such as http://127.0.0.1:8181/iceberg; without it
    /// the program itself is started.
    #[arg(long, value_name = "URL")]
    target: Option<String>,
    /// Its process, for processor time and memory.
    #[arg(long, requires = "target")]
    pid: Option<u32>,
    /// A second server, which takes turns with the first.
    #[arg(long, value_name = "URL")]
    baseline: Option<String>,
    /// Its process.
    #[arg(long, requires = "baseline")]
    baseline_pid: Option<u32>,
    /// The warehouse on the target.
    #[arg(long, default_value = "lake")]
    warehouse: String,
    /// The warehouse on the baseline.
    #[arg(long, default_value = "lake")]
    baseline_warehouse: String,
    /// A header for every request, as `name: value`; may be given more than once.
    #[arg(long, value_parser = header, value_name = "HEADER")]
    header: Vec<Header>,
    /// Start the program on a PostgreSQL in which databases may be made, not on SQLite.
    #[arg(long, value_name = "URL", conflicts_with = "target")]
    postgres: Option<String>,
    /// With --postgres: optimistic locking.
    #[arg(long, requires = "postgres")]
    optimistic: bool,
    #[command(flatten)]
    binary: Binary,
    /// How long each operation runs with each number of clients, all rounds together.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// How often each is measured; figures are the median of the rounds.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Numbers of clients.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 32])]
    clients: Vec<usize>,
    /// Only these operations.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Operation>,
    /// Snapshots that each client of `append` adds to its table.
    #[arg(long, default_value_t = 200)]
    appends: usize,
}

fn header(text: &str) -> Result<Header, String> {
    let (name, value) = text.split_once(':').ok_or("it looks like `name: value`")?;
    let name = HeaderName::try_from(name.trim()).map_err(|error| error.to_string())?;
    let value = HeaderValue::try_from(value.trim()).map_err(|error| error.to_string())?;
    Ok((name, value))
}

/// One server that takes part.
struct Party {
    target: Arc<Target>,
    stage: Arc<Stage>,
    measured: Vec<Measured>,
}

/// One round of one operation.
#[derive(Default)]
struct Round {
    times: Times,
    refused: u64,
    conflicts: u64,
    failures: u64,
    elapsed: Duration,
    cpu: Option<Duration>,
}

impl Round {
    fn rate(&self) -> f64 {
        self.times.len() as f64 / self.elapsed.as_secs_f64()
    }
}

/// All rounds of one operation with one number of clients.
struct Measured {
    operation: Operation,
    clients: usize,
    rounds: Vec<Round>,
    resident: Option<f64>,
}

impl Measured {
    fn median(&self, of: impl Fn(&Round) -> f64) -> f64 {
        median(self.rounds.iter().map(of))
    }

    fn rate(&self) -> f64 {
        self.median(Round::rate)
    }

    fn failures(&self) -> u64 {
        self.rounds.iter().map(|round| round.failures).sum()
    }

    fn others(&self) -> u64 {
        self.rounds
            .iter()
            .map(|round| round.refused + round.conflicts)
            .sum()
    }
}

/// Runs the load and prints its tables.
pub async fn run(options: &Options, output: Output) -> Result<(), Failure> {
    machine::print(output, options.postgres.as_deref()).await?;
    let Some(target) = &options.target else {
        return run_on_own(options, output).await;
    };
    load(options, output, target, options.pid).await
}

async fn run_on_own(options: &Options, output: Output) -> Result<(), Failure> {
    let folder = server::folder()?;
    let database = match &options.postgres {
        Some(url) => Some(Database::create(url).await?),
        None => None,
    };
    let mode = if options.optimistic {
        "optimistic"
    } else {
        "pessimistic"
    };
    let store = database
        .as_ref()
        .map(|database| format!("{}?mode={mode}", database.url()));
    let done = async {
        let server = Server::start(&options.binary, folder.path(), store.as_deref()).await?;
        load(options, output, &server.iceberg(), Some(server.pid()?)).await?;
        server.stop().await
    };
    let done = done.await;
    if let Some(database) = database {
        database.remove().await?;
    }
    done
}

async fn load(
    options: &Options,
    output: Output,
    url: &str,
    pid: Option<u32>,
) -> Result<(), Failure> {
    let mut parties = vec![party(options, url, &options.warehouse, pid).await?];
    if let Some(url) = &options.baseline {
        let warehouse = &options.baseline_warehouse;
        parties.push(party(options, url, warehouse, options.baseline_pid).await?);
    }
    let all = Operation::value_variants();
    let wanted =
        |operation: &&Operation| options.only.is_empty() || options.only.contains(operation);
    for operation in all.iter().filter(wanted) {
        for clients in &options.clients {
            progress(&format!("{}, {clients} clients", operation.name()));
            measure(options, &mut parties, *operation, *clients).await?;
        }
    }
    report(&parties, output);
    Ok(())
}

async fn party(
    options: &Options,
    url: &str,
    warehouse: &str,
    pid: Option<u32>,
) -> Result<Party, Failure> {
    progress(&format!("making tables on {url}"));
    let target = Target::find(url, &options.header, warehouse, pid).await?;
    let stage = Arc::new(target.prepare().await?);
    Ok(Party {
        target: Arc::new(target),
        stage,
        measured: Vec::new(),
    })
}

async fn measure(
    options: &Options,
    parties: &mut [Party],
    operation: Operation,
    clients: usize,
) -> Result<(), Failure> {
    let rounds = options.rounds.max(1);
    let turn = Duration::from_secs_f64(options.seconds / rounds as f64);
    let mut measured: Vec<Vec<Round>> = parties.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for (party, measured) in parties.iter().zip(&mut measured) {
            let mut workers = Vec::with_capacity(clients);
            for client in 0..clients {
                let name = format!("{clients}_{round}_{client}");
                let prepared =
                    Worker::prepare(operation, &party.target, &party.stage, &name).await?;
                workers.push(prepared);
            }
            if workers.first().is_some_and(Worker::is_impossible) {
                continue;
            }
            let until = match operation {
                Operation::Append => Until::Done(options.appends),
                _ => Until::Over(turn),
            };
            measured.push(drive(workers, until, party.target.pid).await?);
        }
    }
    for (party, rounds) in parties.iter_mut().zip(measured) {
        let resident = party.target.pid.and_then(process::resident);
        party.measured.push(Measured {
            operation,
            clients,
            rounds,
            resident,
        });
    }
    Ok(())
}

#[derive(Clone, Copy)]
pub(crate) enum Until {
    Over(Duration),
    Done(usize),
}

async fn drive(workers: Vec<Worker>, until: Until, pid: Option<u32>) -> Result<Round, Failure> {
    let cpu_before = pid.and_then(process::cpu);
    let started = Instant::now();
    let running: Vec<_> = workers
        .into_iter()
        .map(|worker| tokio::spawn(work(worker, started, until)))
        .collect();
    let mut round = Round::default();
    for worker in running {
        let ended = worker
            .await
            .map_err(|error| Failure::told(error.to_string()))?;
        let done = ended?;
        round.times.absorb(done.times);
        round.refused += done.refused;
        round.conflicts += done.conflicts;
        round.failures += done.failures;
    }
    round.elapsed = started.elapsed();
    let cpu_after = pid.and_then(process::cpu);
    round.cpu = cpu_before
        .zip(cpu_after)
        .map(|(before, after)| after.saturating_sub(before));
    Ok(round)
}

async fn work(mut worker: Worker, started: Instant, until: Until) -> Result<Round, Failure> {
    let mut round = Round::default();
    let mut done = 0;
    loop {
        let is_over = match until {
            Until::Over(turn) => started.elapsed() >= turn,
            Until::Done(count) => done >= count,
        };
        if is_over {
            return Ok(round);
        }
        let begun = Instant::now();
        let answer = worker.once().await?;
        done += 1;
        match answer.status.as_u16() {
            200..=304 => round.times.add(begun.elapsed()),
            409 => round.conflicts += 1,
            500.. => round.failures += 1,
            _ => {
                if round.refused == 0 {
                    let body = String::from_utf8_lossy(&answer.body);
                    progress(&format!("answered {}: {body}", answer.status));
                }
                round.refused += 1;
            }
        }
    }
}

/// Load of every kind for a while, for measurements of memory.
pub(crate) async fn exercise(
    url: &str,
    clients: usize,
    turn: Duration,
    appends: usize,
) -> Result<u64, Failure> {
    let target = Arc::new(Target::find(url, &[], "lake", None).await?);
    let stage = Arc::new(target.prepare().await?);
    let mut done = 0;
    for operation in Operation::value_variants() {
        progress(&format!("load: {}, {clients} clients", operation.name()));
        let mut workers = Vec::with_capacity(clients);
        for client in 0..clients {
            let name = client.to_string();
            workers.push(Worker::prepare(*operation, &target, &stage, &name).await?);
        }
        let until = match operation {
            Operation::Append => Until::Done(appends),
            _ => Until::Over(turn),
        };
        done += drive(workers, until, None).await?.times.len() as u64;
    }
    Ok(done)
}

/// Tables with many snapshots, each of them added in one commit.
pub(crate) async fn make_large_tables(url: &str, count: usize) -> Result<(), Failure> {
    let target = Target::find(url, &[], "lake", None).await?;
    let mut client = target.connect().await?;
    let namespace = target.name("large");
    target.create_namespace(&mut client, &namespace).await?;
    for number in 0..count {
        let name = format!("large_{number}");
        target.create_table(&mut client, &namespace, &name).await?;
        let path = target.table(&namespace, &name);
        client.post(&path, appends(None, SNAPSHOTS)).await?.json()?;
    }
    Ok(())
}

fn report(parties: &[Party], output: Output) {
    match parties {
        [target, baseline] => {
            alone("target", target).print(output);
            alone("baseline", baseline).print(output);
            compared(target, baseline).print(output);
        }
        _ => parties
            .iter()
            .for_each(|party| alone("target", party).print(output)),
    }
    for party in parties.iter().take(1) {
        if let Some(table) = one_table(party) {
            table.print(output);
        }
    }
}

/// What one server did: counts of this run, and each rate against that of fewer clients.
fn alone(who: &str, party: &Party) -> Table {
    let columns = [
        "operation",
        "by",
        "ops/s",
        "of 1st",
        "p50 ms",
        "p99 ms",
        "cpu µs",
        "MB",
        "409",
        "5xx",
    ];
    let mut table = Table::new(format!("http: {who}"), &columns);
    for measured in &party.measured {
        if measured.rounds.is_empty() {
            continue;
        }
        let first = party
            .measured
            .iter()
            .find(|other| other.operation == measured.operation);
        let cpu = measured.median(|round| match round.cpu {
            Some(cpu) => cpu.as_micros() as f64 / round.times.len().max(1) as f64,
            None => f64::NAN,
        });
        table.row([
            measured.operation.name().to_owned(),
            measured.clients.to_string(),
            number(measured.rate()),
            number(measured.rate() / first.map_or(f64::NAN, Measured::rate)),
            number(measured.median(|round| round.times.percentile(0.5))),
            number(measured.median(|round| round.times.percentile(0.99))),
            number(cpu),
            number(measured.resident.unwrap_or(f64::NAN)),
            measured.others().to_string(),
            measured.failures().to_string(),
        ]);
    }
    table.note("by: clients; of 1st: rate against the first number of them; cpu: of the server");
    table.note("409: answers 400 to 499; MB: memory of the server, afterwards");
    table
}

fn compared(target: &Party, baseline: &Party) -> Table {
    let columns = [
        "operation",
        "by",
        "rate",
        "lowest",
        "highest",
        "p50",
        "p99",
        "cpu",
    ];
    let mut table = Table::new("http: target against baseline, ratios", &columns);
    for (ours, theirs) in target.measured.iter().zip(&baseline.measured) {
        let ratio = |of: &dyn Fn(&Round) -> f64| -> Vec<f64> {
            let pairs = ours.rounds.iter().zip(&theirs.rounds);
            pairs.map(|(ours, theirs)| of(ours) / of(theirs)).collect()
        };
        let rates = ratio(&Round::rate);
        if rates.is_empty() {
            continue;
        }
        let middle = |of: &dyn Fn(&Round) -> f64| number(median(ratio(of)));
        let cpu = |round: &Round| {
            let cpu = round.cpu.map_or(f64::NAN, |cpu| cpu.as_secs_f64());
            cpu / round.times.len() as f64
        };
        table.row([
            ours.operation.name().to_owned(),
            ours.clients.to_string(),
            number(median(rates.iter().copied())),
            number(rates.iter().copied().fold(f64::INFINITY, f64::min)),
            number(rates.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            middle(&|round| round.times.percentile(0.5)),
            middle(&|round| round.times.percentile(0.99)),
            middle(&cpu),
        ]);
    }
    table.note("rate: higher is better; p50, p99 and cpu: lower is better");
    table
}

/// All on one table: what the promises say about it.
fn one_table(party: &Party) -> Option<Table> {
    let measured = || {
        party
            .measured
            .iter()
            .filter(|one| one.operation == Operation::OneTable)
    };
    let alone = measured().find(|one| one.clients == 1)?;
    let columns = ["all on one table", "clients", "bar", "measured", ""];
    let mut table = Table::new("http: promises about one table", &columns);
    let mut row = |what: &str, clients: usize, bar: &str, value: f64, is_met: bool| {
        let cells = [
            what,
            &clients.to_string(),
            bar,
            &number(value),
            &verdict(is_met),
        ];
        table.row(cells.map(str::to_owned));
    };
    for many in measured() {
        let failures = many.failures();
        row(
            "answers of 500 and above",
            many.clients,
            "0",
            failures as f64,
            failures == 0,
        );
        if many.clients > 1 {
            let ratio = many.rate() / alone.rate();
            row(
                "rate against one client",
                many.clients,
                "≥ 0.8",
                ratio,
                ratio >= 0.8,
            );
        }
    }
    Some(table)
}
