//! Whether one serial order explains everything that was answered.
//!
//! The order is that of the revisions: each accepted command must do to the state before it what
//! the sequential catalog does. Every other answer must be true in a state between the call and
//! the answer: with everything that was known when it was called, and nothing that was called only
//! after it was answered. Commands that share no partition may be seen in either order, so such a
//! state is a cut: of each partition the changes up to one of its revisions, of each command all
//! or nothing.

mod answers;
mod feed;
mod window;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anabranch_store::{Action, Change, Entry, Key, PartitionId};

use crate::log::{Body, Done, Line, Log};
use crate::record::{Answer, PinnedRead, Record, Request, SeenTable, Sending};
use crate::sequential::{self, State, Thing};
use crate::words::Command;

use feed::{check_feed, check_places};
use window::Window;

/// A run that is over.
pub struct Finished {
    pub metalake: PartitionId,
    pub record: Record,
    pub log: Log,
    /// What the consumer of the feed read in all.
    pub consumed: Vec<Change>,
    /// The pinned reads, and what the same reads found at the end.
    pub pinned: Vec<(PinnedRead, Vec<(Key, Entry)>)>,
}

/// What is wrong, in one sentence.
pub type Verdict = Result<(), String>;

pub fn check(run: &Finished) -> Verdict {
    check_places(&run.log)?;
    let mut checker = Checker::new(run)?;
    checker.replay()?;
    checker.check_rows()?;
    checker.check_answers()?;
    checker.check_applied_often()?;
    check_feed(run)?;
    for (read, again) in &run.pinned {
        checker.check_pinned(read, again)?;
    }
    Ok(())
}

struct Checker<'a> {
    run: &'a Finished,
    /// The step of each accepted command, in the order of revisions.
    steps: Vec<usize>,
    /// `states[i]` is what the first `i` accepted commands made.
    states: Vec<State>,
    first_call: BTreeMap<usize, u64>,
    /// The partitions that each accepted command changed.
    changed: Vec<BTreeSet<PartitionId>>,
    /// From a time on, an accepted command is known to be there.
    known: Vec<(u64, usize)>,
}

impl<'a> Checker<'a> {
    fn new(run: &'a Finished) -> Result<Checker<'a>, String> {
        let mut first_call = BTreeMap::new();
        for sending in &run.record.sendings {
            let first = first_call.entry(sending.step).or_insert(sending.called);
            *first = sending.called.min(*first);
        }
        let ids: HashMap<String, usize> = run
            .record
            .requests
            .iter()
            .map(|(id, request)| (request.principal(), *id))
            .collect();
        let mut steps = Vec::new();
        for done in &run.log.done {
            let step = ids.get(&done.principal);
            let step = step.ok_or_else(|| format!("nobody asked for {done:?}"))?;
            steps.push(*step);
        }
        let mut checker = Checker {
            run,
            steps,
            states: vec![State::new()],
            first_call,
            changed: run.log.done.iter().map(partitions_of).collect(),
            known: Vec::new(),
        };
        checker.known = checker.acknowledged();
        Ok(checker)
    }

    fn request(&self, step: usize) -> &'a Request {
        &self.run.record.requests[&step]
    }

    /// The accepted commands of a step, by their place in the order.
    fn applied(&self, step: usize) -> impl Iterator<Item = usize> {
        let steps = self.steps.iter().enumerate();
        steps.filter_map(move |(index, other)| (*other == step).then_some(index))
    }

    fn acknowledged(&self) -> Vec<(u64, usize)> {
        let sendings = self.run.record.sendings.iter();
        sendings
            .filter_map(|sending| Some((sending.answered, self.acknowledges(sending)?)))
            .collect()
    }

    /// Which accepted command this answer is the outcome of.
    fn acknowledges(&self, sending: &Sending) -> Option<usize> {
        let Answer::Done { revision, .. } = sending.answer else {
            return None;
        };
        let done = &self.run.log.done;
        let mut applied = self.applied(sending.step);
        match revision {
            Some(revision) => applied.find(|index| done[*index].revision == revision),
            // The first answer without one is of the first, and so on: what is known by it may be
            // less than what is so.
            None => applied.nth(self.answers_before(sending)),
        }
    }

    /// Answers without a revision to the same step, before this one.
    fn answers_before(&self, sending: &Sending) -> usize {
        let sendings = self.run.record.sendings.iter();
        let others = sendings.filter(|other| {
            let is_accepted = matches!(other.answer, Answer::Done { revision: None, .. });
            is_accepted && other.step == sending.step && other.answered < sending.answered
        });
        others.count()
    }

    /// Every accepted command does what the sequential catalog does.
    fn replay(&mut self) -> Verdict {
        let mut places: BTreeSet<String> = BTreeSet::new();
        let mut objects = BTreeSet::new();
        for (index, done) in self.run.log.done.iter().enumerate() {
            let request = self.request(self.steps[index]);
            let mut window = self.window(self.first_call[&request.step.id], 0);
            window.asked = index;
            let mut changed = self.changed[index].iter();
            if changed.any(|partition| {
                window
                    .known
                    .get(partition)
                    .is_some_and(|known| *known > index)
            }) {
                return Err(format!(
                    "{} comes at {} before what was answered before it was called",
                    request.step, done.revision
                ));
            }
            self.explain_accepted(request, done, &window)?;
            for line in &done.lines {
                if line.action == Action::Create && !objects.insert(line.object) {
                    return Err(format!("{:?} is made twice: {}", line.object, request.step));
                }
                let is_new = matches!(line.action, Action::Create | Action::Update);
                if let Some(Body::Table {
                    metadata_location, ..
                }) = line.after.as_ref().filter(|_| is_new)
                    && !places.insert(metadata_location.clone())
                {
                    return Err(format!("{metadata_location} is committed twice"));
                }
            }
            let state = &self.states[index];
            let after = sequential::after(state, &done.lines, done.revision);
            self.states.push(after);
        }
        Ok(())
    }

