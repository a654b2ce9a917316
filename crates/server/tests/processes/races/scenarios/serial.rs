//! Three requests on three servers, in every order that the servers can give them: what comes of
//! it is what comes of one order, one after the other, on a quiet server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::scenario::{Ended, Sent, answer, look, must, prepare, stop_at, three};
use crate::point::before;
use crate::requests::*;
use crate::server::Server;
use crate::world::{Engine, World};

/// Three requests that get into each other's way, on databases that begin with a name.
pub struct Triple {
    pub databases: Vec<String>,
    /// In which database, and how they are called.
    pub tables: Vec<(String, &'static str)>,
    pub requests: [Request; 3],
}

/// What each request was told, and what stands: under which name which of the first tables, or a
/// new one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Outcome {
    told: [u16; 3],
    stands: BTreeMap<String, String>,
}

const ORDERS: [[usize; 3]; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];

pub fn rename_create_and_drop_of_one_name(prefix: &str) -> Triple {
    let db = prefix.to_owned();
    Triple {
        requests: [
            rename_table((&db, "t"), (&db, "u")),
            create_table(&db, "u"),
            drop_table(&db, "u"),
        ],
        tables: vec![(db.clone(), "t")],
        databases: vec![db],
    }
}

pub fn renames_in_a_circle(prefix: &str) -> Triple {
    let [a, b, c] = databases(prefix);
    Triple {
        tables: [&a, &b, &c].map(|db| (db.clone(), "t")).to_vec(),
        ..renames_in_a_circle_with_a_gap(prefix)
    }
}

pub fn renames_in_a_circle_with_a_gap(prefix: &str) -> Triple {
    let [a, b, c] = databases(prefix);
    Triple {
        requests: [
            rename_table((&a, "t"), (&b, "t")),
            rename_table((&b, "t"), (&c, "t")),
            rename_table((&c, "t"), (&a, "t")),
        ],
        tables: [&a, &b].map(|db| (db.clone(), "t")).to_vec(),
        databases: vec![a, b, c],
    }
}

pub fn renames_to_one_name(prefix: &str) -> Triple {
    let [a, b, c] = databases(prefix);
    Triple {
        requests: [
            rename_table((&a, "t"), (&b, "v")),
            rename_table((&b, "t"), (&b, "v")),
            rename_table((&c, "t"), (&b, "v")),
        ],
        tables: [&a, &b, &c].map(|db| (db.clone(), "t")).to_vec(),
        databases: vec![a, b, c],
    }
}

fn databases(prefix: &str) -> [String; 3] {
    ["x", "y", "z"].map(|which| format!("{prefix}_{which}"))
}

pub async fn ends_as_in_one_of_the_orders(world: Arc<World>, triple: fn(&str) -> Triple) -> Ended {
    let servers = three(&world).await;
    let mut serial = BTreeSet::new();
    for (number, order) in ORDERS.iter().enumerate() {
        serial
            .insert(one_after_the_other(&servers[0], &format!("s{number}"), triple, order).await?);
    }
    for (number, order) in ORDERS.iter().enumerate() {
        let meeting = meet(&world, &servers, &format!("m{number}"), triple, order).await?;
        let late = come_late(&servers, &format!("l{number}"), triple, order).await?;
        for outcome in [meeting, late] {
            must(serial.contains(&outcome), || {
                format!("{order:?} comes to {outcome:?}, which no order does: {serial:?}")
            })?;
        }
    }
    Ok(())
}

async fn one_after_the_other(
    server: &Server,
    prefix: &str,
    triple: fn(&str) -> Triple,
    order: &[usize; 3],
) -> Result<Outcome, String> {
    let stage = Stage::set(server, prefix, triple).await?;
    let mut told = [0; 3];
    for which in order {
        let request = &stage.triple.requests[*which];
        told[*which] = server.send(request).await.ok_or("no answer")?.status;
    }
    stage.outcome(server, told).await
}

