//! A server that freezes while it holds a partition. Its connections stay open.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::scenario::{Ended, answer, look, must, prepare, stand, unguard, until_queued};
use crate::requests::*;
use crate::server::Server;
use crate::world::{Engine, World};

/// The session's idle timeout is five seconds; beside it there is the work itself.
const FOR_THE_OTHERS: Duration = Duration::from_secs(10);

/// Whether PostgreSQL ends sessions that idle while they hold something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Idlers {
    Ended,
    Endured,
}

/// The frozen one's request rests on what the other changes, and changes two databases.
pub async fn what_it_held_is_applied_whole_or_not_at_all(
    world: Arc<World>,
    idlers: Idlers,
) -> Ended {
    let (frozen, other) = pair(&world, idlers).await;
    let setup = [
        create_namespace("one"),
        create_namespace("two"),
        create_table("one", "t"),
        create_table("two", "u"),
    ];
    prepare(&other, &setup).await;
    let both = commit_many(&[
        change("one", "t", main_at(None), append(1, None, 1)),
        change("two", "u", json!([]), set_property("x", "1")),
    ]);
    let one = commit("one", "t", main_at(None), append(2, None, 1));
    let held = Held {
        first: both,
        queued: vec![],
    };
    let told = freeze(&world, &frozen, &held, &other, &one).await?;
    must(told == [409], || format!("the frozen one told {told:?}"))?;
    let table = look(&frozen, &load_table("one", "t")).await?;
    let current = &table["metadata"]["current-snapshot-id"];
    must(*current == 2, || format!("the snapshot is {current}"))?;
    let other_table = look(&frozen, &load_table("two", "u")).await?;
    let left = other_table.pointer("/metadata/properties/x");
    must(left.is_none(), || "half of it was applied".to_owned())
}

/// The frozen one's requests rest on nothing that the other changes. Some have yet to begin.
pub async fn what_it_held_is_done_again(world: Arc<World>, idlers: Idlers) -> Ended {
    let (frozen, other) = pair(&world, idlers).await;
    prepare(&other, &[create_namespace("db"), create_namespace("db.in")]).await;
    let set = |key: &str| set_namespace_property("db.in", key, "1");
    let queued = ["behind", "it"].map(set);
    let held = Held {
        first: set("frozen"),
        queued: queued.to_vec(),
    };
    let told = freeze(&world, &frozen, &held, &other, &set("other")).await?;
    must(told == [200, 200, 200], || {
        format!("the frozen one told {told:?}")
    })?;
    // It goes on as if nothing had been.
    prepare(&frozen, &[set("further")]).await;
    let found = look(&other, &load_namespace("db.in")).await?;
    let all = json!({ "frozen": "1", "behind": "1", "it": "1", "other": "1", "further": "1" });
    must(found["properties"] == all, || format!("there is {found}"))
}

async fn pair(world: &World, idlers: Idlers) -> (Server, Server) {
    let start = async |name| match idlers {
        Idlers::Ended => world.server_with(name, &[], "").await,
        Idlers::Endured => world.server(name).await,
    };
    let frozen = start("frozen").await;
    let other = start("other").await;
    unguard(world).await;
    (frozen, other)
}

/// What a server has to do when it freezes.
struct Held {
    /// It stands before its COMMIT.
    first: Request,
    /// These wait in the server.
    queued: Vec<Request>,
}

/// What the frozen one tells in the end; the other is told success within seconds.
async fn freeze(
    world: &World,
    frozen: &Server,
    held: &Held,
    other: &Server,
    comes: &Request,
) -> Result<Vec<u16>, String> {
    let (pause, first) = stand(frozen, &held.first).await;
    let mut sent = Vec::from([first]);
    sent.extend(held.queued.iter().map(|request| frozen.spawn(request)));
    until_queued(frozen, sent.len() as u64).await;
    frozen.signal("STOP").await;
    let told = tokio::time::timeout(FOR_THE_OTHERS, other.send(comes)).await;
    let told = told.map_err(|_| "the other waits".to_owned())?;
    let is_told = told.as_ref().is_some_and(|answer| answer.status == 200);
    must(is_told, || format!("the other told {told:?}"))?;
    if world.engine == Engine::Postgres {
        // The other could go on because PostgreSQL has ended the transaction.
        while holds_something(world).await {}
    } else {
        let is_open = holds_something(world).await;
        must(is_open, || {
            "the other waited although it needn't".to_owned()
        })?;
    }
    frozen.signal("CONT").await;
    pause.resume().await;
    let mut told = Vec::new();
    for one in sent {
        told.push(answer(one).await?.status);
    }
    Ok(told)
}

async fn holds_something(world: &World) -> bool {
    let open = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() \
         AND application_name = 'frozen' AND state = 'idle in transaction')";
    let found = world.client().await.query_one(open, &[]).await;
    found.unwrap().get(0)
}
