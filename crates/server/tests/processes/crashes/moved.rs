//! A request about branches comes again after the server was killed, and what it is about has moved
//! meanwhile.

use serde_json::{Value, json};

use super::matrix::Wrong;
use crate::point::{after, before};
use crate::requests::*;
use crate::server::Server;
use crate::trees::*;
use crate::world::{Engine, World, in_world};

/// When the server gets SIGKILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Killed {
    /// Nothing was applied.
    BeforeCommit,
    /// All was applied, and nobody told.
    AfterCommit,
}

/// What is asked for of a database, and where the result is to be seen.
struct Scene {
    request: Request,
    result: String,
}

type Made = fn(&str) -> Scene;

fn branch_of(database: &str) -> Scene {
    Scene {
        request: create_branch(database, "new", "x"),
        result: on(database, "new"),
    }
}

fn tag_of(database: &str) -> Scene {
    Scene {
        request: create_tag(database, "new", "x"),
        result: at(database, "new"),
    }
}

fn merge_of(database: &str) -> Scene {
    Scene {
        request: merge(database, "x", "main"),
        result: database.to_owned(),
    }
}

async fn done(server: &Server, request: &Request) -> Result<Value, Wrong> {
    match server.send(request).await {
        Some(answer) if answer.is_success() => Ok(answer.body),
        other => Err(format!("{}: {other:?}", request.path)),
    }
}

fn set(database: &str, key: &str) -> Request {
    commit(database, "t", json!([]), set_property(key, "1"))
}

/// Sends the request to a server that is killed; another one takes its place.
async fn killed(
    world: &World,
    server: Server,
    request: &Request,
    killed: Killed,
) -> Result<Server, Wrong> {
    let point = match killed {
        Killed::BeforeCommit => before("commit"),
        Killed::AfterCommit => after("commit"),
    };
    let pause = server.pause(point).await;
    let sent = server.spawn(request);
    assert!(pause.reached().await);
    server.kill().await;
    match sent.await.unwrap() {
        None => Ok(world.server("server").await),
        told => Err(format!(
            "told {told:?} by a server that never ended its work"
        )),
    }
}

async fn forked(server: &Server, database: &str) -> Result<(), Wrong> {
    let setup = [
        create_namespace(database),
        create_table(database, "t"),
        create_branch(database, "x", "main"),
        set(&on(database, "x"), "first"),
    ];
    for request in &setup {
        done(server, request).await?;
    }
    Ok(())
}

/// Which of the two changes of the source the result has after the retry.
async fn retried(
    world: &World,
    made: Made,
    is_keyed: bool,
    when: Killed,
) -> Result<(bool, bool), Wrong> {
    let server = world.server("server").await;
    let database = "db";
    forked(&server, database).await?;
    let Scene { request, result } = made(database);
    let request = if is_keyed { request.keyed() } else { request };
    let server = killed(world, server, &request, when).await?;
    let mut recorded = None;
    if let Some(key) = &request.key {
        let operation = Request::get(format!("/v1/operations/{key}"));
        let told = server.send(&operation).await.ok_or("no answer")?;
        let expected = match when {
            Killed::BeforeCommit => 404,
            Killed::AfterCommit => 200,
        };
        if told.status != expected {
            return Err(format!("the operation is told as {told:?}"));
        }
        recorded = told.is_success().then_some(told.body);
    }
    done(&server, &set(&on(database, "x"), "later")).await?;
    let second = done(&server, &request).await?;
    if let Some(recorded) = recorded {
        let revision = &second["reference"]["revision"];
        let of_record = match &recorded["answer"]["reference"]["revision"] {
            Value::Null => &recorded["answer"]["revision"],
            of_merge => of_merge,
        };
        if recorded["status"] != 200 || revision != of_record || of_record.is_null() {
            return Err(format!("recorded {recorded}, told {second}"));
        }
    }
    let third = done(&server, &request).await?;
    if is_keyed && third != second {
        return Err(format!("told {second}, then {third}"));
    }
    let table = done(&server, &load_table(&result, "t")).await?;
    let has = |key: &str| table["metadata"]["properties"][key] == "1";
    let seen = (has("first"), has("later"));
    server.stop().await;
    world.doctor().await?;
    Ok(seen)
}

async fn sees(made: Made, is_keyed: bool, when: Killed) -> (bool, bool) {
    let seen = in_world(Engine::Sqlite, |world| async move {
        retried(&world, made, is_keyed, when).await
    });
    seen.await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_is_told_the_first_answer_though_the_source_has_moved() {
    for made in [branch_of, tag_of, merge_of] {
        let seen = sees(made, true, Killed::AfterCommit).await;
        assert_eq!(seen, (true, false), "once applied, it is as it was then");
        let seen = sees(made, true, Killed::BeforeCommit).await;
        assert_eq!(seen, (true, true), "never applied, it is as it is now");
    }
}

/// The negative control.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_key_a_merge_that_comes_again_merges_what_came_since() {
    let seen = sees(merge_of, false, Killed::AfterCommit).await;
    assert_eq!(seen, (true, true));
}

/// Whether a branch that got the name of a deleted one outlives the repeated deletion.
async fn namesake_stands(is_keyed: bool) -> bool {
    let ended = in_world(Engine::Sqlite, |world| async move {
        let server = world.server("server").await;
        forked(&server, "db").await?;
        let request = delete_reference("db", "x");
        let request = if is_keyed { request.keyed() } else { request };
        let server = killed(&world, server, &request, Killed::AfterCommit).await?;
        done(&server, &create_branch("db", "x", "main")).await?;
        done(&server, &request).await?;
        let shown = server.send(&show_reference("db", "x")).await;
        server.stop().await;
        world.doctor().await?;
        Ok::<_, Wrong>(shown.ok_or("no answer")?.is_success())
    });
    ended.await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_that_comes_again_leaves_the_next_branch_of_that_name() {
    assert!(namesake_stands(true).await);
    // The negative control.
    assert!(!namesake_stands(false).await);
}
