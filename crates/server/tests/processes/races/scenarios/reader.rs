//! Readers of two servers while a thousand commits and merges are made: what was published
//! together is seen together.
//!
//! A branch gives `features` and `labels` the same generation, each in a commit of its own, and
//! renames a pair of tables after it; a merge brings all of it to `main`, which has commits of its
//! own in between.

use std::sync::Arc;

use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::scenario::{Ended, answer, look, must, prepare};
use crate::point::after;
use crate::races::duel::Wrong;
use crate::requests::*;
use crate::server::Server;
use crate::trees::*;
use crate::world::{Engine, World};

const TOGETHER: [&str; 2] = ["features", "labels"];

/// What readers look through to see two tables at one state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// The second table as of the revision that came with the first.
    Pinned,
    /// Both as they are when they are asked for.
    Unpinned,
}

/// A thousand commits and merges, six in a generation; fewer in the mode that takes longer for
/// each.
fn generations(engine: Engine) -> u64 {
    match engine {
        Engine::Postgres => 167,
        _ => 20,
    }
}

pub async fn what_is_merged_together_is_seen_together(world: Arc<World>) -> Ended {
    let a = Arc::new(world.server("a").await);
    let b = Arc::new(world.server("b").await);
    set_up(&a).await;
    let generations = generations(world.engine);
    // A reader's turn comes with each generation, and is over when it has looked.
    let turns = Arc::new(Semaphore::new(0));
    let readers = [&a, &b].map(|server| {
        let (server, turns) = (Arc::clone(server), Arc::clone(&turns));
        tokio::spawn(async move { read_in_turn(&server, &turns).await })
    });
    let mut written = Ok(());
    for generation in 1..=generations {
        // Each server has its turn of everything.
        let (one, other) = match generation % 2 {
            0 => (&a, &b),
            _ => (&b, &a),
        };
        turns.add_permits(readers.len());
        written = write(one, other, generation).await;
        if written.is_err() || readers.iter().any(JoinHandle::is_finished) {
            break;
        }
    }
    turns.close();
    let mut looks = 0;
    for reader in readers {
        looks += reader.await.unwrap()?;
    }
    written?;
    must(looks >= generations, || format!("only {looks} looks"))?;
    let last = generation_of(&a, "db", "labels").await?;
    must(last == generations, || format!("the last is {last}"))
}

/// Between the two looks of a reader all that it looks at moves on.
pub async fn two_looks_with_a_merge_between(world: Arc<World>, by: Look) -> Ended {
    let a = world.server("a").await;
    let b = world.server("b").await;
    set_up(&a).await;
    write(&a, &a, 1).await?;
    let (first, revision) = seen(&b, "db", "features").await?;
    write(&a, &a, 2).await?;
    let second = match by {
        Look::Pinned => generation_of(&b, &at("db", &format!("rev-{revision}")), "labels").await?,
        Look::Unpinned => generation_of(&b, "db", "labels").await?,
    };
    must(first == second, || format!("{first} and {second}"))
}

/// A server has found the branch when all that the branch shows moves on: what it answers is what
/// its revision shows.
pub async fn a_look_with_a_merge_in_it_is_of_one_state(world: Arc<World>) -> Ended {
    let a = world.server("a").await;
    let b = world.server("b").await;
    set_up(&a).await;
    prepare(&a, &[create_branch("db", "y", "main")]).await;
    for call in ["resolve", "read"] {
        let request = load_table(&on("db", "y"), "features");
        let pause = b.pause(after(call)).await;
        let asked = b.spawn_for_headers(&request);
        must(pause.reached().await, || "the server ended".to_owned())?;
        let next = if call == "resolve" { 1 } else { 2 };
        write(&a, &a, next).await?;
        prepare(&a, &[merge("db", "main", "y")]).await;
        pause.resume().await;
        let (told, headers) = asked.await.unwrap().ok_or("no answer")?;
        let pinned = at("db", &format!("rev-{}", revision(&headers)));
        let shown = look(&b, &load_table(&pinned, "features")).await?;
        must(
            told.body["metadata-location"] == shown["metadata-location"],
            || format!("{told:?} at {pinned}, which shows {shown}"),
        )?;
    }
    Ok(())
}

