//! A COMMIT whose server is cut off from it: it arrived, it never does, or it does late.

use std::sync::Arc;

use super::scenario::{Ended, Sent, answer, changes, must, prepare, unguard};
use crate::point::before;
use crate::requests::*;
use crate::server::Server;
use crate::wire::{Cut, Wire, Withheld};
use crate::world::{Engine, PATIENT, World};

/// A server on a wire, and a request of it whose transaction is cut.
struct Cable {
    world: Arc<World>,
    a: Server,
    request: Request,
}

impl Cable {
    /// Its sessions wait as long as the test needs.
    async fn lay(world: Arc<World>, flags: &[&str]) -> (Cable, Wire) {
        Cable::lay_with(world, flags, PATIENT).await
    }

    async fn lay_with(world: Arc<World>, flags: &[&str], parameters: &str) -> (Cable, Wire) {
        let wire = world.wire().await;
        let a = world.server_over(&wire, "a", flags, parameters).await;
        unguard(&world).await;
        prepare(&a, &[create_namespace("db"), create_table("db", "t")]).await;
        let request = commit("db", "t", main_at(None), append(1, None, 1)).keyed();
        (Cable { world, a, request }, wire)
    }

    async fn cut(&self, wire: &Wire, place: Cut) -> (Withheld, Sent) {
        let mut withheld = wire.cut_next(place);
        let sent = self.a.spawn(&self.request);
        withheld.is_cut().await;
        (withheld, sent)
    }

    /// The server asks for what became of its COMMIT, and waits.
    async fn waits_for_itself(&self, sent: &Sent) -> Ended {
        let waits = self.world.is_blocked("a", "a", sent).await;
        must(waits, || "told before it could be known".to_owned())
    }

    /// Whether a look that holds nothing finds the commit.
    async fn is_seen(&self) -> bool {
        let changes = "SELECT count(*) FROM change WHERE name = 't'";
        self.world.count(changes).await > 1
    }

    async fn told_success(&self, sent: Sent) -> Ended {
        let told = answer(sent).await?;
        must(told.status == 200, || format!("told {told:?}"))
    }

    /// Also if it is said again.
    async fn is_applied_once(&self) -> Ended {
        let again = self.a.send(&self.request).await.ok_or("no answer")?;
        must(again.status == 200, || {
            format!("told {again:?} the second time")
        })?;
        let changes = changes(&self.a).await?;
        let of_table = changes.iter().filter(|change| change["key"]["name"] == "t");
        let times = of_table.count() - 1;
        must(times == 1, || format!("applied {times} times"))?;
        let current = again.body.pointer("/metadata/current-snapshot-id");
        must(current == Some(&1.into()), || format!("shows {current:?}"))
    }
}

/// Whether the change log still has the commit when it is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Log {
    Kept,
    Lost,
}

pub async fn a_commit_whose_answer_is_cut_is_told_as_success(world: Arc<World>, log: Log) -> Ended {
    let (cable, wire) = Cable::lay(world, &[]).await;
    let looks = cable.a.pause(before("holds_commit")).await;
    let (withheld, sent) = cable.cut(&wire, Cut::Answer).await;
    must(withheld.arrive().await, || "it didn't commit".to_owned())?;
    assert!(looks.reached().await);
    if log == Log::Lost {
        let lose = "DELETE FROM operation; DELETE FROM change \
             WHERE revision = (SELECT max(revision) FROM change)";
        cable.world.run_sql(lose).await;
    }
    looks.resume().await;
    cable.told_success(sent).await?;
    cable.is_applied_once().await
}

pub async fn a_transaction_that_never_arrives_is_done_again(world: Arc<World>, cut: Cut) -> Ended {
    let (cable, wire) = Cable::lay(world, &[]).await;
    let (withheld, sent) = cable.cut(&wire, cut).await;
    withheld.vanish().await;
    cable.told_success(sent).await?;
    cable.is_applied_once().await
}

/// It has written, so whoever takes its partition waits for it, by the lock or by the write.
pub async fn a_commit_that_lands_late_is_waited_for(world: Arc<World>) -> Ended {
    let (cable, wire) = Cable::lay(world, &[]).await;
    let (withheld, sent) = cable.cut(&wire, Cut::Commit).await;
    cable.waits_for_itself(&sent).await?;
    must(!cable.is_seen().await, || "it was already there".to_owned())?;
    must(withheld.arrive().await, || "it didn't commit".to_owned())?;
    must(cable.is_seen().await, || "it isn't there".to_owned())?;
    cable.told_success(sent).await?;
    cable.is_applied_once().await
}

/// The client is told that it isn't known, and hears the one answer when it asks again.
pub async fn a_commit_that_lands_after_its_client_gave_up_is_found_by_its_key(
    world: Arc<World>,
) -> Ended {
    let (cable, wire) = Cable::lay(world, &["--request-timeout", "2s"]).await;
    let (withheld, sent) = cable.cut(&wire, Cut::Commit).await;
    let told = answer(sent).await?;
    must(told.status == 504, || format!("told {told:?}"))?;
    must(!cable.is_seen().await, || "it was already there".to_owned())?;
    must(withheld.arrive().await, || "it didn't commit".to_owned())?;
    cable.is_applied_once().await
}

/// It holds its partition by a row lock, or has written nothing yet: then it is made to fail.
pub async fn a_write_that_lands_late_is_waited_for_or_fails(world: Arc<World>) -> Ended {
    let (cable, wire) = Cable::lay(world, &[]).await;
    let (withheld, sent) = cable.cut(&wire, Cut::Write).await;
    match cable.world.engine {
        Engine::Postgres => {
            cable.waits_for_itself(&sent).await?;
            must(!cable.is_seen().await, || "it was already there".to_owned())?;
            must(withheld.arrive().await, || "it didn't commit".to_owned())?;
            cable.told_success(sent).await?;
        }
        _ => {
            cable.told_success(sent).await?;
            let landed = withheld.arrive().await;
            let times = cable.is_applied_once().await;
            must(!landed, || format!("it landed: {times:?}"))?;
        }
    }
    cable.is_applied_once().await
}

/// Nothing was decided yet.
pub async fn a_begin_that_lands_late_changes_nothing(world: Arc<World>) -> Ended {
    let (cable, wire) = Cable::lay(world, &[]).await;
    let (withheld, sent) = cable.cut(&wire, Cut::Begin).await;
    cable.told_success(sent).await?;
    must(!withheld.arrive().await, || "it committed".to_owned())?;
    cable.is_applied_once().await
}

/// PostgreSQL ends the session before the rest comes.
pub async fn a_commit_that_lands_in_an_ended_session_changes_nothing(world: Arc<World>) -> Ended {
    let (cable, wire) = Cable::lay_with(world, &[], "").await;
    let (withheld, sent) = cable.cut(&wire, Cut::Commit).await;
    cable.waits_for_itself(&sent).await?;
    cable.told_success(sent).await?;
    must(!withheld.arrive().await, || "it committed".to_owned())?;
    cable.is_applied_once().await
}
