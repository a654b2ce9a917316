//! What branches, tags and merges cost: among many tables against few, at depth and with many
//! branches against `main` only.
//!
//! The catalog service runs in this process, so no protocol takes part. Sides take turns.

mod change;
mod commits;
mod creation;
mod depth;
mod lake;
mod merges;
mod rows;

use crate::core::Engine;
use crate::failure::Failure;
use crate::machine;
use crate::report::Report;
use crate::table::{Output, Table, progress};

use self::lake::{Lake, Place};

/// Options of `references`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Which engine.
    #[arg(long, value_enum, default_value = "sqlite")]
    store: Engine,
    /// A PostgreSQL in which databases may be made.
    #[arg(long, env = "ANABRANCH_TEST_POSTGRES", value_name = "URL")]
    postgres: Option<String>,
    /// Fewer tables and turns: shows that it runs, and gives no figures.
    #[arg(long)]
    quick: bool,
}

/// How much of everything.
struct Scale {
    /// Tables of the three stores.
    sizes: [usize; 3],
    /// Tables that a merge brings.
    changed: &'static [usize],
    rounds: usize,
    /// Operations of one side's turn.
    stretch: usize,
    /// How long one side commits.
    commits: f64,
}

const FULL: Scale = Scale {
    sizes: [10, 1000, 100_000],
    changed: &[1, 10, 100, 1000],
    rounds: 9,
    stretch: 30,
    commits: 1.5,
};
const QUICK: Scale = Scale {
    sizes: [10, 100, 1000],
    changed: &[1, 10, 100],
    rounds: 1,
    stretch: 3,
    commits: 0.05,
};

/// Ratios, and counts at each of the sizes.
struct Reports {
    ratios: Report,
    counts: Table,
}

/// Runs the measurement and prints its tables.
pub async fn run(options: &Options, output: Output) -> Result<(), Failure> {
    let scale = if options.quick { &QUICK } else { &FULL };
    let postgres = options.postgres.as_deref();
    let is_wanted = |engine| options.store == engine || options.store == Engine::All;
    let with_postgres = options.store != Engine::Sqlite;
    machine::print(output, postgres.filter(|_| with_postgres)).await?;
    if is_wanted(Engine::Sqlite) {
        on("sqlite", Place::Sqlite, scale, output).await?;
    }
    for (engine, name, mode) in [
        (Engine::Postgres, "postgres", "pessimistic"),
        (
            Engine::PostgresOptimistic,
            "postgres, optimistic",
            "optimistic",
        ),
    ] {
        if is_wanted(engine) {
            let url = postgres.ok_or_else(|| Failure::told("this engine needs --postgres URL"))?;
            on(name, Place::Postgres(url, mode), scale, output).await?;
        }
    }
    Ok(())
}

async fn on(engine: &str, place: Place<'_>, scale: &Scale, output: Output) -> Result<(), Failure> {
    let mut lakes = Vec::with_capacity(scale.sizes.len());
    for size in scale.sizes {
        progress(&format!("{engine}: filling a database of {size} tables"));
        lakes.push(Lake::fill(place, size).await?);
    }
    let measured = measure(engine, &lakes, scale).await;
    for lake in lakes {
        lake.remove().await?;
    }
    let reports = measured?;
    reports.ratios.table.print(output);
    reports.counts.print(output);
    Ok(())
}

async fn measure(engine: &str, lakes: &[Lake], scale: &Scale) -> Result<Reports, Failure> {
    let [few, some, many] = lakes else {
        return Err(Failure::told("three stores are compared"));
    };
    let mut ratios = Report::new(format!("references on {engine}: ratios"));
    ratios
        .table
        .note("time of one against time of the other; medians of turns");
    let title = format!("references on {engine}: SQL statements, rows written");
    let mut counts = Table::new(title, &["what", "few", "some", "many"]);
    let [fewest, more, most] = scale.sizes;
    counts.note(format!(
        "few, some, many: {fewest}, {more}, {most} tables in the database"
    ));
    let mut reports = Reports { ratios, counts };
    creation::measure([few, some, many], scale, &mut reports).await?;
    merges::measure([some, many], scale, &mut reports).await?;
    depth::measure(some, scale, &mut reports).await?;
    commits::measure(some, scale, &mut reports).await?;
    Ok(reports)
}
