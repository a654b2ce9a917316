//! What was answered, against the states that the answer can be of.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_partition::Reason;
use anabranch_store::{Class, Key};

use super::window::Window;
use super::{Checker, Verdict, is_recognised, is_seen, tables_of};
use crate::log::Body;
use crate::record::{Answer, Request, Seen, SeenTable, Sending, Value};
use crate::sequential::{self, Look, State, Thing};
use crate::words::Command;

impl Checker<'_> {
    pub(super) fn check_answers(&mut self) -> Verdict {
        let mut sendings: Vec<&Sending> = self.run.record.sendings.iter().collect();
        sendings.sort_by_key(|sending| sending.answered);
        for sending in sendings {
            let request = self.request(sending.step);
            let first = self.first_call[&sending.step];
            // The first answer under a key is given again.
            let called = if request.step.keyed {
                first
            } else {
                sending.called
            };
            let window = self.window(called, sending.answered);
            let explained = match &sending.answer {
                Answer::Done { value, .. } => self.explain_done(request, sending, value, &window),
                Answer::Seen(seen) => self.explain_seen(&request.step.command, seen, &window),
                Answer::Refused(reason, _) => self.explain_refused(request, *reason, &window),
                Answer::Broken(message) => Err(message.clone()),
                Answer::NotApplied(_) | Answer::Unknown => Ok(()),
            };
            if let Err(why) = explained {
                let answer = &sending.answer;
                return Err(format!(
                    "{} sent to server {} was answered {answer:?}, but {why}",
                    request.step, sending.server
                ));
            }
            // Who saw a version knows the command that made it.
            let made = sending.answer.tables().iter();
            let made: Vec<usize> = made.filter_map(|table| self.maker(table)).collect();
            self.known
                .extend(made.into_iter().map(|index| (sending.answered, index)));
        }
        Ok(())
    }

    /// The accepted command that made what was seen of a table.
    fn maker(&self, table: &SeenTable) -> Option<usize> {
        let mut states = self.states.iter();
        let made = states.position(|state| {
            let mut things = state.values();
            things.any(|thing| is_seen(table, thing))
        })?;
        made.checked_sub(1)
    }

    fn explain_done(
        &self,
        request: &Request,
        sending: &Sending,
        value: &Value,
        window: &Window,
    ) -> Verdict {
        let has_revision = !matches!(sending.answer, Answer::Done { revision: None, .. });
        if let Some(index) = self.acknowledges(sending).filter(|_| has_revision) {
            if index >= window.asked {
                return Err("that was asked for later".to_owned());
            }
            return self.explain_outcome(request, value, index);
        }
        let Value::Tables(tables) = value else {
            let mut applied = self.applied(request.step.id);
            let is_one = |index: usize| {
                index < window.asked && self.explain_outcome(request, value, index).is_ok()
            };
            return match applied.any(is_one) {
                true => Ok(()),
                false => self.explain_no_change(request, value, window),
            };
        };
        // What was applied before is shown as it is now, or as the request left it.
        let again = self.applied(request.step.id).next();
        let is_again = again
            .filter(|_| is_recognised(request))
            .is_some_and(|index| {
                let left = Window {
                    known: BTreeMap::new(),
                    asked: index + 1,
                };
                tables.len() == tables_of(request)
                    && tables.iter().all(|table| {
                        self.shows(request, table, window, index + 1)
                            || self.shows(request, table, &left, index + 1)
                    })
            });
        if is_again {
            return Ok(());
        }
        self.explain_no_change(request, value, window)
    }

    /// Accepted, and nothing was changed by it.
    fn explain_no_change(&self, request: &Request, value: &Value, window: &Window) -> Verdict {
        for state in self.states_in(window) {
            for catalog in self.resolved(&request.step.command, window) {
                let Ok(effect) = self.ground(&state, catalog, &[]).decide(request) else {
                    continue;
                };
                let is_same = match value {
                    Value::Nothing => true,
                    Value::Properties(changed) => effect.properties.as_ref() == Some(changed),
                    Value::Tables(tables) => tables
                        .iter()
                        .all(|table| self.shows(request, table, window, 0)),
                };
                if effect.lines.is_empty() && is_same {
                    return Ok(());
                }
            }
        }
        Err("the log has no such change".to_owned())
    }

    /// Whether the outcome of an accepted command was told as it is.
    fn explain_outcome(&self, request: &Request, value: &Value, index: usize) -> Verdict {
        let any_time = |asked: usize| Window {
            known: BTreeMap::new(),
            asked,
        };
        let is_told = match value {
            Value::Nothing => true,
            Value::Properties(changed) => {
                let catalogs = self.resolved(&request.step.command, &any_time(index));
                catalogs.into_iter().any(|catalog| {
                    let ground = self.ground(&self.states[index], catalog, &[]);
                    let decided = ground.decide(request);
                    decided.is_ok_and(|effect| effect.properties.as_ref() == Some(changed))
                })
            }
            Value::Tables(tables) => {
                let window = any_time(index + 1);
                let shown = |table| self.shows(request, table, &window, index + 1);
                tables.len() == tables_of(request) && tables.iter().all(shown)
            }
        };
        if is_told {
            return Ok(());
        }
        let made = &self.run.log.done[index].lines;
        Err(format!("it made {made:?}"))
    }

    /// Whether a table stands as it was seen in a state of the window, of which the first `least`
    /// commands are part.
    fn shows(&self, request: &Request, seen: &SeenTable, window: &Window, least: usize) -> bool {
        // Under whichever name the catalog had.
        let any_time = Window {
            known: BTreeMap::new(),
            asked: window.asked,
        };
        let catalogs = self.resolved(&request.step.command, &any_time);
        let mut states = self.states[..=window.asked].iter().enumerate();
        states.any(|(index, state)| {
            catalogs.iter().flatten().any(|catalog| {
                let database = sequential::partition_of(state, *catalog, &seen.levels[0]);
                let Some(database) = database else {
                    return false;
                };
                let known = window.known.get(&database).copied().unwrap_or(0);
                let scope: Vec<&str> = seen.levels[1..].iter().map(String::as_str).collect();
                let key = sequential::key(database, &scope, Class::Table, &seen.table);
                index >= known.max(least)
                    && state.get(&key).is_some_and(|thing| is_seen(seen, thing))
            })
        })
    }

    fn explain_seen(&self, command: &Command, seen: &Seen, window: &Window) -> Verdict {
        if matches!(seen, Seen::Nothing | Seen::Pinned(_)) {
            return Ok(());
        }
        let mut others = BTreeSet::new();
        for state in self.states_in(window) {
            for catalog in self.looked_into(&state, command, window) {
                let look = self.ground(&state, catalog, &[]).look(command);
                let is_same = match (seen, &look) {
                    (Seen::Names(seen), Ok(Look::Names(names))) => seen == names,
                    (Seen::Namespace(seen), Ok(Look::Namespace(properties))) => seen == properties,
                    (Seen::Table(seen), Ok(Look::Table(thing))) => is_seen(seen, thing),
                    _ => false,
                };
                if is_same {
                    return Ok(());
                }
                others.insert(format!("{look:?}"));
            }
        }
        Err(format!("there was only {others:?}"))
    }

    fn explain_refused(&self, request: &Request, reason: Reason, window: &Window) -> Verdict {
        let command = &request.step.command;
        let applied = self.applied(request.step.id).next();
        if let Some(index) = applied.filter(|_| request.step.keyed) {
            let revision = self.run.log.done[index].revision;
            return Err(format!("under its key it was applied at {revision}"));
        }
        let mut others = BTreeSet::new();
        for state in self.states_in(window) {
            let reasons: Vec<Reason> = if command.changes_something() {
                let catalogs = self.resolved(command, window).into_iter();
                let decided = catalogs.filter_map(|catalog| {
                    let ground = self.ground(&state, catalog, &[]);
                    ground.decide(request).err()
                });
                decided.flatten().collect()
            } else {
                let catalogs = self.looked_into(&state, command, window).into_iter();
                let looks = catalogs.filter_map(|catalog| {
                    let ground = self.ground(&state, catalog, &[]);
                    ground.look(command).err()
                });
                looks.flatten().collect()
            };
            // Once it was applied, what it did itself is no reason to refuse it.
            let is_own = applied.is_some_and(|applied| {
                self.is_in(applied, &state) && self.names_itself(request, applied, &state)
            });
            if !is_own && reasons.contains(&reason) {
                return Ok(());
            }
            others.extend(reasons.iter().map(|reason| format!("{reason:?}")));
        }
        let after = match applied {
            Some(index) => format!(
                " and it was applied at {}",
                self.run.log.done[index].revision
            ),
            None => String::new(),
        };
        Err(format!("the only reasons were {others:?}{after}"))
    }

    /// Whether a state shows that a command or a later one in its partitions was applied.
    fn is_in(&self, index: usize, state: &State) -> bool {
        let revision = self.run.log.done[index].revision;
        let changed = &self.changed[index];
        let shows = |(key, thing): (&Key, &Thing)| {
            changed.contains(&key.partition) && thing.from >= revision
        };
        state.iter().any(shows)
    }

    /// Whether the request is known by an id in it to be the one that was applied.
    fn names_itself(&self, request: &Request, applied: usize, state: &State) -> bool {
        let Command::Commit(catalog, changes) = &request.step.command else {
            return matches!(request.step.command, Command::CreateStaged(..));
        };
        let lines = &self.run.log.done[applied].lines;
        let was_changed = |uuid: &String| {
            lines.iter().any(|line| match &line.after {
                Some(Body::Table { content, .. }) => content.uuid == *uuid,
                _ => false,
            })
        };
        changes
            .iter()
            .zip(&request.asserted)
            .filter(|(change, _)| change.append.is_some())
            .any(|(change, asserted)| {
                let found = sequential::partition_of(state, self.run.metalake, catalog)
                    .and_then(|catalog| sequential::partition_of(state, catalog, change.levels[0]))
                    .and_then(|database| {
                        let scope = &change.levels[1..];
                        state.get(&sequential::key(
                            database,
                            scope,
                            Class::Table,
                            change.table,
                        ))
                    });
                let standing = match found.map(|thing| &thing.body) {
                    Some(Body::Table { content, .. }) => Some(&content.uuid),
                    _ => None,
                };
                asserted.uuid.as_ref().is_some_and(was_changed) || standing.is_some_and(was_changed)
            })
    }
}
