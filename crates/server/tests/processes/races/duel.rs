//! Two requests on two servers, in every order that the servers can give them.
//!
//! *Meeting*: one stands before its COMMIT, its partitions held, when the other comes. With row
//! locks PostgreSQL itself says that the other waits; without, the other ends first and the one
//! that stood has to run again. *Overtaking*: one has read its names and holds nothing yet when the
//! other comes and goes. So who is first is known, and what each must be told.

use std::sync::Arc;

use serde_json::Value;

use crate::point::before;
use crate::races::scenarios::unguard;
use crate::requests::{Answer, Request};
use crate::server::Server;
use crate::world::{Engine, World, in_world};

/// What is wrong, in words.
pub type Wrong = String;

/// What is wrong where nothing went wrong although nothing was held.
pub const BY_LUCK: &str = "nothing held the one that came";

/// Two requests that can't both have their way, or must not take each other's away.
pub struct Duel {
    pub setup: Vec<Request>,
    pub one: Request,
    pub other: Request,
    /// What both are told, `one` first, if `one` is served first.
    pub one_first: (u16, u16),
    /// The same if `other` is.
    pub other_first: (u16, u16),
    /// `one` is refused unless `other` has gone first, so it never stands before a COMMIT.
    pub one_never_stands: bool,
    /// What is asked afterwards in any case.
    pub afterwards: Afterwards,
    pub afterwards_if_one_first: Afterwards,
    pub afterwards_if_other_first: Afterwards,
    /// A place where both answers have the same.
    pub told_alike: Option<&'static str>,
}

