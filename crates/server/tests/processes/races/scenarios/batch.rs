//! Requests that wait in one server and become one batch, of which one is refused.

use std::sync::Arc;

use super::scenario::{
    Ended, Sent, answer, changes, metadata_files, must, prepare, stand, stop_at, until_queued,
};
use crate::point::before;
use crate::races::duel::Wrong;
use crate::requests::*;
use crate::server::Server;
use crate::world::{Engine, World};

/// What doesn't work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    Nothing,
    /// Nobody waits, so each request is a batch of its own.
    Waiting,
    /// The file of the refused one can't be deleted.
    Deletion,
}

/// A rename takes the name of a table that is created behind it; another rename follows.
pub async fn the_refused_one_leaves_no_trace(world: Arc<World>, broken: Broken) -> Ended {
    let a = world.server("a").await;
    let b = world.server("b").await;
    let setup = [
        create_namespace("db"),
        create_namespace("db.in"),
        create_table("db", "t"),
        create_table("db", "w"),
    ];
    prepare(&b, &setup).await;
    let set = |key| set_namespace_property("db.in", key, "1");

    let (holding, of_b) = stand(&b, &set("b")).await;
    // The first waits for b; where nobody waits for another server, it waits for the test.
    let (pause, first) = match world.engine {
        Engine::Postgres => {
            let first = a.spawn(&set("a"));
            let waits = world.is_blocked("a", "b", &first).await;
            must(waits, || "nothing held the first".to_owned())?;
            (None, first)
        }
        _ => stop_at(&a, before("begin"), &set("a")).await,
    };
    let committed = commits(&a).await;
    if broken == Broken::Deletion {
        a.control.fail(&before("file.delete")).await;
    }
    let requests = [
        rename_table(("db", "t"), ("db", "v")),
        create_table("db", "v"),
        rename_table(("db", "w"), ("db", "x")),
    ];
    let mut waiting: Vec<Sent> = Vec::new();
    if broken != Broken::Waiting {
        for request in &requests {
            waiting.push(a.spawn(request));
            until_queued(&a, 1 + waiting.len() as u64).await;
        }
    }
    match &pause {
        Some(pause) => pause.resume().await,
        None => holding.resume().await,
    }
    let first = answer(first).await?;
    let mut told = Vec::new();
    if broken == Broken::Waiting {
        for request in &requests {
            told.push(a.send(request).await.ok_or("no answer")?.status);
        }
    }
    for one in waiting {
        told.push(answer(one).await?.status);
    }
    must(told == [204, 409, 204], || format!("told {told:?}"))?;
    let batches = commits(&a).await - committed - 1;
    must(batches == 1, || format!("{batches} batches instead of one"))?;
    if pause.is_some() {
        holding.resume().await;
    }
    let of_b = answer(of_b).await?;
    must((first.status, of_b.status) == (200, 200), || {
        format!("told {first:?} and {of_b:?}")
    })?;
    leaves_no_trace(&world, &b).await
}

async fn leaves_no_trace(world: &World, server: &Server) -> Result<(), Wrong> {
    let files = metadata_files(world);
    must(files == 2, || {
        format!("{files} metadata files of two tables")
    })?;
    let changes = changes(server).await?;
    let names = changes.iter().map(|change| change["key"]["name"].as_str());
    let of_tables = names.flatten().filter(|name| "tvwx".contains(name));
    // Two creations, and two renames with an end and a beginning each.
    let count = of_tables.count();
    must(count == 6, || {
        format!("{count} changes of tables: {changes:?}")
    })
}

async fn commits(server: &Server) -> u64 {
    let point = before("commit");
    let hits = server.control.hits().await;
    hits.get(&(point.call, point.when)).copied().unwrap_or(0)
}
