//! Batches: revisions, isolation, answers that wait for COMMIT, lost answers, operation keys.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use anabranch_partition::{Config, Reason, RunError, Subject};
use anabranch_store::fault::{Fault, When};
use anabranch_store::{Store, StoreError};
use futures::future::join_all;

use support::{Increment, Put, Server, is_refused, key, partition};

on_every_engine![
    every_accepted_command_has_its_own_rising_revision,
    a_refused_command_leaves_no_trace_in_its_batch,
    a_refusal_that_rests_on_a_failed_batch_is_not_given,
    no_increment_of_two_servers_is_lost,
    revisions_rise_although_the_stores_clock_steps_back,
    a_lost_commit_answer_is_found_out_and_applied_once,
    a_lost_commit_request_is_done_again,
    an_outcome_that_cannot_be_looked_up_yet_stays_unknown,
    a_commit_that_lands_late_is_applied_once,
    an_outcome_that_was_pruned_stays_unknown,
    a_repeated_key_gets_the_first_answer,
    a_key_for_another_request_is_refused,
    one_key_in_two_partitions_at_the_same_time_is_used_once,
    a_refusal_is_repeated_under_its_key,
    two_callers_with_one_key_are_applied_once,
    one_command_that_the_store_rejects_does_not_take_its_batch_along,
    a_full_queue_refuses_at_once,
    opposite_lock_orders_do_not_deadlock,
    batches_that_wait_for_one_partition_leave_the_others_alone,
];

async fn every_accepted_command_has_its_own_rising_revision(store: Arc<dyn Store>) {
    let server = Server::over(&store);
    let p = partition(1);
    server.found(p).await;
    let hold = server.faults.pause("begin", When::Before, 1);
    let first_key = key(p, "first");
    let blocker = server.put(&first_key, "1");
    let batch = async {
        hold.arrived().await;
        let begun = server.faults.hits("begin", When::Before);
        let names: Vec<_> = (0..20).map(|n| key(p, &format!("t{n}"))).collect();
        let puts = join_all(names.iter().map(|at| server.put(at, "1")));
        let (answers, ()) = tokio::join!(puts, async { hold.resume() });
        let transactions = server.faults.hits("begin", When::Before) - begun;
        assert_eq!(transactions, 1, "all of them in one transaction");
        answers
    };
    let (first, answers) = tokio::join!(blocker, batch);
    let mut last = first.unwrap().revision;
    for answer in answers {
        let revision = answer.unwrap().revision;
        assert!(revision > last, "in the order in which they came");
        last = revision;
    }
}

async fn a_refused_command_leaves_no_trace_in_its_batch(store: Arc<dyn Store>) {
    let server = Server::over(&store);
    let p = partition(1);
    server.found(p).await;
    let (a, b) = (key(p, "a"), key(p, "b"));
    let hold = server.faults.pause("begin", When::Before, 1);
    let put = |at: &anabranch_store::Key, object: u64| Put {
        at: at.clone(),
        object: Some(object),
        body: object.to_string(),
        expect_absent: true,
    };
    let blocker = server.run(vec![p], put(&key(p, "first"), 9));
    let batch = async {
        hold.arrived().await;
        let waiting = join_all([
            server.run(vec![p], put(&a, 1)),
            server.run(vec![p], put(&a, 2)),
            server.run(vec![p], put(&b, 3)),
        ]);
        let release = async { hold.resume() };
        let (answers, ()) = tokio::join!(waiting, release);
        answers
    };
    let (first, answers) = tokio::join!(blocker, batch);
    assert!(first.is_ok());
    assert!(answers[0].is_ok() && answers[2].is_ok());
    assert!(is_refused(
        &answers[1],
        Reason::AlreadyExists(Subject::Table)
    ));
    assert_eq!(server.body(&a).await.as_deref(), Some("1"));
}

/// The batch of both fails, then the first alone: the second finds the name free, which in the
/// batch was taken.
async fn a_refusal_that_rests_on_a_failed_batch_is_not_given(store: Arc<dyn Store>) {
    let server = Server::over(&store);
    let p = partition(1);
    server.found(p).await;
    let a = key(p, "a");
    let put = |object: u64| Put {
        at: a.clone(),
        object: Some(object),
        body: object.to_string(),
        expect_absent: true,
    };
    let hold = server.faults.pause("begin", When::Before, 1);
    let blocker = server.run(vec![p], Increment(key(p, "z")));
    let batch = async {
        hold.arrived().await;
        let waiting = join_all([server.run(vec![p], put(1)), server.run(vec![p], put(2))]);
        // The first commit is the blocker's.
        for nth in [2, 3] {
            let error = StoreError::Failed {
                detail: "injected".to_owned(),
            };
            let faults = &server.faults;
            faults.at("commit", When::Before, nth, Fault::Error(error));
        }
        let (answers, ()) = tokio::join!(waiting, async { hold.resume() });
        answers
    };
    let (first, answers) = tokio::join!(blocker, batch);
    assert!(first.is_ok());
    assert_eq!(answers[0], Err(RunError::Failed));
    assert!(answers[1].is_ok(), "{answers:?}");
    assert_eq!(server.body(&a).await.as_deref(), Some("2"));
}