    fn explain_accepted(&self, request: &Request, done: &Done, window: &Window) -> Verdict {
        let state = &self.states[window.asked];
        let mut why = String::new();
        for catalog in self.resolved(&request.step.command, window) {
            let ground = self.ground(state, catalog, &done.lines);
            match ground.decide(request) {
                Ok(effect) if in_order(&effect.lines) == in_order(&done.lines) => return Ok(()),
                Ok(effect) => {
                    why = format!(
                        "it does\n    {:?}\n  and not\n    {:?}",
                        effect.lines, done.lines
                    );
                }
                Err(reasons) if why.is_empty() => why = format!("it is refused: {reasons:?}"),
                Err(_) => {}
            }
        }
        Err(format!(
            "{} was accepted at {}, but by the model {why}",
            request.step, done.revision
        ))
    }

    /// The rows are what the accepted commands made.
    fn check_rows(&self) -> Verdict {
        let state = &self.states[self.states.len() - 1];
        let rows: Vec<_> = self.run.log.rows.iter().collect();
        if let Some((key, _)) = state
            .iter()
            .find(|(key, _)| !self.run.log.rows.contains_key(key))
        {
            return Err(format!("no row for {key:?}, which stands by the log"));
        }
        for (key, row) in rows {
            if state.get(key) != Some(&thing_of(row)) {
                let stands = state.get(key);
                return Err(format!(
                    "row {key:?} is {row:?}; by the log it is {stands:?}"
                ));
            }
        }
        Ok(())
    }

    /// Nothing is applied more often than it was sent, and once only under a key.
    fn check_applied_often(&self) -> Verdict {
        for (step, request) in &self.run.record.requests {
            let applied: Vec<usize> = self.applied(*step).collect();
            let sendings: Vec<&Sending> = self
                .run
                .record
                .sendings
                .iter()
                .filter(|sending| sending.step == *step)
                .collect();
            let acknowledged: Vec<usize> = sendings
                .iter()
                .filter_map(|sending| self.acknowledges(sending))
                .collect();
            let unclaimed = applied.iter().filter(|index| !acknowledged.contains(index));
            let unknown = sendings
                .iter()
                .filter(|sending| sending.answer == Answer::Unknown)
                .count();
            let is_twice = !request.step.keyed && {
                let distinct: BTreeSet<&usize> = acknowledged.iter().collect();
                distinct.len() < acknowledged.len()
                    && !is_recognised(request)
                    && !may_change_nothing(request)
            };
            if unclaimed.count() > unknown || request.step.keyed && applied.len() > 1 || is_twice {
                let answers: Vec<&Answer> =
                    sendings.iter().map(|sending| &sending.answer).collect();
                return Err(format!(
                    "{} was applied {} times, and answered {answers:?}",
                    request.step,
                    applied.len()
                ));
            }
        }
        Ok(())
    }

    /// A pinned read shows the partition as of its revision, and always the same.
    fn check_pinned(&self, read: &PinnedRead, again: &[(Key, Entry)]) -> Verdict {
        let done = &self.run.log.done;
        let count = done.partition_point(|done| done.revision <= read.revision);
        let state = self.states[count].iter();
        let stood: Vec<(&Key, Thing)> = state
            .filter(|(key, _)| key.partition == read.partition)
            .map(|(key, thing)| (key, thing.clone()))
            .collect();
        for rows in [&read.rows, again] {
            let mut shown: Vec<(&Key, Thing)> =
                rows.iter().map(|(key, row)| (key, thing_of(row))).collect();
            shown.sort_by_key(|(key, _)| *key);
            if shown != stood {
                return Err(format!(
                    "{:?} read as of {} showed {shown:?}, and by the log it was {stood:?}",
                    read.partition, read.revision
                ));
            }
        }
        Ok(())
    }
}

/// Whether a resent request is known by an id in it.
fn is_recognised(request: &Request) -> bool {
    let has_id = match &request.step.command {
        Command::Commit(_, changes) => changes.iter().any(|change| change.append.is_some()),
        Command::CreateStaged(..) => true,
        _ => false,
    };
    request.step.keyed || has_id
}

/// Said again it finds properties as they are to be, and is answered with the state that stands.
fn may_change_nothing(request: &Request) -> bool {
    matches!(request.step.command, Command::Commit(..))
}

/// How many tables an answer shows.
fn tables_of(request: &Request) -> usize {
    match &request.step.command {
        Command::Commit(_, changes) => changes.len(),
        _ => 1,
    }
}

fn partitions_of(done: &Done) -> BTreeSet<PartitionId> {
    let lines = done.lines.iter();
    lines.map(|line| line.key.partition).collect()
}

fn in_order(lines: &[Line]) -> Vec<&Line> {
    let mut lines: Vec<&Line> = lines.iter().collect();
    lines.sort_by_key(|line| &line.key);
    lines
}

fn thing_of(row: &Entry) -> Thing {
    Thing {
        kind: row.kind,
        object: row.object,
        version: row.version,
        from: row.from,
        body: Body::read(row.kind, &row.body),
    }
}

fn is_seen(seen: &SeenTable, thing: &Thing) -> bool {
    let body = Body::Table {
        metadata_location: seen.metadata_location.clone(),
        content: seen.content.clone(),
    };
    seen.object == thing.object && seen.version == thing.version && body == thing.body
}
