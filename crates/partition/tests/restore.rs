//! A PostgreSQL that is put back to an earlier state under living servers: a restored backup, or a
//! standby that was promoted before it had everything.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use anabranch_partition::Reason;
use anabranch_store::testing::postgres_store;
use anabranch_store::{LockMode, Revision};

use support::{Increment, Server, is_refused, key, partition};

const TABLES: [&str; 4] = ["partition", "current", "history", "change"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_and_cursors_of_what_never_happened_are_not_used() {
    for mode in [LockMode::Pessimistic, LockMode::Optimistic] {
        put_back_under_living_servers(mode).await;
    }
}

async fn put_back_under_living_servers(mode: LockMode) {
    let (store, database) = postgres_store(mode).await;
    let client = database.client().await;
    let (living, other) = (Server::over(&store), Server::over(&store));
    let p = partition(1);
    living.found(p).await;
    let counter = key(p, "counter");
    living
        .run(vec![p], Increment(counter.clone()))
        .await
        .unwrap();
    for table in TABLES {
        let save = format!("CREATE TABLE saved_{table} AS TABLE {table}");
        client.batch_execute(&save).await.unwrap();
    }
    let mut reached = Revision::ZERO;
    for _ in 0..2 {
        let run = living.run(vec![p], Increment(counter.clone())).await;
        reached = run.unwrap().revision;
    }
    let page = living.partitions.feed(Some(p), None, 100, Duration::ZERO);
    let cursor = page.await.unwrap().next;
    let put_back: String = TABLES
        .iter()
        .map(|table| format!("DELETE FROM {table}; INSERT INTO {table} TABLE saved_{table};"))
        .collect();
    let put_back = format!("BEGIN; {put_back} COMMIT");
    client.batch_execute(&put_back).await.unwrap();

    // The new line moves on elsewhere, beyond the revision that the old one had reached: the trap
    // is that the log since then doesn't name the counter.
    let elsewhere = other.put(&key(p, "elsewhere"), "x").await.unwrap();
    assert!(elsewhere.revision > reached);
    let since = store.changes_between(p, reached, elsewhere.revision, None, 100);
    let since = since.await.unwrap();
    assert!(since.iter().all(|change| change.key != counter));
    let second = living.run(vec![p], Increment(counter.clone())).await;
    assert_eq!(
        second.unwrap().outcome,
        2,
        "not the cached three and one more"
    );
    let feed = living
        .partitions
        .feed(Some(p), Some(&cursor), 100, Duration::ZERO);
    assert!(is_refused(&feed.await, Reason::Gone));

    drop(client);
    database.remove().await;
}