async fn no_increment_of_two_servers_is_lost(store: Arc<dyn Store>) {
    let servers = [Server::over(&store), Server::over(&store)];
    let p = partition(1);
    servers[0].found(p).await;
    let counter = key(p, "counter");
    let runs = (0..60).map(|n| servers[n % 2].run(vec![p], Increment(counter.clone())));
    let answers = join_all(runs).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(servers[0].body(&counter).await.as_deref(), Some("60"));
}

async fn revisions_rise_although_the_stores_clock_steps_back(store: Arc<dyn Store>) {
    let server = Server::over(&store);
    let p = partition(1);
    server.found(p).await;
    let a = key(p, "a");
    let before = server.put(&a, "1").await.unwrap().revision;
    server.faults.shift_clock(-3_600_000_000);
    let after = server.put(&a, "2").await.unwrap().revision;
    assert_eq!(after.0, before.0 + 1);
    assert_eq!(
        server.body_at(&a, before).await.unwrap().as_deref(),
        Some("1")
    );
}

async fn a_lost_commit_answer_is_found_out_and_applied_once(store: Arc<dyn Store>) {
    let server = Server::over(&store);
    let p = partition(1);
    server.found(p).await;
    let counter = key(p, "counter");
    server
        .faults
        .at("commit", When::After, 1, Fault::LostAnswer);
    let answer = server.run(vec![p], Increment(counter.clone())).await;
    assert_eq!(answer.unwrap().outcome, 1);
    assert_eq!(server.body(&counter).await.as_deref(), Some("1"));
}

async fn a_lost_commit_request_is_done_again(store: Arc<dyn Store>) {
    let server = Server::over(&store);
    let p = partition(1);
    server.found(p).await;
    let counter = key(p, "counter");
    server
        .faults
        .at("commit", When::Before, 1, Fault::LostAnswer);
    let answer = server.run(vec![p], Increment(counter.clone())).await;
    assert_eq!(answer.unwrap().outcome, 1);
    assert_eq!(server.body(&counter).await.as_deref(), Some("1"));
}

/// While the outcome can't be looked up under the same partitions, it stays unknown.
async fn an_outcome_that_cannot_be_looked_up_yet_stays_unknown(store: Arc<dyn Store>) {
    let config = Config {
        resolve_for: std::time::Duration::from_millis(200),
        ..Config::default()
    };
    let server = Server::with(&store, config);
    let p = partition(1);
    server.found(p).await;
    let counter = key(p, "counter");
    server
        .faults
        .at("commit", When::After, 1, Fault::LostAnswer);
    for nth in 2..200 {
        let error = StoreError::Unavailable {
            detail: "injected".to_owned(),
        };
        server
            .faults
            .at("begin", When::Before, nth, Fault::Error(error));
    }
    let answer = server.run(vec![p], Increment(counter.clone())).await;
    assert_eq!(answer, Err(RunError::Unknown));
    assert_eq!(
        Server::over(&store).body(&counter).await.as_deref(),
        Some("1")
    );
}

/// The lookup takes the same partitions, so it waits for the straggler or makes it fail. Begun
/// without them it would find nothing, and the command would be applied twice.
async fn a_commit_that_lands_late_is_applied_once(store: Arc<dyn Store>) {
    let server = Server::over(&store);
    let p = partition(1);
    server.found(p).await;
    let counter = key(p, "counter");
    let straggler = server.faults.straggle_next_commit();
    // The second transaction looks the commit up; a third one means that it was called absent.
    let again = server.faults.pause("begin", When::Before, 3);
    let late = async {
        let patience = std::time::Duration::from_millis(500);
        let called_absent = tokio::time::timeout(patience, again.arrived()).await;
        again.resume();
        straggler.arrive().await;
        called_absent.is_ok()
    };
    let run = server.run(vec![p], Increment(counter.clone()));
    let (answer, called_absent) = tokio::join!(run, late);
    let guards_by_writing = store.engine() == "postgres-optimistic";
    assert_eq!(
        called_absent, guards_by_writing,
        "elsewhere the lookup waits"
    );
    assert_eq!(answer.unwrap().outcome, 1);
    assert_eq!(server.body(&counter).await.as_deref(), Some("1"));
}

