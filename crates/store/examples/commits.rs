//! Prints commits per second and statements per commit, alone and in batches of 32:
//! `cargo run --release -p anabranch-store --features testing --example commits -- URL`, where the
//! URL names an empty store, such as `sqlite:/tmp/x.db`.
#![allow(clippy::unwrap_used)]

use std::time::Instant;

use anabranch_store::suite::world::{Command, World, object, put, table};
use anabranch_store::{Leaf, ObjectId, OpenOptions, OperationRecord, OperationState, PartitionId};
use anabranch_store::{Path, StoreTime, open};

const TABLES: usize = 32;

#[tokio::main]
async fn main() {
    let url = std::env::args().nth(1).expect("the URL of an empty store");
    let options = OpenOptions {
        migrate: true,
        ..OpenOptions::default()
    };
    let world = World::new(open(&url, &options).await.unwrap());
    let database = world.database("db").await;
    let catalog = world.partition(database).await.parent;
    let metalake = world.partition(catalog).await.parent;
    let tables: Vec<ObjectId> = (0..TABLES).map(|_| object()).collect();
    let mut number = 0;
    let mut commit_of = |index: usize| {
        number += 1;
        let name = format!("table-{index}");
        let record = OperationRecord {
            key: format!("operation-{number}"),
            principal: "bench".to_owned(),
            fingerprint: "0123456789abcdef".to_owned(),
            state: OperationState::Done,
            answer: "{}".to_owned(),
            at: StoreTime(0),
            expires: StoreTime(i64::MAX),
        };
        let body = format!("{{\"location\":\"s3://bucket/{name}/{number}.json\"}}");
        [
            put(&table(database, &name), tables[index], &body),
            Command::Record(record),
        ]
    };
    let path = Path {
        metalake: format!("lake-{:x}", metalake.0),
        catalog: Some("cat".to_owned()),
        database: Some("db".to_owned()),
        leaf: Some(Leaf {
            scope: String::new(),
            class: anabranch_store::Class::Table,
            name: "table-0".to_owned(),
        }),
    };
    println!("{}", world.store.engine());
    for (what, batch, rounds) in [
        ("warm-up", 1, 200),
        ("alone", 1, 2000),
        ("in batches", TABLES, 300),
    ] {
        let statements = world.store.statements();
        let started = Instant::now();
        for _ in 0..rounds {
            world
                .store
                .resolve(std::slice::from_ref(&path))
                .await
                .unwrap();
            let commands: Vec<Command> = (0..batch).flat_map(&mut commit_of).collect();
            world.write(&[database] as &[PartitionId], &commands).await;
        }
        let commits = (batch * rounds) as f64;
        let per_second = commits / started.elapsed().as_secs_f64();
        let statements = (world.store.statements() - statements) as f64 / commits;
        println!("{what:>10}: {per_second:>8.0} commits/s, {statements:.2} statements per commit");
    }
    let started = Instant::now();
    for _ in 0..3000 {
        world
            .store
            .resolve(std::slice::from_ref(&path))
            .await
            .unwrap();
    }
    let per_second = 3000.0 / started.elapsed().as_secs_f64();
    println!("{:>10}: {per_second:>8.0} resolved paths/s", "reading");
    world.assert_sound().await;
}
