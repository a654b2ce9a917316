//! Crashes and faults at every named point of every command that changes something.
//!
//! - [`commands`]: the commands, as data.
//! - [`case`]: which faults there are at which points; a run on a quiet server tells the points.
//! - [`matrix`]: one command through all its cases: what the client is told, what is there, and what
//!   it is told when it asks again.
//! - [`moved`]: the same request again, when its source has moved meanwhile.
//! - [`observation`]: what a client sees, without what differs from case to case.
//! - [`trouble`]: every command on a full disk, a read-only warehouse and a slow object store.
//! - [`surroundings`]: how a test makes these.
//! - [`aftermath`]: the audit, and what is left when the background jobs have gone over all of it.

mod aftermath;
mod case;
mod commands;
mod matrix;
mod moved;
mod observation;
mod surroundings;
mod trouble;

use std::io::Write;

use self::commands::Command;
use self::matrix::Matrix;
use super::world::{Engine, in_world};

macro_rules! at_every_point {
    ($($command:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $command() {
                const COMMAND: super::Named = (stringify!($command), super::commands::$command);
                super::go_through(super::Engine::Sqlite, &[COMMAND]).await;
            })+
        }
        const ALL: &[Named] = &[$((stringify!($command), commands::$command)),+];
    };
}

type Named = (&'static str, fn(&str) -> Command);

at_every_point![
    create_database,
    create_namespace,
    set_namespace_properties,
    drop_namespace,
    drop_database,
    create_table,
    stage_table,
    finish_staged_table,
    finish_staged_table_without_key,
    register_table,
    register_table_over_another,
    unregister_table,
    append,
    append_without_key,
    set_table_property,
    rename_table,
    drop_table,
    purge_table,
    commit_two_tables,
    commit_two_tables_without_key,
    create_view,
    register_view,
    replace_view,
    rename_view,
    drop_view,
    create_catalog,
    rename_catalog,
    drop_catalog,
    create_branch,
    create_tag,
    delete_branch,
    delete_tag,
    merge_fast_forward,
    merge_three_ways,
    merge_with_a_conflict,
    append_on_a_branch,
    drop_on_a_branch,
];

/// Of which each takes half of the time that one scenario may take.
const HALVES: (&[Named], &[Named]) = ALL.split_at(ALL.len() / 2);

/// At COMMIT only: the rest is the same code as on SQLite.
macro_rules! at_commit {
    ($($module:ident: $engine:ident),+) => {
        $(mod $module {
            use super::{Engine, HALVES, go_through};

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn one_half_of_the_commands_at_commit() {
                go_through(Engine::$engine, HALVES.0).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn the_other_half_of_the_commands_at_commit() {
                go_through(Engine::$engine, HALVES.1).await;
            }
        })+
    };
}

at_commit!(postgres: Postgres, optimistic: Optimistic);

/// The negative control: a drop that comes again without a key is told that there is no table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_matrix_notices_a_client_that_is_told_something_else_the_second_time() {
    fn forgetful(ns: &str) -> Command {
        let mut command = commands::drop_table(ns);
        command.request.key = None;
        command
    }
    let ended = in_world(Engine::Sqlite, |world| async move {
        let mut matrix = Matrix::open(world).await;
        matrix.run("forgetful", forgetful).await
    });
    let wrong = ended.await.unwrap_err();
    assert!(wrong.contains("asked again: 404"), "{wrong}");
}

async fn go_through(engine: Engine, commands: &'static [Named]) {
    let ended = in_world(engine, |world| async move {
        let mut matrix = Matrix::open(world).await;
        for (name, command) in commands {
            matrix.run(name, *command).await?;
        }
        matrix.close().await
    });
    if let Err(wrong) = ended.await {
        panic!("{wrong}");
    }
}

/// Past the capture of the test's output: the matrix takes its time.
fn progress(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
