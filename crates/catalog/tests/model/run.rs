//! Runs of a history: step by step, which repeats itself exactly, or by all clients at once.

use std::path::Path;
use std::sync::Arc;

use anabranch_partition::{Config, Partitions};
use anabranch_store::Store;
use anabranch_store::fault::{Fault, Pause};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::bugs::{Bug, BuggyStore};
use crate::check::{Finished, Verdict, check};
use crate::generate::{BEGINNING, SERVERS};
use crate::log::{Log, read_again};
use crate::record::{Answer, Seen};
use crate::words::Step;
use crate::world::World;

/// The store as it is, and what the servers are given for it.
pub struct Stores {
    pub store: Arc<dyn Store>,
    bug: Option<Bug>,
}

impl Stores {
    pub fn sound(store: &Arc<dyn Store>) -> Stores {
        Stores {
            store: store.clone(),
            bug: None,
        }
    }

    pub fn with_bug(store: &Arc<dyn Store>, bug: Bug) -> Stores {
        Stores {
            store: store.clone(),
            bug: Some(bug),
        }
    }

    /// The store for one server.
    pub fn served(&self) -> Arc<dyn Store> {
        match self.bug {
            Some(bug) => Arc::new(BuggyStore::new(self.store.clone(), bug)),
            None => self.store.clone(),
        }
    }
}

/// Runs one step after the other. A held step stops where it is told to, holding nothing in the
/// store, while the next ones run on other servers. So exactly one thing happens at a time, and
/// the same history goes the same way again.
pub async fn step_by_step(stores: &Stores, folder: &Path, steps: &[Step]) -> Verdict {
    let world = Arc::new(World::new(stores, folder, true).await);
    let mut held = Vec::new();
    for (place, step) in steps.iter().enumerate() {
        let is_due = |held: &Held| held.until <= place || held.server == step.server;
        let_go(&mut held, is_due).await;
        if let Some((call, when)) = step.lost {
            let faults = &world.servers[step.server].faults;
            faults.at(call, when, 1, Fault::LostAnswer);
        }
        let pause = step.hold.map(|hold| {
            let faults = &world.servers[step.server].faults;
            (faults.pause(hold.call, hold.when, 1), hold.steps)
        });
        let mut running = send(&world, step, step.server);
        let mut answer = None;
        match pause {
            Some((pause, steps)) => {
                tokio::select! {
                    biased;
                    done = &mut running => {
                        // It never came there; whatever does must not stop for ever.
                        pause.resume();
                        answer = Some(done.unwrap());
                    }
                    () = pause.arrived() => held.push(Held {
                        server: step.server,
                        until: place + 1 + steps,
                        pause,
                        running,
                    }),
                }
            }
            None => answer = Some(running.await.unwrap()),
        }
        if step.resent || answer == Some(Answer::Unknown) {
            let server = (step.server + 1) % SERVERS;
            let_go(&mut held, |held| held.server == server).await;
            send(&world, step, server).await.unwrap();
        }
    }
    let_go(&mut held, |_| true).await;
    check(&finish(&world, stores).await)
}

/// A step that stands still in the middle.
struct Held {
    server: usize,
    until: usize,
    pause: Pause,
    running: JoinHandle<Answer>,
}

async fn let_go(held: &mut Vec<Held>, which: impl Fn(&Held) -> bool) {
    for one in held.extract_if(.., |held| which(held)) {
        one.pause.resume();
        one.running.await.unwrap();
    }
}

fn send(world: &Arc<World>, step: &Step, server: usize) -> JoinHandle<Answer> {
    let (world, step) = (world.clone(), step.clone());
    tokio::spawn(async move { world.send(&step, server).await })
}

/// What is on its way, so that a hold ends when nothing else can go on.
#[derive(Clone, Default)]
struct Traffic {
    answers: usize,
    in_flight: [usize; SERVERS],
    holds: [usize; SERVERS],
}

impl Traffic {
    fn goes_on_without_holds(&self) -> bool {
        let servers = self.in_flight.iter().zip(self.holds);
        servers
            .into_iter()
            .any(|(calls, holds)| *calls > 0 && holds == 0)
    }
}

