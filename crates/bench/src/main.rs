//! Measures what the project promises about speed. Every row of every table is a count, or a ratio
//! of things measured in turns within one run: absolute times don't carry to another machine.
//!
//! ```text
//! anabranch-bench core    group commit against plain SQL on the same engine
//! anabranch-bench http    load on any Iceberg REST server, or on two of them in turns
//! anabranch-bench flat    one of many tables against one of few
//! anabranch-bench rest    memory and start of the program
//! anabranch-bench references
//!                         what branches, tags and merges cost
//! ```

mod core;
mod database;
mod failure;
mod fill;
mod flat;
mod http;
mod machine;
mod numbers;
mod process;
mod references;
mod report;
mod rest;
mod server;
mod table;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::failure::Failure;
use crate::table::Output;

/// Measures what Anabranch promises about speed, size and flatness.
#[derive(Debug, Parser)]
#[command(name = "anabranch-bench", version, about)]
struct Cli {
    /// Print JSON, one object per table.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The core's commands against one SQL transaction per commit on the same engine.
    Core(core::Options),
    /// Load on any Iceberg REST server; starts one itself if no target is given.
    Http(http::Options),
    /// One of 100,000 tables against one of 100, and tables of many snapshots.
    Flat(flat::Options),
    /// Memory at rest and after load, and the time until the program is ready.
    Rest(rest::Options),
    /// Branches, tags and merges among many tables against few, and against `main` only.
    References(references::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output { json: cli.json };
    let done: Result<(), Failure> = match &cli.what {
        What::Core(options) => core::run(options, output).await,
        What::Http(options) => http::run(options, output).await,
        What::Flat(options) => flat::run(options, output).await,
        What::Rest(options) => rest::run(options, output).await,
        What::References(options) => references::run(options, output).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("anabranch-bench: {failure}");
            ExitCode::FAILURE
        }
    }
}
