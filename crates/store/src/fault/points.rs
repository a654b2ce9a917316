//! Which fault happens where.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::Semaphore;

use crate::error::{ConflictReason, StoreError};

/// How often a delayed call lets others go first.
const DELAY_TURNS: usize = 20;

/// On which side of the engine's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum When {
    /// Before the engine is called.
    Before,
    /// After the engine did it, whatever came of it.
    After,
}

/// What happens.
pub enum Fault {
    /// The caller gets this error. Before the call only: the engine isn't called.
    Error(StoreError),
    /// The request (before) or its answer (after) is lost: [`StoreError::Unknown`] for what
    /// changes something, [`ConflictReason::ConnectionLost`] for the rest.
    LostAnswer,
    /// Something of the test's own, such as a panic or the end of the process.
    Crash(Box<dyn FnOnce() + Send>),
}

enum Effect {
    Fault(Fault),
    Pause(Arc<PauseState>),
    /// Everybody else who can goes first.
    Delay,
}

#[derive(Debug)]
struct PauseState {
    arrived: Semaphore,
    resumed: Semaphore,
}

/// A call that stops at a point until the test lets it go on.
#[derive(Debug)]
pub struct Pause(Arc<PauseState>);

impl Pause {
    /// Waits until the call has come to the point.
    pub async fn arrived(&self) {
        if let Ok(permit) = self.0.arrived.acquire().await {
            permit.forget();
        }
    }

    /// Lets the call go on, also if it has yet to come.
    pub fn resume(&self) {
        self.0.resumed.add_permits(1);
    }
}

/// A COMMIT that is under way for as long as the test wants.
#[derive(Clone, Debug)]
pub struct Straggler {
    let_go: Arc<Semaphore>,
    ended: Arc<Semaphore>,
}

impl Straggler {
    /// Lets the COMMIT arrive, and waits until the engine has dealt with it.
    pub async fn arrive(&self) {
        self.let_go.add_permits(1);
        if let Ok(permit) = self.ended.acquire().await {
            permit.forget();
        }
    }

    pub(super) async fn wait(&self) {
        if let Ok(permit) = self.let_go.acquire().await {
            permit.forget();
        }
    }

    pub(super) fn end(&self) {
        self.ended.add_permits(1);
    }
}

struct Rule {
    call: &'static str,
    when: When,
    hits_left: usize,
    effect: Effect,
}

struct Dice {
    random: StdRng,
    probability: f64,
}

impl Dice {
    /// Mostly nothing; else one of all that can happen on that side.
    fn throw(&mut self, when: When) -> Option<Effect> {
        if !self.random.random_bool(self.probability) {
            return None;
        }
        let detail = || "injected: at random".to_owned();
        Some(match (self.random.random_range(0..4), when) {
            (0, _) => Effect::Delay,
            (1, When::Before) => {
                Effect::Fault(Fault::Error(StoreError::Unavailable { detail: detail() }))
            }
            (2, When::Before) => Effect::Fault(Fault::Error(StoreError::Conflict {
                reason: ConflictReason::Deadlock,
                detail: detail(),
            })),
            _ => Effect::Fault(Fault::LostAnswer),
        })
    }
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    dice: Option<Dice>,
    straggler: Option<Straggler>,
    hits: HashMap<(&'static str, When), usize>,
}

/// The plan of what goes wrong; clones share it.
#[derive(Clone, Default)]
pub struct Faults {
    state: Arc<Mutex<State>>,
    clock_shift: Arc<AtomicI64>,
}

/// What a point makes of a call.
pub(super) enum Verdict {
    GoOn,
    Error(StoreError),
    Lost,
}

impl Faults {
    /// Nothing goes wrong yet.
    pub fn new() -> Faults {
        Faults::default()
    }

    /// The `nth` time from now (1 is the next) that `call` comes to this point.
    pub fn at(&self, call: &'static str, when: When, nth: usize, fault: Fault) {
        self.add(call, when, nth, Effect::Fault(fault));
    }

