//! A PostgreSQL that is put back to an earlier state under living servers: a restored backup, or a
//! standby that was promoted before it had everything.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use anabranch_partition::Reason;
use anabranch_store::LockMode;
use anabranch_store::testing::postgres_store;

use support::{Increment, Server, is_refused, key, partition};

const TABLES: [&str; 4] = ["partition", "current", "history", "change"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_and_cursors_of_what_never_happened_are_not_used() {
    let (store, database) = postgres_store(LockMode::Pessimistic).await;
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
    for _ in 0..2 {
        living
            .run(vec![p], Increment(counter.clone()))
            .await
            .unwrap();
    }
    let page = living.partitions.feed(Some(p), None, 100, Duration::ZERO);
    let cursor = page.await.unwrap().next;
    let put_back: String = TABLES
        .iter()
        .map(|table| format!("DELETE FROM {table}; INSERT INTO {table} TABLE saved_{table};"))
        .collect();
    let put_back = format!("BEGIN; {put_back} COMMIT");
    client.batch_execute(&put_back).await.unwrap();

    // The new line moves on, by somebody else, beyond the revision that the old one had reached.
    let second = other.run(vec![p], Increment(counter.clone())).await;
    assert_eq!(second.unwrap().outcome, 2);
    let third = living.run(vec![p], Increment(counter.clone())).await;
    assert_eq!(
        third.unwrap().outcome,
        3,
        "not the cached three and one more"
    );
    let feed = living
        .partitions
        .feed(Some(p), Some(&cursor), 100, Duration::ZERO);
    assert!(is_refused(&feed.await, Reason::Gone));

    drop(client);
    database.remove().await;
}
