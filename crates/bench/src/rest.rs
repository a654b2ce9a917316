//! The program at rest: its memory, and how long it takes to be ready.

use std::time::Duration;

use crate::failure::Failure;
use crate::numbers::median;
use crate::server::{Binary, Server};
use crate::table::{Output, Table, number, progress, verdict};
use crate::{http, machine, process, server};

/// Options of `rest`.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    binary: Binary,
    /// How often it is started.
    #[arg(long, default_value_t = 5)]
    starts: usize,
    /// How long each kind of load runs.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Clients of the load.
    #[arg(long, default_value_t = 32)]
    clients: usize,
    /// Snapshots that each client appends to its table.
    #[arg(long, default_value_t = 200)]
    appends: usize,
    /// Tables of 500 snapshots that are made afterwards, to fill what the server keeps in memory.
    #[arg(long, default_value_t = 300)]
    tables: usize,
}

/// How long a server without work is left alone before its memory is read.
const SETTLES_WITHIN: Duration = Duration::from_secs(2);

/// Runs the measurement and prints its table.
pub async fn run(options: &Options, output: Output) -> Result<(), Failure> {
    machine::print(output, None).await?;
    let mut ready = Vec::new();
    let mut at_rest = Vec::new();
    for start in 0..options.starts.max(1) {
        progress(&format!("start {} of {}", start + 1, options.starts));
        let folder = server::folder()?;
        let server = Server::start(&options.binary, folder.path(), None).await?;
        ready.push(server.ready_after.as_secs_f64());
        tokio::time::sleep(SETTLES_WITHIN).await;
        at_rest.extend(process::resident(server.pid()?));
        server.stop().await?;
    }
    let folder = server::folder()?;
    let server = Server::start(&options.binary, folder.path(), None).await?;
    let turn = Duration::from_secs_f64(options.seconds);
    let done = http::exercise(&server.iceberg(), options.clients, turn, options.appends).await?;
    tokio::time::sleep(SETTLES_WITHIN).await;
    let pid = server.pid()?;
    let after = process::resident(pid).unwrap_or(f64::NAN);
    progress(&format!("making {} large tables", options.tables));
    http::make_large_tables(&server.iceberg(), options.tables).await?;
    tokio::time::sleep(SETTLES_WITHIN).await;
    let filled = process::resident(pid).unwrap_or(f64::NAN);
    let peak = process::peak(pid).unwrap_or(f64::NAN);
    server.stop().await?;

    let columns = ["what", "bar", "measured", "of the bar", ""];
    let mut table = Table::new("the program by itself, on the embedded store", &columns);
    let mut row = |what: &str, unit: &str, bar: f64, value: f64| {
        let of_bar = value / bar;
        table.row([
            format!("{what}, {unit}"),
            format!("≤ {bar}"),
            number(value),
            number(of_bar),
            verdict(of_bar <= 1.0),
        ]);
    };
    row("ready on an empty store", "s", 0.15, median(ready));
    row("memory at rest", "MB", 25.0, median(at_rest));
    row("memory after load", "MB", 100.0, after);
    row("memory with full caches", "MB", 100.0, filled);
    table.note(format!(
        "load: {done} requests of every kind by {} clients",
        options.clients
    ));
    table.note(format!(
        "full caches: after {} tables of 500 snapshots; at most: {} MB",
        options.tables,
        number(peak)
    ));
    table.print(output);
    Ok(())
}
