//! The program `anabranch`: configuration, the server, and verbs that work on a store or talk to a
//! server.
//!
//! - [`config`]: what is in force, and where each value came from.
//! - [`serve`]: one server from start to stop; [`store_verbs`]: `migrate`, `doctor`, `backup`.
//! - [`client`]: how the other verbs reach a server; [`verbs`]: those verbs.

mod cli;
mod client;
mod clock;
mod config;
mod failure;
mod greeting;
mod jobs;
mod lake;
mod logging;
mod measures;
mod open;
mod out;
#[cfg(feature = "fault-points")]
mod points;
mod serve;
mod stop;
mod store_verbs;
mod table;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Verb};
use crate::failure::Failure;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(help_or_error) => return explain(&help_or_error),
    };
    let verb = match cli.settle() {
        Ok(verb) => verb,
        Err(reason) => {
            out::complain(format_args!("anabranch: {reason}"));
            return ExitCode::from(2);
        }
    };
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            out::complain(format_args!(
                "anabranch: can't start threads: {error}; raise the process limits"
            ));
            return ExitCode::from(2);
        }
    };
    let ended = runtime.block_on(run(verb));
    // What still runs in the background has nothing left to say.
    runtime.shutdown_background();
    match ended {
        Ok(code) => code,
        Err(failure) => {
            out::complain(format_args!("anabranch: {failure}"));
            ExitCode::from(failure.status())
        }
    }
}

/// Prints the help or version that was asked for, or what is wrong with the command line.
fn explain(help_or_error: &clap::Error) -> ExitCode {
    match out::ended(help_or_error.print()) {
        Ok(()) => ExitCode::from(u8::try_from(help_or_error.exit_code()).unwrap_or(2)),
        Err(failure) => {
            out::complain(format_args!("anabranch: {failure}"));
            ExitCode::from(failure.status())
        }
    }
}

async fn run(verb: Verb) -> Result<ExitCode, Failure> {
    match verb {
        Verb::Serve(flags) => serve::serve(&flags).await,
        Verb::Migrate(flags) => store_verbs::migrate(&flags).await,
        Verb::Doctor(doctor) => store_verbs::doctor(&doctor).await,
        Verb::Backup(backup) => store_verbs::backup(&backup).await,
        Verb::Config(cli::ConfigVerb::Show { settings, json }) => {
            store_verbs::show_config(&settings, json)
        }
        Verb::Catalog(verb) => verbs::catalog::run(verb).await,
        Verb::Database(verb) => verbs::database::run(verb).await,
        Verb::Table(verb) => verbs::table::run(verb).await,
        Verb::Ref(verb) => verbs::reference::run(verb).await,
        Verb::Gc(verb) => verbs::gc::run(verb).await,
        Verb::Changes(verb) => verbs::changes::run(verb).await,
    }
}
