//! Every command while the machine doesn't let the server write, and afterwards.

use std::sync::Arc;

use serde_json::json;

use super::Named;
use super::commands::Command;
use super::matrix::{Matrix, Reference, Wrong, judge};
use super::observation::short;
use super::surroundings::{self, SmallDisk};
use crate::requests::{Answer, Request, create_namespace, set_namespace_property};
use crate::world::{Engine, World, in_world};

/// Writes that still find room after a disk is full, at most: the log of the store is used again.
const MOST_WRITES: usize = 5000;
/// All commands, their dry runs and the log of the store.
const DISK: &str = "48m";

/// A command that was prepared when all was well.
struct Waiting {
    name: &'static str,
    tag: String,
    command: Command,
    reference: Reference,
    first: Option<Answer>,
}

/// What goes wrong, and what is said of it.
trait Trouble {
    fn begin(&self, matrix: &Matrix);
    fn end(&self, matrix: &Matrix);
    /// Whatever else has to be put back while no server runs.
    fn clear(&self, _: &World) {}
    /// The store itself can't be written.
    const OF_STORE: bool;
    /// One of these stands in each refusal.
    const WORDS: &'static [&'static str];
}

struct FullDisk(SmallDisk);

impl Trouble for FullDisk {
    const OF_STORE: bool = true;
    const WORDS: &'static [&'static str] = &["no space left", "takes no more"];

    fn begin(&self, _: &Matrix) {
        self.0.fill();
    }

    fn end(&self, _: &Matrix) {
        self.0.free();
    }

    fn clear(&self, world: &World) {
        self.0.give_up(world);
    }
}

struct FullWarehouse(SmallDisk);

impl Trouble for FullWarehouse {
    const OF_STORE: bool = false;
    const WORDS: &'static [&'static str] = &["no space left"];

    fn begin(&self, _: &Matrix) {
        self.0.fill();
    }

    fn end(&self, _: &Matrix) {
        self.0.free();
    }

    fn clear(&self, world: &World) {
        self.0.give_up(world);
    }
}

/// As a quota or `ulimit -f` has it.
struct Limit;

impl Trouble for Limit {
    const OF_STORE: bool = true;
    const WORDS: &'static [&'static str] = &["no space left", "takes no more"];

    fn begin(&self, matrix: &Matrix) {
        surroundings::limit(matrix.server_ref(), "0");
    }

    fn end(&self, matrix: &Matrix) {
        surroundings::limit(matrix.server_ref(), "unlimited");
    }
}

struct ReadOnly;

