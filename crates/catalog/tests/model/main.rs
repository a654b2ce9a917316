//! Random histories of several clients on several servers against a sequential catalog.
//!
//! A history is made of a seed, run on servers over one store, and checked when it is over: every
//! answer must be explained by one serial order, the one of the revisions; pinned reads show what
//! it says and are repeatable; the change feed, read by a consumer that goes on from its cursor,
//! rebuilds what stands; a request that was sent again is applied once where that is promised.
//! One server caches, one doesn't, one caches too little.
//!
//! - Step by step (`run::step_by_step`): one thing at a time, calls held at named points. A failure
//!   repeats itself, and is shortened to the fewest steps.
//! - At once (`run::at_once`): all clients on several threads, on every engine.
//!
//! `ANABRANCH_MODEL_SEEDS=1000` runs so many seeds, `ANABRANCH_MODEL_SEEDS=17..18` just these.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod bugs;
mod check;
mod client;
mod generate;
mod log;
mod record;
mod run;
mod sequential;
mod shrink;
mod words;
mod world;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anabranch_store::Store;
use anabranch_store::fault::When;
use anabranch_store::testing::sqlite_store;

use bugs::Bug;
use check::Verdict;
use generate::{BEGINNING, history};
use run::Stores;
use shrink::shorten;
use words::{Command, Hold, Name, Place, Step};

const CLIENTS: usize = 6;

on_every_engine![clients_at_once_are_explained_by_one_order];

/// The seeds to run.
fn seeds(usual: u64) -> Range<u64> {
    let Ok(text) = std::env::var("ANABRANCH_MODEL_SEEDS") else {
        return 0..usual;
    };
    let number = |text: &str| {
        text.parse()
            .expect("ANABRANCH_MODEL_SEEDS is 100 or 17..18")
    };
    match text.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => 0..number(&text),
    }
}

async fn clients_at_once_are_explained_by_one_order(store: Arc<dyn Store>, folder: &Path) {
    let stores = Stores::sound(&store);
    for seed in seeds(20) {
        let steps = history(seed, CLIENTS, 20);
        if let Err(why) = run::at_once(&stores, folder, &steps).await {
            eprintln!("seed {seed} fails; a shorter history is looked for: {why}");
            // Threads don't repeat themselves: what fails in one of three runs, fails.
            let mut run = async |steps: &[Step]| {
                for _ in 0..3 {
                    run::at_once(&stores, folder, steps).await?;
                }
                Ok(())
            };
            let failure = shorten(seed, steps, why, 60, &mut run).await;
            panic!("{}", failure.shown());
        }
    }
    let server = support::Server::over(&store, folder);
    server.healthy().await;
}

async fn run_step_by_step(steps: &[Step], bug: Option<Bug>) -> Verdict {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite_store(folder.path()).unwrap();
    let stores = match bug {
        Some(bug) => Stores::with_bug(&store, bug),
        None => Stores::sound(&store),
    };
    run::step_by_step(&stores, folder.path(), steps).await
}

#[tokio::test]
async fn held_steps_are_explained_by_one_order() {
    for seed in seeds(30) {
        let steps = history(seed, CLIENTS, 12);
        if let Err(why) = run_step_by_step(&steps, None).await {
            let mut run = async |steps: &[Step]| run_step_by_step(steps, None).await;
            let failure = shorten(seed, steps, why, 400, &mut run).await;
            panic!("{}", failure.shown());
        }
    }
}

#[tokio::test]
async fn a_server_answers_the_same_with_its_caches_on_and_off() {
    for seed in seeds(6) {
        let folder = tempfile::tempdir().unwrap();
        let store = sqlite_store(folder.path()).unwrap();
        let stores = Stores::sound(&store);
        let steps = history(seed, CLIENTS, 12);
        let cached = run::answers(&stores, folder.path(), &steps, true).await;
        let read = run::answers(&stores, folder.path(), &steps, false).await;
        assert_eq!(cached, read, "seed {seed}");
    }
}

/// Runs seeds until the planted bug shows, and shortens the history to what it takes.
async fn is_caught(bug: Bug, at_most: usize) {
    is_caught_with(bug, at_most, &[]).await;
}

/// The same, with these steps in each history: for what chance brings about too seldom.
async fn is_caught_with(bug: Bug, at_most: usize, among: &[Step]) {
    for seed in 0..100 {
        let mut steps = history(seed, CLIENTS, 12);
        steps.splice(BEGINNING..BEGINNING, among.iter().cloned());
        if let Err(why) = run_step_by_step(&steps, Some(bug)).await {
            let mut run = async |steps: &[Step]| run_step_by_step(steps, Some(bug)).await;
            let failure = shorten(seed, steps, why, 60, &mut run).await;
            println!("{bug:?}, {}", failure.shown());
            assert!(
                failure.steps.len() <= at_most,
                "{bug:?}, {}",
                failure.shown()
            );
            let again = run_step_by_step(&failure.steps, Some(bug)).await;
            assert!(again.is_err(), "a failure repeats itself");
            assert_eq!(run_step_by_step(&failure.steps, None).await, Ok(()));
            return;
        }
    }
    panic!("{bug:?} passes");
}

#[tokio::test]
async fn an_acknowledged_commit_that_is_not_there_is_caught() {
    is_caught(Bug::LostCommit, 8).await;
}

#[tokio::test]
async fn a_swap_on_what_was_read_before_the_lock_is_caught() {
    is_caught(Bug::StaleSwap, 8).await;
}

#[tokio::test]
async fn a_property_update_that_loses_another_is_caught() {
    is_caught(Bug::LostProperty, 8).await;
}

#[tokio::test]
async fn a_table_created_in_a_dropped_namespace_is_caught() {
    let step = |id: usize, command: Command| Step {
        id: 1000 + id,
        client: 0,
        server: id,
        command,
        keyed: false,
        resent: false,
        hold: None,
        lost: None,
    };
    let place = Place {
        catalog: "red",
        levels: vec!["x", "n"],
    };
    let name = Name {
        place: place.clone(),
        table: "v",
    };
    let mut create = step(1, Command::CreateTable(name));
    create.hold = Some(Hold {
        call: "begin",
        when: When::Before,
        steps: 1,
    });
    let drop = step(2, Command::DropNamespace(place));
    is_caught_with(Bug::PhantomNamespace, 8, &[create, drop]).await;
}

#[tokio::test]
async fn a_change_missing_in_the_feed_is_caught() {
    is_caught(Bug::FeedGap, 8).await;
}

#[tokio::test]
async fn a_version_missing_in_the_history_is_caught() {
    is_caught(Bug::HistoryGap, 8).await;
}

#[tokio::test]
async fn an_answer_forgotten_under_its_key_is_caught() {
    is_caught(Bug::ForgottenKey, 8).await;
}

#[tokio::test]
async fn a_cache_that_is_not_told_what_others_changed_is_caught() {
    is_caught(Bug::StaleCache, 8).await;
}
