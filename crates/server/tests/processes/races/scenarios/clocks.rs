//! The store's time an hour ahead in one server and an hour behind in the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::scenario::{Ended, changes, must, prepare, unguard};
use crate::requests::*;
use crate::server::Server;
use crate::world::World;

const HOUR_IN_MICROS: i64 = 3_600_000_000;
const TURNS: usize = 8;

/// Whether partitions remember up to where they are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    Kept,
    Lost,
}

pub async fn servers_an_hour_apart_keep_one_order(world: Arc<World>, memory: Memory) -> Ended {
    let a = world.server("a").await;
    let b = world.server("b").await;
    unguard(&world).await;
    a.control.shift_clock(HOUR_IN_MICROS).await;
    b.control.shift_clock(-HOUR_IN_MICROS).await;
    let setup = [
        create_namespace("db"),
        create_namespace("db.in"),
        create_table("db", "t"),
    ];
    prepare(&a, &setup).await;
    let (mut last, mut told) = (0, Vec::new());
    for turn in 0..TURNS {
        let server = [&a, &b][turn % 2];
        let key = format!("k{turn}");
        let requests = [
            commit("db", "t", json!([]), set_property(&key, "1")),
            set_namespace_property("db.in", &key, "1"),
            create_namespace(&format!("db.{key}")),
        ];
        for request in requests {
            if memory == Memory::Lost {
                let forget = "UPDATE partition SET clock = 0";
                world.run_sql(forget).await;
            }
            let revision = commit_at(server, &request).await?;
            must(revision > last, || {
                format!("{} got {revision}, behind {last}", request.path)
            })?;
            last = revision;
            told.push(revision);
        }
    }
    keys_are_told_again(&a, &b).await?;
    both_show_the_same(&a, &b).await?;
    let metadata = body(&b, &load_table("db", "t")).await?["metadata"].take();
    documents_go_forward(&metadata)?;
    feeds_follow_the_order(&a, &b, &told).await
}

/// Sends what must be applied; answers the revision that it made.
async fn commit_at(server: &Server, request: &Request) -> Result<i64, String> {
    let (answer, headers) = server.ask(request).await.ok_or("no answer")?;
    must(answer.is_success(), || {
        format!("{} told {answer:?}", request.path)
    })?;
    let revision = headers["anabranch-revision"].to_str().unwrap();
    let (_, time) = revision.split_once('-').expect("a reference and its time");
    Ok(i64::from_str_radix(time, 16).unwrap())
}

/// What one recorded isn't over for the other.
async fn keys_are_told_again(a: &Server, b: &Server) -> Ended {
    for (number, (first, second)) in [(a, b), (b, a)].into_iter().enumerate() {
        let request = create_namespace(&format!("db.keyed{number}")).keyed();
        let made = commit_at(first, &request).await?;
        let again = commit_at(second, &request).await?;
        must(again == made, || format!("told {again} the second time"))?;
    }
    Ok(())
}

/// A state has the same name, content and tag on both.
async fn both_show_the_same(a: &Server, b: &Server) -> Ended {
    let requests = [
        load_table("db", "t"),
        load_namespace("db.in"),
        list_tables("db"),
        Request::get("/iceberg/v1/lake/namespaces?parent=db"),
    ];
    for request in requests {
        let (answer, headers) = a.ask(&request).await.ok_or("no answer")?;
        let (other, others) = b.ask(&request).await.ok_or("no answer")?;
        for name in ["anabranch-revision", "etag"] {
            must(headers.get(name) == others.get(name), || {
                format!("{}: {name} differs", request.path)
            })?;
        }
        must(answer == other, || format!("{answer:?} and {other:?}"))?;
        if let Some(tag) = headers.get("etag") {
            let unless = request.unless(tag.to_str().unwrap());
            let status = b.send(&unless).await.ok_or("no answer")?.status;
            must(status == 304, || format!("{status} for what is known"))?;
        }
    }
    Ok(())
}

/// Readers search the logs of a document by time.
fn documents_go_forward(metadata: &Value) -> Ended {
    let log = metadata["metadata-log"].as_array().expect("a log");
    let logged = log.iter().map(|entry| &entry["timestamp-ms"]);
    let times = logged.chain([&metadata["last-updated-ms"]]);
    let times: Vec<_> = times.map(|time| time.as_i64().expect("a time")).collect();
    must(times.len() == TURNS + 1 && times.is_sorted(), || {
        format!("the document goes back in time: {times:?}")
    })
}

async fn feeds_follow_the_order(a: &Server, b: &Server, told: &[i64]) -> Ended {
    let (feed, other) = (changes(a).await?, changes(b).await?);
    must(feed == other, || {
        "the servers tell different changes".to_owned()
    })?;
    let revision = |change: &Value| -> i64 {
        let text = change["revision"].as_str().expect("a number");
        text.parse().unwrap()
    };
    let mut order: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for change in &feed {
        let partition = change["partition"].to_string();
        order.entry(partition).or_default().push(revision(change));
    }
    for revisions in order.values() {
        must(revisions.is_sorted(), || {
            format!("out of order: {revisions:?}")
        })?;
    }
    let mut all: Vec<i64> = feed.iter().map(revision).collect();
    all.dedup();
    all.retain(|revision| told.contains(revision));
    must(all == told, || {
        format!("told {told:?}, but the feed has {all:?}")
    })
}

async fn body(server: &Server, request: &Request) -> Result<Value, String> {
    super::scenario::look(server, request).await
}