impl Trouble for ReadOnly {
    const OF_STORE: bool = false;
    const WORDS: &'static [&'static str] = &["refused access"];

    fn begin(&self, matrix: &Matrix) {
        surroundings::let_write(&matrix.world.place.path().join("data/warehouse"), false);
    }

    fn end(&self, matrix: &Matrix) {
        surroundings::let_write(&matrix.world.place.path().join("data/warehouse"), true);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_full_disk_nothing_is_lost_and_all_goes_on_when_there_is_room() {
    on_small_disk("data", FullDisk).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_full_warehouse_nothing_is_lost_and_what_needs_no_file_is_served() {
    on_small_disk("data/warehouse", FullWarehouse).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beyond_a_quota_nothing_is_lost_and_all_goes_on_when_it_is_raised() {
    let ended = in_world(Engine::Sqlite, |world| async move {
        surroundings::ignore_limits(&world);
        endure(world, &Limit).await
    });
    ended.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_read_only_warehouse_nothing_is_lost_and_what_needs_no_file_is_served() {
    let ended = in_world(Engine::Sqlite, |world| async move {
        surroundings::obey_permissions(&world);
        endure(world, &ReadOnly).await
    });
    ended.await.unwrap();
}

async fn on_small_disk<T: Trouble>(folder: &str, trouble: fn(SmallDisk) -> T) {
    let ended = in_world(Engine::Sqlite, |world| async move {
        match SmallDisk::at(&world, folder, DISK).await {
            Some(disk) => endure(world, &trouble(disk)).await,
            None => {
                super::progress(
                    "NOT RUN: this user may mount nothing here; what a quota does is tested",
                );
                Ok(())
            }
        }
    });
    ended.await.unwrap();
}

async fn endure<T: Trouble>(world: Arc<World>, trouble: &T) -> Result<(), Wrong> {
    let mut matrix = Matrix::open(world).await;
    let mut all = Vec::new();
    for (name, command) in super::ALL {
        all.push(prepared(&mut matrix, (*name, *command)).await?);
    }
    matrix.asked(&create_namespace("writes")).await?;
    trouble.begin(&matrix);
    let mut refused = 0;
    for waiting in &mut all {
        if T::OF_STORE {
            until_nothing_is_written(&matrix).await?;
        }
        let told = in_trouble::<T>(&matrix, waiting).await;
        refused += usize::from(told.map_err(|wrong| format!("{}: {wrong}", waiting.name))?);
    }
    is_ready(&matrix, !T::OF_STORE).await?;
    trouble.end(&matrix);
    is_ready(&matrix, true).await?;
    for waiting in &all {
        let told = matrix.ask_again(
            &waiting.command,
            &waiting.tag,
            &waiting.first,
            &waiting.reference,
        );
        told.await
            .map_err(|wrong| format!("{}: {wrong}", waiting.name))?;
    }
    super::progress(&format!("{refused} of {} commands were refused", all.len()));
    // All that commit metadata, whatever the trouble is.
    assert!(refused >= 10, "{refused}");
    matrix.while_stopped(|world| trouble.clear(world)).await;
    matrix.close().await
}

async fn prepared(matrix: &mut Matrix, (name, command): Named) -> Result<Waiting, Wrong> {
    let reference = matrix.reference(command).await?;
    let (tag, command) = matrix.set_up(command).await?;
    Ok(Waiting {
        name,
        tag,
        command,
        reference,
        first: None,
    })
}

/// Whether the command was refused; reads are served in any case.
async fn in_trouble<T: Trouble>(matrix: &Matrix, waiting: &mut Waiting) -> Result<bool, Wrong> {
    let first = matrix.ask(&waiting.command.request).await;
    let found = matrix.look(&waiting.command, &waiting.tag).await?;
    judge(&waiting.command, &first, &found, &waiting.reference)?;
    let is_refused = first.as_ref().is_some_and(|answer| answer.status == 503);
    let message = short(&first);
    waiting.first = first;
    if is_refused && !T::WORDS.iter().any(|words| message.contains(words)) {
        return Err(format!("the operator is told only {message}"));
    }
    Ok(is_refused)
}

async fn until_nothing_is_written(matrix: &Matrix) -> Result<(), Wrong> {
    for count in 0..MOST_WRITES {
        let write = set_namespace_property("writes", "count", &count.to_string());
        match matrix.ask(&write).await {
            Some(answer) if answer.is_success() => {}
            Some(answer) if answer.status == 503 => return Ok(()),
            other => return Err(short(&other)),
        }
    }
    Err("there is room for everything".to_owned())
}

async fn is_ready(matrix: &Matrix, must_be: bool) -> Result<(), Wrong> {
    let answer = matrix.ask(&Request::get("/health/ready")).await;
    let status = if must_be { 200 } else { 503 };
    match answer
        .as_ref()
        .is_some_and(|answer| answer.status == status)
    {
        true => Ok(()),
        false => Err(format!("/health/ready says {}", short(&answer))),
    }
}

/// An object store that takes longer than a client waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_object_store_holds_up_only_who_needs_it_and_applies_what_it_was_given_once() {
    let ended = in_world(Engine::Sqlite, slow);
    ended.await.unwrap();
}

async fn slow(world: Arc<World>) -> Result<(), Wrong> {
    let mut matrix = Matrix::open_with(world, &["--request-timeout", "1s"]).await;
    let reference = matrix.reference(super::commands::append).await?;
    for point in [
        crate::point::before("file.put_new"),
        crate::point::after("file.put_new"),
    ] {
        let (tag, command) = matrix.set_up(super::commands::append).await?;
        let pause = matrix.server_ref().pause(point).await;
        let first = matrix.ask(&command.request).await;
        let status = first.as_ref().map(|answer| answer.status);
        assert_eq!(status, Some(504), "{}", short(&first));
        // Others of the same database, and reads of the table.
        matrix
            .asked(&set_namespace_property(&tag, "by", "another"))
            .await?;
        let found = matrix.look(&command, &tag).await?;
        assert_eq!(found, reference.before);
        pause.resume().await;
        matrix.ask_again(&command, &tag, &first, &reference).await?;
    }
    let (tag, command) = matrix.set_up(super::commands::append).await?;
    matrix.restart().await;
    let pause = matrix
        .server_ref()
        .pause(crate::point::before("file.get"))
        .await;
    let late = matrix.ask(&command.look[0]).await;
    assert_eq!(
        late.as_ref().map(|answer| answer.status),
        Some(504),
        "{}",
        short(&late)
    );
    matrix
        .asked(&set_namespace_property(&tag, "by", "another"))
        .await?;
    pause.resume().await;
    matrix.ask_again(&command, &tag, &None, &reference).await?;
    let body = matrix.asked(&Request::get("/health/ready")).await?;
    assert_eq!(body, json!({ "status": "ready" }));
    matrix.close().await
}
