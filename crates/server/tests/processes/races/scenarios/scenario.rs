//! What scenarios of several servers share.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tokio::task::JoinHandle;

use crate::control::Pause;
use crate::point::{Point, before};
use crate::races::duel::Wrong;
use crate::requests::{Answer, Request};
use crate::server::Server;
use crate::world::{Engine, World, in_world};

pub type Sent = JoinHandle<Option<Answer>>;
pub type Ended = Result<(), Wrong>;

/// Runs a scenario in a fresh world, and the doctor behind it.
pub async fn play<F>(engine: Engine, scenario: impl FnOnce(Arc<World>) -> F) -> Ended
where
    F: Future<Output = Ended>,
{
    in_world(engine, |world| async move {
        scenario(Arc::clone(&world)).await?;
        world.doctor().await
    })
    .await
}

/// Without the lock, keys still keep two from ending one version, or from answering one request;
/// without those nothing does.
pub async fn unguard(world: &World) {
    if world.engine == Engine::Unprotected {
        let unguarded = "ALTER TABLE history DROP CONSTRAINT history_pkey; \
             ALTER TABLE operation DROP CONSTRAINT operation_pkey";
        world.run_sql(unguarded).await;
    }
}

/// The servers `a`, `b` and `c`. The first makes what servers make at their start: without the
/// lock they would get into each other's way.
pub async fn three(world: &World) -> [Server; 3] {
    let a = world.server("a").await;
    let (b, c) = futures::join!(world.server("b"), world.server("c"));
    unguard(world).await;
    [a, b, c]
}

pub async fn prepare(server: &Server, setup: &[Request]) {
    for request in setup {
        let answer = server.send(request).await.expect("an answer");
        assert!(answer.is_success(), "{request:?}: {answer:?}");
    }
}

/// Sends a request that stops before its COMMIT, its partitions held.
pub async fn stand(server: &Server, request: &Request) -> (Pause, Sent) {
    let (pause, sent) = stop_at(server, before("commit"), request).await;
    let pause = pause.unwrap_or_else(|| panic!("{request:?} never came to COMMIT"));
    (pause, sent)
}

/// Sends a request that stops at a point; no pause if it is answered without coming there.
pub async fn stop_at(server: &Server, point: Point, request: &Request) -> (Option<Pause>, Sent) {
    let pause = server.pause(point).await;
    let mut sent = server.spawn(request);
    let answer = tokio::select! {
        reached = pause.reached() => {
            assert!(reached, "the server ended");
            None
        }
        answer = &mut sent => Some(answer.unwrap()),
    };
    match answer {
        None => (Some(pause), sent),
        Some(answer) => {
            // Whoever comes there next isn't meant.
            pause.resume().await;
            (None, tokio::spawn(async { answer }))
        }
    }
}

pub async fn answer(sent: Sent) -> Result<Answer, Wrong> {
    sent.await.unwrap().ok_or("no answer".to_owned())
}

/// What the request finds, which must be there.
pub async fn look(server: &Server, request: &Request) -> Result<Value, Wrong> {
    let found = server.send(request).await.ok_or("no answer")?;
    match found.is_success() {
        true => Ok(found.body),
        false => Err(format!("{} is told {found:?}", request.path)),
    }
}

pub fn must(holds: bool, wrong: impl FnOnce() -> Wrong) -> Ended {
    if holds { Ok(()) } else { Err(wrong()) }
}

/// All changes that the feed tells, from its start, a few at a time.
pub async fn changes(server: &Server) -> Result<Vec<Value>, Wrong> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let request = Request::get(format!("/v1/changes?limit=3&after={after}"));
        let mut page = look(server, &request).await?;
        let Some(changes) = page["changes"]
            .as_array_mut()
            .filter(|page| !page.is_empty())
        else {
            return Ok(all);
        };
        all.append(changes);
        after = page["next"].as_str().expect("a cursor").to_owned();
    }
}

/// Returns once so many requests wait in the server for their turn, or have it.
pub async fn until_queued(server: &Server, count: u64) {
    while server.measured("anabranch_queue_depth").await < count {}
}

/// How many metadata files lie in the world's warehouse.
pub fn metadata_files(world: &World) -> usize {
    fn below(folder: &Path) -> usize {
        let Ok(entries) = std::fs::read_dir(folder) else {
            return 0;
        };
        let paths = entries.map(|entry| entry.unwrap().path());
        let count = |path: std::path::PathBuf| match path.is_dir() {
            true => below(&path),
            false => usize::from(path.to_string_lossy().ends_with(".metadata.json")),
        };
        paths.map(count).sum()
    }
    below(&world.place.path().join("warehouse"))
}
