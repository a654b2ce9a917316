//! One command through all its cases, on one store.

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use super::aftermath::Aftermath;
use super::case::{Case, Fault, Hits};
use super::commands::{Command, METADATA, Repeated};
use super::observation::{Observation, short};
use crate::point::after;
use crate::requests::{Answer, Request, create_namespace, set_namespace_property};
use crate::server::Server;
use crate::world::{Engine, World};

/// What is wrong, in words.
pub type Wrong = String;

/// The jobs of a server under test come to nothing that is armed for its commands.
const QUIET: [&str; 2] = ["--job-interval", "1h"];
/// After so many, the rest says nothing new.
const MOST_WRONGS: usize = 6;

/// What a command shows before and after, and which points it comes to.
pub struct Reference {
    pub before: Observation,
    pub after: Observation,
    hits: Hits,
}

pub struct Matrix {
    pub world: Arc<World>,
    flags: Vec<&'static str>,
    server: Option<Server>,
    aftermath: Aftermath,
    tags: usize,
}

impl Matrix {
    pub async fn open(world: Arc<World>) -> Matrix {
        Matrix::open_with(world, &[]).await
    }

    pub async fn open_with(world: Arc<World>, flags: &[&'static str]) -> Matrix {
        let flags = [&QUIET[..], flags].concat();
        let server = quiet_server(&world, &flags).await;
        Matrix {
            flags,
            aftermath: Aftermath::default(),
            world,
            server: Some(server),
            tags: 0,
        }
    }

    /// Runs the command through all its cases; answers how many there were.
    pub async fn run(&mut self, name: &str, command: fn(&str) -> Command) -> Result<usize, Wrong> {
        let started = Instant::now();
        let reference = self.reference(command).await?;
        let cases = self.cases(command, &reference).await?;
        let mut wrongs = Vec::new();
        for case in &cases {
            if let Err(wrong) = self.run_case(command, case, &reference).await {
                wrongs.push(format!("{name}, {case}: {wrong}"));
                if wrongs.len() == MOST_WRONGS {
                    break;
                }
                // What was armed may be so still.
                self.restart().await;
            }
        }
        super::progress(&format!(
            "{:?} {name}: {} cases, {:.1} s",
            self.world.engine,
            cases.len(),
            started.elapsed().as_secs_f64()
        ));
        match wrongs.is_empty() {
            true => Ok(cases.len()),
            false => Err(wrongs.join("\n")),
        }
    }

    /// The store and its files are whole, and stay so when the jobs have gone over them.
    pub async fn close(mut self) -> Result<(), Wrong> {
        self.server().stop().await;
        self.world.doctor().await?;
        self.aftermath.check(&self.world).await?;
        self.world.doctor().await
    }

    async fn cases(
        &mut self,
        command: fn(&str) -> Command,
        reference: &Reference,
    ) -> Result<Vec<Case>, Wrong> {
        if self.world.engine != Engine::Sqlite || command("x").is_like_another {
            return Ok(Case::at_commit(&reference.hits));
        }
        let mut cases = Case::all(&reference.hits, &Hits::new(), false);
        if cases.iter().any(|case| case.point.call == "commit") {
            let lost = self.dry_run(command, true).await?;
            cases.extend(Case::all(&lost.hits, &reference.hits, true));
        }
        Ok(cases)
    }

    /// The second run is the one to go by: the server knows by then what it will know in each case.
    pub async fn reference(&mut self, command: fn(&str) -> Command) -> Result<Reference, Wrong> {
        self.dry_run(command, false).await?;
        let reference = self.dry_run(command, false).await?;
        let shows = reference.before != reference.after;
        match shows == command("x").changes_something() {
            true => Ok(reference),
            false => Err(format!("it shows only {}", reference.after.short())),
        }
    }

    async fn dry_run(
        &mut self,
        command: fn(&str) -> Command,
        lost_commit: bool,
    ) -> Result<Reference, Wrong> {
        let (tag, command) = self.set_up(command).await?;
        let before = self.look(&command, &tag).await?;
        let earlier = self.hits().await;
        if lost_commit {
            self.server_ref().control.lose(&after("commit")).await;
        }
        let answer = self.ask(&command.request).await;
        let mut hits = self.hits().await;
        hits.retain(|point, count| {
            *count -= earlier.get(point).copied().unwrap_or(0);
            *count > 0
        });
        match &answer {
            Some(answer) if command.is_answered(answer) => {}
            other => return Err(format!("on a quiet server: {}", short(other))),
        }
        let after = self.look(&command, &tag).await?;
        Ok(Reference {
            before,
            after,
            hits,
        })
    }

    /// A fresh place for a command, with all that it needs in it.
    pub async fn set_up(
        &mut self,
        command: fn(&str) -> Command,
    ) -> Result<(String, Command), Wrong> {
        self.tags += 1;
        let tag = format!("case_{}", self.tags);
        let mut command = command(&tag);
        let mut metadata = None;
        let place = [create_namespace(&tag)];
        for request in place.iter().chain(&command.setup) {
            let answer = self.ask(request).await;
            let answer = answer.filter(Answer::is_success);
            let answer = answer.ok_or_else(|| format!("{} of the setup fails", request.path))?;
            if let Some(told) = answer.body["metadata-location"].as_str() {
                metadata = Some(told.to_owned());
            }
            self.aftermath.add(&answer.body, command.leaves_files);
        }
        if let (Some(Value::Object(body)), Some(metadata)) = (&mut command.request.body, metadata) {
            let wanted = body.values_mut().filter(|value| *value == METADATA);
            wanted.for_each(|value| *value = Value::String(metadata.clone()));
        }
        Ok((tag, command))
    }

    async fn run_case(
        &mut self,
        command: fn(&str) -> Command,
        case: &Case,
        reference: &Reference,
    ) -> Result<(), Wrong> {
        let (tag, command) = self.set_up(command).await?;
        if case.fault == Fault::Delay {
            self.ask(&create_namespace(&beside(&tag))).await;
        }
        let earlier = self.hits().await;
        if case.after_lost_commit {
            self.server_ref().control.lose(&after("commit")).await;
        }
        let first = match case.fault {
            Fault::Kill => self.kill(case, &command.request).await?,
            Fault::Delay => self.delay(case, &command.request, &tag).await?,
            Fault::Fail | Fault::Lose => {
                let control = &self.server_ref().control;
                match case.fault {
                    Fault::Fail => control.fail(&case.point).await,
                    _ => control.lose(&case.point).await,
                }
                let answer = self.ask(&command.request).await;
                self.was_reached(case, &earlier).await?;
                answer
            }
        };
        let found = self.look(&command, &tag).await?;
        judge(&command, &first, &found, reference)?;

        self.ask_again(&command, &tag, &first, reference).await
    }

    /// The client asks again and gets the one true answer, and the change is there once.
    pub async fn ask_again(
        &self,
        command: &Command,
        tag: &str,
        first: &Option<Answer>,
        reference: &Reference,
    ) -> Result<(), Wrong> {
        let second = self.ask(&command.request).await;
        let third = self.ask(&command.request).await;
        let is_answered =
            |told: &Option<Answer>| told.as_ref().is_some_and(|told| command.is_answered(told));
        if !is_answered(&second) || !is_answered(&third) {
            let (second, third) = (short(&second), short(&third));
            return Err(format!("asked again: {second}; and again: {third}"));
        }
        if let Repeated::ByKey | Repeated::RefusedByKey = command.repeated {
            let is_one = second == third && (!is_answered(first) || *first == second);
            if !is_one {
                let told = [first, &second, &third].map(short);
                return Err(format!("more than one answer: {told:?}"));
            }
        }
        let found = self.look(command, tag).await?;
        match found == reference.after {
            true => Ok(()),
            false => Err(format!(
                "asked again (first {}): {}",
                short(first),
                found.difference(&reference.after)
            )),
        }
    }

    /// What the client was told by a server that got SIGKILL at the point.
    async fn kill(&mut self, case: &Case, request: &Request) -> Result<Option<Answer>, Wrong> {
        let server = self.server();
        let pause = server.pause(case.point.clone()).await;
        let mut sending = server.spawn(request);
        let reached = tokio::select! {
            reached = pause.reached() => reached,
            _ = &mut sending => false,
        };
        // An answer that was given too early gets out before the end.
        server.send(&Request::get("/version")).await;
        server.kill().await;
        self.server = Some(quiet_server(&self.world, &self.flags).await);
        match reached {
            true => Ok(sending.await.unwrap()),
            false => Err("it was answered without coming to the point".to_owned()),
        }
    }

    /// The same where the call takes its time, and another client comes meanwhile.
    async fn delay(
        &mut self,
        case: &Case,
        request: &Request,
        tag: &str,
    ) -> Result<Option<Answer>, Wrong> {
        let server = self.server_ref();
        let pause = server.pause(case.point.clone()).await;
        let mut sending = server.spawn(request);
        tokio::select! {
            reached = pause.reached() => assert!(reached, "the server ended"),
            _ = &mut sending => return Err("it was answered without coming to the point".to_owned()),
        }
        let resolved = self.resolved().await;
        let other = server.spawn(&set_namespace_property(&beside(tag), "by", "another"));
        let waits = case.holds_others();
        while waits && self.resolved().await == resolved && !other.is_finished() {}
        if sending.is_finished() {
            return Err("it was answered before it was done".to_owned());
        }
        if waits {
            pause.resume().await;
        }
        let told = other.await.unwrap();
        if !waits {
            pause.resume().await;
        }
        match told {
            Some(answer) if answer.is_success() => Ok(sending.await.unwrap()),
            other => Err(format!("the other client was told {}", short(&other))),
        }
    }

    async fn resolved(&self) -> u64 {
        let point = after("resolve");
        let hits = self.hits().await;
        hits.get(&(point.call, point.when)).copied().unwrap_or(0)
    }

    async fn was_reached(&self, case: &Case, earlier: &Hits) -> Result<(), Wrong> {
        let point = (case.point.call.clone(), case.point.when);
        let before = earlier.get(&point).copied().unwrap_or(0);
        let now = self.hits().await.get(&point).copied().unwrap_or(0);
        match now - before >= case.point.nth {
            true => Ok(()),
            false => Err("the point was not reached".to_owned()),
        }
    }

    pub async fn look(&self, command: &Command, tag: &str) -> Result<Observation, Wrong> {
        let mut answers = Vec::with_capacity(command.look.len());
        for request in &command.look {
            answers.push(self.ask(request).await.ok_or("no answer to a look")?);
        }
        Ok(Observation::of(&answers, tag))
    }

    pub async fn ask(&self, request: &Request) -> Option<Answer> {
        self.server_ref().send(request).await
    }

    /// The body of a success.
    pub async fn asked(&self, request: &Request) -> Result<Value, Wrong> {
        match self.ask(request).await {
            Some(answer) if answer.is_success() => Ok(answer.body),
            other => Err(format!("{}: {}", request.path, short(&other))),
        }
    }

    async fn hits(&self) -> Hits {
        self.server_ref().control.hits().await
    }

    pub fn server_ref(&self) -> &Server {
        self.server.as_ref().expect("a server runs")
    }

    fn server(&mut self) -> Server {
        self.server.take().expect("a server runs")
    }

    pub async fn while_stopped(&mut self, change: impl FnOnce(&World)) {
        self.server().stop().await;
        change(&self.world);
        self.server = Some(quiet_server(&self.world, &self.flags).await);
    }

    pub async fn restart(&mut self) {
        self.server().kill().await;
        self.server = Some(quiet_server(&self.world, &self.flags).await);
    }
}

/// The namespace that another client changes.
fn beside(tag: &str) -> String {
    format!("{tag}.beside")
}

/// Whether what a client was told is what is there: all of the change or nothing of it, and which
/// of the two as far as the answer says so. What succeeds on a quiet server is never refused, and
/// what is refused there never accepted.
pub fn judge(
    command: &Command,
    told: &Option<Answer>,
    found: &Observation,
    reference: &Reference,
) -> Result<(), Wrong> {
    let is_before = *found == reference.before;
    let is_after = *found == reference.after;
    let fits = match told {
        Some(answer) if command.is_answered(answer) => is_after,
        Some(Answer { status: 503, .. }) => is_before,
        None | Some(Answer { status: 504, .. }) => is_before || is_after,
        Some(_) => false,
    };
    match fits {
        true => Ok(()),
        false => Err(format!(
            "told {}; is before: {is_before}, is after: {is_after}; {}",
            short(told),
            found.difference(&reference.after)
        )),
    }
}

/// A server whose background jobs have done what was due and take no more.
async fn quiet_server(world: &World, flags: &[&str]) -> Server {
    let server = world.server_with("server", flags, "").await;
    loop {
        let hits = server.control.hits().await;
        let count = |call: &str| {
            let point = after(call);
            hits.get(&(point.call, point.when)).copied().unwrap_or(0)
        };
        if count("lease_task") > count("finish_task") + count("postpone_task") {
            // Never resumed.
            server.pause(crate::point::before("lease_task")).await;
            return server;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(status: u16, body: Value) -> Answer {
        Answer { status, body }
    }

    #[test]
    fn half_a_change_a_lost_one_and_a_false_answer_are_noticed() {
        let seen = |one: bool, other: bool| {
            let version = |is_new: bool| answer(200, json!({ "version": u8::from(is_new) }));
            Observation::of(&[version(one), version(other)], "case_1")
        };
        let reference = Reference {
            before: seen(false, false),
            after: seen(true, true),
            hits: Hits::new(),
        };
        let command = super::super::commands::create_table("case_1");
        let is_right = |told: Option<u16>, found: Observation| {
            let told = told.map(|status| answer(status, Value::Null));
            judge(&command, &told, &found, &reference).is_ok()
        };
        for told in [None, Some(200), Some(503), Some(504)] {
            assert!(
                !is_right(told, seen(true, false)),
                "half there, told {told:?}"
            );
        }
        assert!(is_right(Some(200), seen(true, true)));
        assert!(
            !is_right(Some(200), seen(false, false)),
            "acknowledged and lost"
        );
        assert!(is_right(Some(503), seen(false, false)));
        assert!(!is_right(Some(503), seen(true, true)), "applied and denied");
        for told in [None, Some(504)] {
            assert!(is_right(told, seen(true, true)) && is_right(told, seen(false, false)));
        }
        assert!(
            !is_right(Some(409), seen(false, false)),
            "a valid request was refused"
        );
        assert!(
            !is_right(Some(500), seen(false, false)),
            "a fault is no defect"
        );
    }

    #[test]
    fn an_observation_is_the_same_for_other_names_and_ids_and_not_for_other_content() {
        let seen = |tag: &str, id: &str, count: u8| {
            let body = json!({
                "location": format!("file:///w/{tag}/t-{id}"), "last-updated-ms": id.len(),
                "count": count,
            });
            Observation::of(&[answer(200, body)], tag)
        };
        let one = seen("case_1", "0193c3b5-7a1e-7cc2-8f5e-2f0b0c8f1a11", 1);
        let other = seen("case_12", "0193c3b5-8b2f-7dd3-9a6f-3a1c1d9a2b22", 1);
        assert_eq!(one, other);
        assert_ne!(
            one,
            seen("case_1", "0193c3b5-7a1e-7cc2-8f5e-2f0b0c8f1a11", 2)
        );
    }
}