/// Runs the beginning, and then all clients at once, each its own steps in their order.
pub async fn at_once(stores: &Stores, folder: &Path, steps: &[Step]) -> Verdict {
    let world = Arc::new(World::new(stores, folder, true).await);
    let traffic = Arc::new(watch::Sender::new(Traffic::default()));
    let (beginning, rest): (Vec<&Step>, Vec<&Step>) =
        steps.iter().partition(|step| step.id < BEGINNING);
    for step in beginning {
        world.send(step, step.server).await;
    }
    let clients = rest.iter().map(|step| step.client + 1).max().unwrap_or(0);
    let mut running = Vec::new();
    for client in 0..clients {
        let own = rest.iter().filter(|step| step.client == client);
        let own: Vec<Step> = own.map(|step| (*step).clone()).collect();
        let (world, traffic) = (world.clone(), traffic.clone());
        running.push(tokio::spawn(async move {
            for step in own {
                take(&world, &traffic, &step).await;
            }
        }));
    }
    for client in running {
        client.await.unwrap();
    }
    check(&finish(&world, stores).await)
}

async fn take(world: &World, traffic: &Arc<watch::Sender<Traffic>>, step: &Step) {
    let faults = &world.servers[step.server].faults;
    if let Some((call, when)) = step.lost {
        faults.at(call, when, 1, Fault::LostAnswer);
    }
    if let Some(hold) = step.hold {
        let pause = faults.pause(hold.call, hold.when, 1);
        release(traffic.clone(), pause, step.server, hold.steps);
    }
    let answer = in_traffic(world, traffic, step, step.server).await;
    if step.resent || answer == Answer::Unknown {
        in_traffic(world, traffic, step, (step.server + 1) % SERVERS).await;
    }
}

async fn in_traffic(
    world: &World,
    traffic: &watch::Sender<Traffic>,
    step: &Step,
    server: usize,
) -> Answer {
    traffic.send_modify(|traffic| traffic.in_flight[server] += 1);
    let answer = world.send(step, server).await;
    traffic.send_modify(|traffic| {
        traffic.in_flight[server] -= 1;
        traffic.answers += 1;
    });
    answer
}

/// Ends a hold once so many further answers were given, or only held servers have any to give.
fn release(traffic: Arc<watch::Sender<Traffic>>, pause: Pause, server: usize, answers: usize) {
    let mut until = 0;
    traffic.send_modify(|traffic| {
        traffic.holds[server] += 1;
        until = traffic.answers + answers;
    });
    tokio::spawn(async move {
        let mut watched = traffic.subscribe();
        let is_over = |traffic: &Traffic| {
            let is_waited_for = traffic.in_flight[server] > 0;
            traffic.answers >= until || is_waited_for && !traffic.goes_on_without_holds()
        };
        // The sender is here: the watch can't end before.
        let _ = watched.wait_for(is_over).await;
        pause.resume();
        traffic.send_modify(|traffic| traffic.holds[server] -= 1);
    });
}

/// Runs the steps one by one on a single server and tells what was answered, without ids: for runs
/// that have to be alike.
pub async fn answers(stores: &Stores, folder: &Path, steps: &[Step], caches: bool) -> Vec<String> {
    let world = World::new(stores, folder, caches).await;
    let mut answers = Vec::new();
    for step in steps {
        let answer = world.send(step, 0).await;
        answers.push(format!("{step}: {}", plain(&answer)));
    }
    check(&finish(&world, stores).await).unwrap();
    answers
}

fn plain(answer: &Answer) -> String {
    let tables = answer.tables().iter().map(|table| {
        let content = &table.content;
        let (levels, name) = (&table.levels, &table.table);
        let said = (&content.properties, &content.snapshots, content.main);
        format!("{levels:?}.{name} version {} {said:?}", table.version)
    });
    let tables: Vec<String> = tables.collect();
    match answer {
        Answer::Refused(reason, _) => format!("{reason:?}"),
        Answer::Seen(Seen::Pinned(read)) => {
            let rows = read.rows.iter();
            let names: Vec<_> = rows.map(|(key, row)| (&key.name, row.version)).collect();
            format!("{names:?}")
        }
        Answer::Done { value, .. } if tables.is_empty() => format!("{value:?}"),
        Answer::Seen(seen) if tables.is_empty() => format!("{seen:?}"),
        _ => format!("{tables:?}"),
    }
}

/// Reads what is left, by a server that nothing happens to.
async fn finish(world: &World, stores: &Stores) -> Finished {
    let partitions = Partitions::new(stores.served(), Config::default());
    while world.follow(&partitions, 5).await.unwrap() > 0 {}
    let record = world.record();
    let mut pinned = Vec::new();
    for sending in &record.sendings {
        if let Answer::Seen(Seen::Pinned(read)) = &sending.answer {
            let again = read_again(&partitions, read.partition, read.revision).await;
            pinned.push((read.clone(), again));
        }
    }
    Finished {
        metalake: world.metalake_id,
        log: Log::read(stores.store.as_ref(), world.metalake_id).await,
        consumed: world.consumer.lock().await.read.clone(),
        record,
        pinned,
    }
}