async fn an_outcome_that_was_pruned_stays_unknown(store: Arc<dyn Store>) {
    let (server, other) = (Server::over(&store), Server::over(&store));
    let p = partition(1);
    server.found(p).await;
    let counter = key(p, "counter");
    server
        .faults
        .at("commit", When::After, 1, Fault::LostAnswer);
    let looked_up = server.faults.pause("begin", When::Before, 2);
    let meanwhile = async {
        looked_up.arrived().await;
        other.put(&key(p, "other"), "1").await.unwrap();
        let nothing = std::time::Duration::ZERO;
        other.partitions.prune(p, nothing).await.unwrap();
        looked_up.resume();
    };
    let run = server.run(vec![p], Increment(counter.clone()));
    let (answer, ()) = tokio::join!(run, meanwhile);
    assert_eq!(answer, Err(RunError::Unknown));
    assert_eq!(server.body(&counter).await.as_deref(), Some("1"));
}

async fn a_repeated_key_gets_the_first_answer(store: Arc<dyn Store>) {
    let servers = [Server::over(&store), Server::over(&store)];
    let p = partition(1);
    servers[0].found(p).await;
    let counter = key(p, "counter");
    let mut answers = Vec::new();
    for server in &servers {
        let increment = Increment(counter.clone());
        answers.push(server.keyed(vec![p], increment, "k", "f").await.unwrap());
    }
    assert_eq!((answers[0].outcome, answers[1].outcome), (1, 1));
    assert_eq!(answers[0].revision, answers[1].revision);
    assert!(!answers[0].replayed && answers[1].replayed);
    assert_eq!(servers[0].body(&counter).await.as_deref(), Some("1"));
}

async fn a_key_for_another_request_is_refused(store: Arc<dyn Store>) {
    let server = Server::over(&store);
    let (p, q) = (partition(1), partition(2));
    server.found(p).await;
    server.found(q).await;
    let first = server
        .keyed(vec![p], Increment(key(p, "c")), "k", "f")
        .await;
    assert!(first.is_ok());
    let other = server
        .keyed(vec![p], Increment(key(p, "c")), "k", "g")
        .await;
    assert!(is_refused(&other, Reason::KeyReused));
    let elsewhere = server
        .keyed(vec![q], Increment(key(q, "c")), "k", "h")
        .await;
    assert!(is_refused(&elsewhere, Reason::KeyReused));
    assert_eq!(server.body(&key(q, "c")).await, None);
}