async fn set_up(server: &Server) {
    let mut setup = vec![create_namespace("db")];
    setup.extend(["features", "labels", "left_0", "right_0", "own"].map(|t| create_table("db", t)));
    setup.push(create_branch("db", "x", "main"));
    prepare(server, &setup).await;
}

/// Makes a generation on the branch, which shows half of it meanwhile, and publishes it.
async fn write(one: &Server, other: &Server, generation: u64) -> Ended {
    let there = &on("db", "x");
    let set = set_property("generation", &generation.to_string());
    for table in TOGETHER {
        done(one, commit(there, table, json!([]), set.clone())).await?;
    }
    done(other, commit("db", "own", json!([]), set)).await?;
    for side in ["left", "right"] {
        let (old, new) = (
            format!("{side}_{}", generation - 1),
            format!("{side}_{generation}"),
        );
        done(one, rename_table((there, &old), (there, &new))).await?;
        if generation == 1 && side == "left" {
            // The readers' look at a listing would see half of it.
            let half = pair(one, there).await?;
            must(half == (1, 0), || format!("the branch shows {half:?}"))?;
        }
    }
    done(other, merge("db", "x", "main")).await
}

async fn done(server: &Server, request: Request) -> Ended {
    let told = answer(server.spawn(&request)).await?;
    must(told.is_success(), || {
        format!("{} told {told:?}", request.path)
    })
}

/// Looks at pairs whenever it is its turn, until there are no more, and counts the looks.
async fn read_in_turn(server: &Server, turns: &Semaphore) -> Result<u64, Wrong> {
    let (mut looks, mut last) = (0, 0);
    while let Ok(turn) = turns.acquire().await {
        turn.forget();
        let (features, revision) = seen(server, "db", "features").await?;
        let pinned = at("db", &format!("rev-{revision}"));
        for table in TOGETHER {
            let other = generation_of(server, &pinned, table).await?;
            must(other == features, || {
                format!("{table} is {other} where features is {features}, at {revision}")
            })?;
        }
        let (left, right) = pair(server, &pinned).await?;
        must((left, right) == (features, features), || {
            format!("the pair is {left} and {right} at {features}")
        })?;
        // One request, one state.
        let (left, right) = pair(server, "db").await?;
        must(left == right, || {
            format!("one listing has {left} and {right}")
        })?;
        must(last <= features && features <= left, || {
            format!("{last}, then {features}, then {left}")
        })?;
        (looks, last) = (looks + 1, left);
    }
    Ok(looks)
}

fn revision(headers: &HeaderMap) -> &str {
    headers["anabranch-revision"].to_str().expect("a revision")
}

fn generation(table: &Value) -> u64 {
    let set = table["metadata"]["properties"]["generation"].as_str();
    set.map_or(0, |set| set.parse().expect("a number"))
}

/// The generation of a table, and the revision that came with it.
async fn seen(server: &Server, database: &str, table: &str) -> Result<(u64, String), Wrong> {
    let asked = server.ask(&load_table(database, table)).await;
    let (told, headers) = asked.ok_or("no answer")?;
    must(told.is_success(), || format!("told {told:?}"))?;
    Ok((generation(&told.body), revision(&headers).to_owned()))
}

async fn generation_of(server: &Server, database: &str, table: &str) -> Result<u64, Wrong> {
    let found = look(server, &load_table(database, table)).await?;
    Ok(generation(&found))
}

/// The generations of the renamed pair, as one listing has them.
async fn pair(server: &Server, database: &str) -> Result<(u64, u64), Wrong> {
    let listed = look(server, &list_tables(database)).await?;
    let names = listed["identifiers"].as_array().expect("a list");
    let of = |side: &str| {
        let mut found = names
            .iter()
            .filter_map(|one| one["name"].as_str()?.strip_prefix(side));
        found
            .next()
            .map_or(0, |number| number.parse().expect("a number"))
    };
    Ok((of("left_"), of("right_")))
}