/// The first stands before its COMMIT when the others come.
async fn meet(
    world: &World,
    servers: &[Server; 3],
    prefix: &str,
    triple: fn(&str) -> Triple,
    order: &[usize; 3],
) -> Result<Outcome, String> {
    let stage = Stage::set(&servers[0], prefix, triple).await?;
    let requests = &stage.triple.requests;
    let [first, rest @ ..] = order;
    let (pause, sent) = stop_at(&servers[*first], before("commit"), &requests[*first]).await;
    let mut all: [Option<Sent>; 3] = [const { None }; 3];
    all[*first] = Some(sent);
    let mut told = [0; 3];
    for which in rest {
        let sent = servers[*which].spawn(&requests[*which]);
        if pause.is_some() && world.engine == Engine::Postgres {
            let names = ["a", "b", "c"];
            // Or it was told at once: about what nobody holds.
            world
                .is_blocked_by_one_of(names[*which], &names, &sent)
                .await;
            all[*which] = Some(sent);
        } else {
            told[*which] = answer(sent).await?.status;
        }
    }
    if let Some(pause) = pause {
        pause.resume().await;
    }
    for (which, sent) in all.into_iter().enumerate() {
        if let Some(sent) = sent {
            told[which] = answer(sent).await?.status;
        }
    }
    stage.outcome(&servers[0], told).await
}

/// All have read their names and hold nothing yet; then they go on in this order.
async fn come_late(
    servers: &[Server; 3],
    prefix: &str,
    triple: fn(&str) -> Triple,
    order: &[usize; 3],
) -> Result<Outcome, String> {
    let stage = Stage::set(&servers[0], prefix, triple).await?;
    let mut stopped = Vec::new();
    for which in order {
        let request = &stage.triple.requests[*which];
        let (pause, sent) = stop_at(&servers[*which], before("begin"), request).await;
        stopped.push((*which, pause, sent));
    }
    let mut told = [0; 3];
    for (which, pause, sent) in stopped {
        if let Some(pause) = pause {
            pause.resume().await;
        }
        told[which] = answer(sent).await?.status;
    }
    stage.outcome(&servers[0], told).await
}

/// The tables that there are before anybody comes.
struct Stage {
    triple: Triple,
    prefix: String,
    first: BTreeMap<String, String>,
}

impl Stage {
    async fn set(
        server: &Server,
        prefix: &str,
        triple: fn(&str) -> Triple,
    ) -> Result<Stage, String> {
        let triple = triple(prefix);
        let databases = triple.databases.iter().map(|db| create_namespace(db));
        let tables = triple
            .tables
            .iter()
            .map(|(db, name)| create_table(db, name));
        prepare(server, &databases.chain(tables).collect::<Vec<_>>()).await;
        let mut stage = Stage {
            triple,
            prefix: prefix.to_owned(),
            first: BTreeMap::new(),
        };
        for (name, uuid) in stage.uuids(server).await? {
            stage.first.insert(uuid, name);
        }
        Ok(stage)
    }

    async fn uuids(&self, server: &Server) -> Result<BTreeMap<String, String>, String> {
        let mut uuids = BTreeMap::new();
        for database in &self.triple.databases {
            let listed = look(server, &list_tables(database)).await?;
            for identifier in listed["identifiers"].as_array().expect("a list") {
                let name = identifier["name"].as_str().expect("a name");
                let table = look(server, &load_table(database, name)).await?;
                let uuid = table["metadata"]["table-uuid"].as_str().expect("an id");
                let known_as = database.trim_start_matches(&self.prefix);
                uuids.insert(format!("{known_as}.{name}"), uuid.to_owned());
            }
        }
        Ok(uuids)
    }

    async fn outcome(&self, server: &Server, told: [u16; 3]) -> Result<Outcome, String> {
        let uuids = self.uuids(server).await?;
        let which = |uuid| {
            self.first
                .get(&uuid)
                .map_or("new", String::as_str)
                .to_owned()
        };
        let stands = uuids.into_iter().map(|(name, uuid)| (name, which(uuid)));
        let stands = stands.collect();
        Ok(Outcome { told, stands })
    }
}