    /// Stops the `nth` `call` from now at this point.
    pub fn pause(&self, call: &'static str, when: When, nth: usize) -> Pause {
        let state = Arc::new(PauseState {
            arrived: Semaphore::new(0),
            resumed: Semaphore::new(0),
        });
        self.add(call, when, nth, Effect::Pause(Arc::clone(&state)));
        Pause(state)
    }

    /// The next commit is sent but doesn't arrive: its caller sees a lost answer at once, and the
    /// transaction stays open in the engine until the test lets it arrive.
    pub fn straggle_next_commit(&self) -> Straggler {
        let straggler = Straggler {
            let_go: Arc::new(Semaphore::new(0)),
            ended: Arc::new(Semaphore::new(0)),
        };
        self.lock().straggler = Some(straggler.clone());
        straggler
    }

    /// From now on something happens at each point of each call with this probability: a delay, a
    /// lost request or answer, and before the call also an error that is known not applied.
    pub fn random(&self, seed: u64, probability: f64) {
        self.lock().dice = Some(Dice {
            random: StdRng::seed_from_u64(seed),
            probability,
        });
    }

    /// No more faults at random.
    pub fn calm(&self) {
        self.lock().dice = None;
    }

    /// Moves the store's time as the caller sees it. Leases and expiry inside the engine keep the
    /// engine's own.
    pub fn shift_clock(&self, micros: i64) {
        self.clock_shift.store(micros, Ordering::SeqCst);
    }

    /// How often `call` came to this point.
    pub fn hits(&self, call: &'static str, when: When) -> usize {
        self.lock().hits.get(&(call, when)).copied().unwrap_or(0)
    }

    pub(super) fn take_straggler(&self) -> Option<Straggler> {
        self.lock().straggler.take()
    }

    pub(super) fn clock_shift(&self) -> i64 {
        self.clock_shift.load(Ordering::SeqCst)
    }

    fn add(&self, call: &'static str, when: When, nth: usize, effect: Effect) {
        self.lock().rules.push(Rule {
            call,
            when,
            hits_left: nth.max(1),
            effect,
        });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn pass(&self, call: &'static str, when: When) -> Verdict {
        match self.hit(call, when) {
            None => Verdict::GoOn,
            Some(Effect::Fault(Fault::Error(error))) => Verdict::Error(error),
            Some(Effect::Fault(Fault::LostAnswer)) => Verdict::Lost,
            Some(Effect::Fault(Fault::Crash(crash))) => {
                crash();
                Verdict::GoOn
            }
            Some(Effect::Delay) => {
                for _ in 0..DELAY_TURNS {
                    tokio::task::yield_now().await;
                }
                Verdict::GoOn
            }
            Some(Effect::Pause(pause)) => {
                pause.arrived.add_permits(1);
                if let Ok(permit) = pause.resumed.acquire().await {
                    permit.forget();
                }
                Verdict::GoOn
            }
        }
    }

    fn hit(&self, call: &'static str, when: When) -> Option<Effect> {
        debug_assert!(super::CALLS.contains(&call), "{call} is not listed");
        let mut state = self.lock();
        *state.hits.entry((call, when)).or_default() += 1;
        let mut due = None;
        for (index, rule) in state.rules.iter_mut().enumerate() {
            if rule.call == call && rule.when == when {
                rule.hits_left -= usize::from(rule.hits_left > 0);
                if rule.hits_left == 0 && due.is_none() {
                    due = Some(index);
                }
            }
        }
        if let Some(index) = due {
            return Some(state.rules.remove(index).effect);
        }
        state.dice.as_mut()?.throw(when)
    }
}

/// What the caller of something that changes nothing, or that was not committed, sees.
pub(super) fn connection_lost() -> StoreError {
    StoreError::Conflict {
        reason: ConflictReason::ConnectionLost,
        detail: "injected: the connection was lost".to_owned(),
    }
}

/// What the caller of something that commits sees.
pub(super) fn unknown() -> StoreError {
    StoreError::Unknown {
        detail: "injected: the answer was lost".to_owned(),
    }
}