/// What is asked, and what must be found at which place of the answer; null stands for nothing.
pub type Afterwards = Vec<(Request, &'static str, Value)>;

/// Stands in a request for the revision that the setup's last answer told of.
pub const REVISION: &str = "REVISION";

pub fn duel(
    setup: Vec<Request>,
    (one, other): (Request, Request),
    one_first: (u16, u16),
    other_first: (u16, u16),
) -> Duel {
    Duel {
        setup,
        one,
        other,
        one_first,
        other_first,
        one_never_stands: false,
        afterwards: Vec::new(),
        afterwards_if_one_first: Vec::new(),
        afterwards_if_other_first: Vec::new(),
        told_alike: None,
    }
}

impl Duel {
    pub fn then(self, afterwards: Afterwards) -> Duel {
        Duel { afterwards, ..self }
    }

    pub fn if_one_first(self, afterwards: Afterwards) -> Duel {
        Duel {
            afterwards_if_one_first: afterwards,
            ..self
        }
    }

    pub fn if_other_first(self, afterwards: Afterwards) -> Duel {
        Duel {
            afterwards_if_other_first: afterwards,
            ..self
        }
    }

    pub fn told_alike(self, place: &'static str) -> Duel {
        Duel {
            told_alike: Some(place),
            ..self
        }
    }
}

/// A duel and how it is called.
pub type Named = (&'static str, fn(&str) -> Duel);

/// The orders; each is run on names of its own.
const ORDERS: [(&str, How, bool); 4] = [
    ("one_stands", How::Meet, true),
    ("other_stands", How::Meet, false),
    ("one_late", How::Overtake, true),
    ("other_late", How::Overtake, false),
];

#[derive(Clone, Copy)]
enum How {
    Meet,
    Overtake,
}

/// Runs the duel in all its orders.
pub async fn fight(engine: Engine, duel: fn(&str) -> Duel) -> Result<(), Wrong> {
    in_world(engine, |world| async move {
        let arena = Arena::open(world).await;
        arena.go_through("", duel).await?;
        arena.close().await?;
        match engine {
            Engine::Unprotected => Err(BY_LUCK.to_owned()),
            _ => Ok(()),
        }
    })
    .await
}

/// Runs duels that only get into their own way, on the same servers: what is wrong with each.
pub async fn fight_all(engine: Engine, duels: &'static [Named]) -> Vec<(&'static str, Wrong)> {
    in_world(engine, |world| async move {
        let arena = Arena::open(world).await;
        unguard(&arena.world).await;
        let mut wrongs = Vec::new();
        for (name, duel) in duels {
            match arena.go_through(&format!("{name}_"), *duel).await {
                Err(wrong) => wrongs.push((*name, wrong)),
                Ok(()) if engine == Engine::Unprotected => {
                    wrongs.push((*name, BY_LUCK.to_owned()));
                }
                Ok(()) => {}
            }
        }
        let closed = arena.close().await;
        if engine != Engine::Unprotected {
            wrongs.extend(closed.err().map(|wrong| ("afterwards", wrong)));
        }
        wrongs
    })
    .await
}

struct Arena {
    world: Arc<World>,
    a: Server,
    b: Server,
}

impl Arena {
    async fn open(world: Arc<World>) -> Arena {
        let a = world.server("a").await;
        let b = world.server("b").await;
        Arena { world, a, b }
    }

    async fn close(self) -> Result<(), Wrong> {
        self.a.stop().await;
        self.b.stop().await;
        self.world.doctor().await
    }

    /// In all orders, on names that begin like this.
    async fn go_through(&self, prefix: &str, duel: fn(&str) -> Duel) -> Result<(), Wrong> {
        for (name, how, one_is_stopped) in ORDERS {
            let wrong = |wrong: Wrong| format!("{name}: {wrong}");
            let duel = duel(&format!("{prefix}{name}"));
            if duel.one_never_stands && one_is_stopped && matches!(how, How::Meet) {
                continue;
            }
            self.run(duel, how, one_is_stopped).await.map_err(wrong)?;
        }
        Ok(())
    }

    async fn run(&self, mut duel: Duel, how: How, one_is_stopped: bool) -> Result<(), Wrong> {
        let mut last = Value::Null;
        for request in &duel.setup {
            let answer = self.b.send(request).await.ok_or("no answer")?;
            assert!(answer.is_success(), "{request:?}: {answer:?}");
            last = answer.body;
        }
        if let Some(revision) = last["reference"]["revision"].as_str() {
            duel.one = duel.one.filled(REVISION, revision);
            duel.other = duel.other.filled(REVISION, revision);
        }
        let (stopped, comer) = match one_is_stopped {
            true => (&duel.one, &duel.other),
            false => (&duel.other, &duel.one),
        };
        let (stopped, comer, stopped_is_first) = match how {
            How::Meet => self.meet(stopped, comer).await?,
            How::Overtake => self.overtake(stopped, comer).await?,
        };
        let told = match one_is_stopped {
            true => (stopped, comer),
            false => (comer, stopped),
        };
        let (must, more) = match one_is_stopped == stopped_is_first {
            true => (duel.one_first, duel.afterwards_if_one_first),
            false => (duel.other_first, duel.afterwards_if_other_first),
        };
        if (told.0.status, told.1.status) != must {
            return Err(format!("told {told:?} instead of {must:?}"));
        }
        if let Some(place) = duel.told_alike
            && told.0.body.pointer(place) != told.1.body.pointer(place)
        {
            return Err(format!("told {told:?}, which differ at {place}"));
        }
        for (request, place, must) in duel.afterwards.iter().chain(&more) {
            let found = self.a.send(request).await.ok_or("no answer")?;
            if found.body.pointer(place).unwrap_or(&Value::Null) != must {
                return Err(format!(
                    "{} has {found:?}, not {must} at {place}",
                    request.path
                ));
            }
        }
        Ok(())
    }

    /// What both were told, and whether the one that stood was first.
    async fn meet(
        &self,
        stands: &Request,
        comes: &Request,
    ) -> Result<(Answer, Answer, bool), Wrong> {
        let begun = self.begun().await;
        let pause = self.a.pause(before("commit")).await;
        let mut standing = self.a.spawn(stands);
        tokio::select! {
            reached = pause.reached() => assert!(reached, "the server ended"),
            answer = &mut standing => panic!("{} never came to COMMIT: {answer:?}", stands.path),
        }
        let coming = self.b.spawn(comes);
        let is_blocked = self.world.is_blocked("b", "a", &coming).await;
        if self.world.engine == Engine::Postgres && !is_blocked {
            return Err(BY_LUCK.to_owned());
        }
        pause.resume().await;
        let standing = standing.await.unwrap().ok_or("no answer")?;
        let coming = coming.await.unwrap().ok_or("no answer")?;
        let ran_again = self.begun().await >= begun + 2;
        if self.world.engine == Engine::Optimistic && coming.is_success() && !ran_again {
            return Err("the one that stood wasn't run again".to_owned());
        }
        Ok((standing, coming, is_blocked))
    }

    async fn begun(&self) -> u64 {
        let hits = self.a.control.hits().await;
        let point = before("begin");
        hits.get(&(point.call, point.when)).copied().unwrap_or(0)
    }

    async fn overtake(
        &self,
        late: &Request,
        early: &Request,
    ) -> Result<(Answer, Answer, bool), Wrong> {
        let pause = self.a.pause(before("begin")).await;
        let late = self.a.spawn(late);
        assert!(pause.reached().await);
        let early = self.b.send(early).await.ok_or("no answer")?;
        pause.resume().await;
        let late = late.await.unwrap().ok_or("no answer")?;
        Ok((late, early, false))
    }
}