/// They hold nothing in common: the key of the record is where they meet (e11). Where the whole
/// store is one lane, the one that stands has to stand before its lock.
async fn one_key_in_two_partitions_at_the_same_time_is_used_once(store: Arc<dyn Store>) {
    let (late, early) = (Server::over(&store), Server::over(&store));
    let (p, q) = (partition(1), partition(2));
    late.found(p).await;
    late.found(q).await;
    let stands_before = if store.is_serial() { "begin" } else { "commit" };
    let hold = late.faults.pause(stands_before, When::Before, 1);
    let begun = late.faults.hits("begin", When::Before);
    let first = late.keyed(vec![p], Increment(key(p, "c")), "k", "f");
    let second = async {
        hold.arrived().await;
        let answer = early.keyed(vec![q], Increment(key(q, "c")), "k", "g").await;
        hold.resume();
        answer
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(second.unwrap().outcome, 1);
    assert!(is_refused(&first, Reason::KeyReused), "{first:?}");
    assert_eq!(late.body(&key(p, "c")).await, None);
    let attempts = late.faults.hits("begin", When::Before) - begun;
    assert_eq!(
        attempts,
        if store.is_serial() { 1 } else { 2 },
        "a lost race"
    );
}

async fn a_refusal_is_repeated_under_its_key(store: Arc<dyn Store>) {
    let server = Server::over(&store);
    let p = partition(1);
    server.found(p).await;
    let a = key(p, "a");
    server.put(&a, "1").await.unwrap();
    let put = Put {
        at: a.clone(),
        object: Some(7),
        body: "2".to_owned(),
        expect_absent: true,
    };
    let taken = Reason::AlreadyExists(Subject::Table);
    let first = server.keyed(vec![p], put.clone(), "k", "f").await;
    assert!(is_refused(&first, taken));
    let free = Put {
        at: key(p, "b"),
        ..put
    };
    let again = server.keyed(vec![p], free, "k", "f").await;
    assert!(is_refused(&again, taken));
}

async fn two_callers_with_one_key_are_applied_once(store: Arc<dyn Store>) {
    let servers = [Server::over(&store), Server::over(&store)];
    let p = partition(1);
    servers[0].found(p).await;
    let counter = key(p, "counter");
    let runs = (0..16).map(|n| {
        let increment = Increment(counter.clone());
        servers[n % 2].keyed(vec![p], increment, "k", "f")
    });
    let answers = join_all(runs).await;
    let fresh = answers
        .iter()
        .filter(|answer| !answer.as_ref().unwrap().replayed)
        .count();
    assert_eq!(fresh, 1);
    assert_eq!(servers[0].body(&counter).await.as_deref(), Some("1"));
}

async fn one_command_that_the_store_rejects_does_not_take_its_batch_along(store: Arc<dyn Store>) {
    let server = Server::over(&store);
    let p = partition(1);
    server.found(p).await;
    let error = StoreError::Failed {
        detail: "injected".to_owned(),
    };
    let hold = server.faults.pause("begin", When::Before, 1);
    let blocker = server.run(vec![p], Increment(key(p, "first")));
    let batch = async {
        hold.arrived().await;
        let names = ["a", "b", "c"].map(|name| key(p, name));
        let waiting = join_all(names.map(|at| server.run(vec![p], Increment(at))));
        // The blocker's commit is the first, the batch's the second.
        server
            .faults
            .at("commit", When::Before, 2, Fault::Error(error));
        let (answers, ()) = tokio::join!(waiting, async { hold.resume() });
        answers
    };
    let (first, answers) = tokio::join!(blocker, batch);
    assert!(first.is_ok());
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
}

async fn a_full_queue_refuses_at_once(store: Arc<dyn Store>) {
    let config = Config {
        queue: 2,
        ..Config::default()
    };
    let server = Server::with(&store, config);
    let p = partition(1);
    server.found(p).await;
    let hold = server.faults.pause("begin", When::Before, 1);
    let waiting = join_all(["a", "b"].map(|name| server.run(vec![p], Increment(key(p, name)))));
    let probe = async {
        hold.arrived().await;
        let refused = server.run(vec![p], Increment(key(p, "c"))).await;
        hold.resume();
        refused
    };
    let (answers, refused) = tokio::join!(waiting, probe);
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(refused, Err(RunError::Overloaded));
    assert_eq!(server.body(&key(p, "c")).await, None);
}

async fn opposite_lock_orders_do_not_deadlock(store: Arc<dyn Store>) {
    let servers = [Server::over(&store), Server::over(&store)];
    let (p, q) = (partition(1), partition(2));
    servers[0].found(p).await;
    servers[0].found(q).await;
    let runs = (0..40).map(|n| {
        let order = if n % 4 < 2 { vec![p, q] } else { vec![q, p] };
        let at = if n % 4 < 2 { key(p, "c") } else { key(q, "c") };
        servers[n % 2].run(order, Increment(at))
    });
    let answers = join_all(runs).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(servers[0].body(&key(p, "c")).await.as_deref(), Some("20"));
    assert_eq!(servers[0].body(&key(q, "c")).await.as_deref(), Some("20"));
}

/// More of them wait than there are connections: they wait in the process, by gates.
async fn batches_that_wait_for_one_partition_leave_the_others_alone(store: Arc<dyn Store>) {
    const MORE_THAN_CONNECTIONS: u64 = 40;
    if store.is_serial() {
        return;
    }
    let server = Server::over(&store);
    let (shared, apart) = (partition(1), partition(2));
    let others: Vec<_> = (3..3 + MORE_THAN_CONNECTIONS).map(partition).collect();
    for id in [shared, apart].iter().chain(&others) {
        server.found(*id).await;
    }
    let hold = server.faults.pause("commit", When::Before, 1);
    let begun = server.faults.hits("begin", When::Before);
    let put = |id| server.run(vec![shared, id], Increment(key(id, "c")));
    let waiting = join_all(others.iter().map(|id| put(*id)));
    let probe = async {
        hold.arrived().await;
        let free = server.put(&key(apart, "a"), "1").await;
        let wanted = server.faults.hits("begin", When::Before) - begun;
        hold.resume();
        (free, wanted)
    };
    let (answers, (free, wanted)) = tokio::join!(waiting, probe);
    assert!(free.is_ok(), "{free:?}");
    assert_eq!(wanted, 2, "of those that wait, one has a connection");
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
}
