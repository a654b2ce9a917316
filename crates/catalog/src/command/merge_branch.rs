//! Merges a state into a branch: one commit at one revision, or nothing.

use std::collections::BTreeSet;

use anabranch_partition::{Command, Context, Layers, Reason, Refusal, Stop, Subject, View};
use anabranch_store::{
    BranchId, BranchRow, BranchState, Class, Key, Kind, ObjectId, PartitionId, Pin, Read,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::name::LEVEL_SEPARATOR;
use crate::place::{Container, scope_key};
use crate::reference::body::{
    MergeBody, ReferenceKind, ReferenceName, merge_key, reference_key, state_name,
};
use crate::reference::find::{
    Missing, ReferenceInfo, branch_named, chosen_state, find, find_source, no_reference,
    oldest_name,
};
use crate::reference::past::Past;
use crate::reference::plan::{
    Conflict, Modes, Outcome, Place, Plan, Standing, Version, Why, written,
};
use crate::reference::sides::Sides;

/// Locks the database's partition. Costs what the source changed since the merge base, whatever
/// the database holds.
pub(crate) struct MergeBranch {
    pub(crate) database: Container,
    pub(crate) target: String,
    pub(crate) source: ReferenceName,
    /// Not what the source shows now, but this state of it.
    pub(crate) state: Option<BranchState>,
    /// What the target has to show.
    pub(crate) expected: Option<String>,
    pub(crate) modes: Modes,
    /// Only says what would be.
    pub(crate) dry_run: bool,
}

/// What a merge came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Merged {
    /// The target afterwards.
    pub reference: ReferenceInfo,
    /// The state that the target shows afterwards.
    pub revision: String,
    /// The states that both sides were compared with: the best common ancestors.
    pub bases: Vec<String>,
    /// Whether the target became exactly what the source is, which had all of the target in it.
    pub fast_forward: bool,
    /// What became of each table that the source touched.
    pub tables: Vec<MergedTable>,
}

/// What became of one table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MergedTable {
    /// Its name below the database, levels joined by dots.
    pub table: String,
    /// What became of it.
    pub outcome: Outcome,
}

/// Conflicts that a refusal shows; it counts them all.
const SHOWN_CONFLICTS: usize = 1000;
/// Names that the log tells of a merge which the change log has no longer.
const LOGGED_TABLES: usize = 1000;
/// Branches in a past, above which it is looked through.
const LONG_PAST: usize = 64;

impl Command for MergeBranch {
    type Outcome = Merged;

    fn name(&self) -> &'static str {
        "merge_branch"
    }

    fn reads(&self) -> Vec<Read> {
        let partition = self.database.partition;
        let names = [&self.target, &self.source.name];
        let keys = names.map(|name| Read::Point(reference_key(partition, name)));
        keys.into_iter().chain([self.database.read()]).collect()
    }

    fn apply(&self, view: &mut View<'_>, context: &Context<'_>) -> Result<Merged, Stop> {
        self.database.guard(view, Subject::Namespace)?;
        let partition = self.database.partition;
        let target = find(view, partition, &self.target)?
            .ok_or_else(|| no_reference(&branch_named(&self.target), Missing::Target))?;
        if target.name.kind == ReferenceKind::Tag {
            let message = format!(
                "{} is a tag, which never changes; merge into a branch",
                self.target
            );
            return Err(target.refuse(Reason::Conflict, message, json!({})).into());
        }
        let source = find_source(view, partition, &self.source)?;
        target.expect(self.expected.as_deref())?;
        let source_state = chosen_state(view, &source, self.state)?;
        let merged_state = oldest_name(&source.row, source_state.revision);
        let sides = Sides {
            partition,
            source: (source.row, source_state),
            target: (target.row.clone(), target.state()),
        };
        let pasts = sides.pasts(view)?;
        if pasts.1.includes(merged_state) {
            return Ok(Merged {
                reference: target.info(),
                revision: state_name(target.state()),
                bases: vec![state_name(merged_state)],
                fast_forward: false,
                tables: Vec::new(),
            });
        }
        let bases = sides.bases(view, &pasts)?;
        let mut plan = sides.plan(view, &pasts, &bases, &self.modes)?;
        self.check_namespaces(view, &target.row, &mut plan)?;
        check_places(view, &target.row, &mut plan)?;
        if !plan.conflicts.is_empty() {
            return Err(self.conflicts(&plan.conflicts).into());
        }
        let is_whole = plan.left_out.is_empty();
        let fast_forward = is_whole && pasts.0.includes(oldest_name(&target.row, target.row.head));
        let base_states: Vec<BranchState> = bases.iter().map(|(_, state, _)| *state).collect();
        let mut merged = Merged {
            reference: target.info(),
            revision: state_name(target.state()),
            bases: base_states.iter().map(|state| state_name(*state)).collect(),
            fast_forward,
            tables: tables(&plan),
        };
        if self.dry_run {
            return Ok(merged);
        }
        write(view, &target.row, &plan)?;
        let owner = ObjectId::new(context.revision.0.unsigned_abs());
        let body = MergeBody {
            source: self.source.clone(),
            state: merged_state,
            bases: base_states,
            past: of_what_is_known(view, partition, pasts.1.and(&pasts.0))?,
            left_out: plan.left_out.into_iter().collect(),
            by: context.principal.to_owned(),
            tables: plan
                .writes
                .keys()
                .take(LOGGED_TABLES)
                .map(written)
                .collect(),
        };
        let key = merge_key(partition, target.row.branch, context.revision);
        view.put(key, Kind::Merge, owner, crate::body::write(&body))?;
        let lineage = sides.source.0.lineage.iter().copied();
        view.pin(
            std::iter::once(source_state)
                .chain(lineage)
                .map(|state| Pin {
                    partition,
                    state,
                    owner,
                }),
        );
        merged.revision = state_name(BranchState {
            branch: target.row.branch,
            revision: context.revision,
        });
        merged.reference.revision = merged.revision.clone();
        Ok(merged)
    }
}

/// Branches of which nothing is left are in nobody else's past: a long one is freed of them.
fn of_what_is_known(view: &View<'_>, partition: PartitionId, past: Past) -> Result<Past, Stop> {
    if past.branches().count() <= LONG_PAST {
        return Ok(past);
    }
    let branches: Vec<BranchId> = past.branches().collect();
    let known = view.known_branches(partition, &branches)?;
    Ok(past.of_branches(&known))
}

fn tables(plan: &Plan) -> Vec<MergedTable> {
    let outcomes = plan.outcomes.iter();
    outcomes
        .map(|(place, outcome)| MergedTable {
            table: written(place),
            outcome: *outcome,
        })
        .collect()
}

/// What leaves goes before what comes.
fn write(view: &mut View<'_>, target: &BranchRow, plan: &Plan) -> Result<(), Stop> {
    let places: Vec<Place> = plan.writes.keys().cloned().collect();
    // All at once: each would ask for its own rows, and have everything decided again for it.
    view.find_all(&Layers::now(target), &places)?;
    let key = |place: &Place| Key {
        partition: target.partition,
        branch: target.branch,
        scope: place.0.clone(),
        class: place.1,
        name: place.2.clone(),
    };
    for (place, version) in &plan.writes {
        if version.is_none() {
            view.remove(key(place))?;
        }
    }
    for (place, version) in &plan.writes {
        if let Some(version) = version {
            let Version { kind, object, body } = version.clone();
            view.put(key(place), kind, object, body)?;
        }
    }
    Ok(())
}

/// A thing stands in one place on `main`: one that was moved to another database since stays there.
fn check_places(view: &View<'_>, target: &BranchRow, plan: &mut Plan) -> Result<(), Stop> {
    if target.branch != BranchId::MAIN {
        return Ok(());
    }
    let written = plan.writes.iter();
    let written: Vec<(&Place, &Version)> = written
        .filter_map(|(place, version)| Some((place, version.as_ref()?)))
        .collect();
    let objects: Vec<ObjectId> = written.iter().map(|(_, version)| version.object).collect();
    let mut conflicts = Vec::new();
    for ((place, version), standing) in written.into_iter().zip(view.places_on_main(&objects)?) {
        if standing.is_some_and(|(key, _)| key.partition != target.partition) {
            let standing = Standing {
                place: place.clone(),
                version: version.clone(),
            };
            conflicts.push(Conflict {
                place: place.clone(),
                base: None,
                source: Some(standing),
                target: None,
                why: Why::MovedAway,
            });
        }
    }
    plan.conflicts.extend(conflicts);
    Ok(())
}

impl MergeBranch {
    /// Every namespace that is written into has to stand afterwards, and none that goes may have
    /// anything in it.
    fn check_namespaces(
        &self,
        view: &View<'_>,
        target: &BranchRow,
        plan: &mut Plan,
    ) -> Result<(), Stop> {
        let parents: BTreeSet<Place> = plan
            .writes
            .keys()
            .filter_map(|place| scope_key((target.partition, target.branch), &place.0))
            .map(|key| (key.scope, key.class, key.name))
            .collect();
        let parents: Vec<Place> = parents.into_iter().collect();
        // All at once, as in `write`.
        view.find_all(&Layers::now(target), &parents)?;
        let mut conflicts = Vec::new();
        for (place, version) in &plan.writes {
            let conflict = |why| Conflict {
                place: place.clone(),
                base: None,
                source: version.clone().map(|version| Standing {
                    place: place.clone(),
                    version,
                }),
                target: None,
                why,
            };
            match version {
                Some(_) => {
                    let parent = scope_key((target.partition, target.branch), &place.0);
                    if let Some(parent) = parent
                        && !stands(view, plan, &parent)?
                    {
                        conflicts.push(conflict(Why::NoNamespace));
                    }
                }
                None if place.1 == Class::Container => {
                    let scope = match place.0.as_str() {
                        "" => place.2.clone(),
                        scope => format!("{scope}{LEVEL_SEPARATOR}{}", place.2),
                    };
                    if is_used(view, target, plan, &scope)? {
                        let standing =
                            view.find_all(&Layers::now(target), std::slice::from_ref(place))?;
                        let standing = standing.into_iter().flatten().next();
                        conflicts.push(Conflict {
                            target: standing.map(|entry| Standing {
                                place: place.clone(),
                                version: Version::of(entry),
                            }),
                            ..conflict(Why::NamespaceInUse)
                        });
                    }
                }
                None => {}
            }
        }
        plan.conflicts.extend(conflicts);
        Ok(())
    }

    fn conflicts(&self, conflicts: &[Conflict]) -> Refusal {
        let shown = conflicts.iter().take(SHOWN_CONFLICTS);
        let shown: Vec<Value> = shown.map(shown_conflict).collect();
        let names: Vec<String> = conflicts
            .iter()
            .take(3)
            .map(|conflict| format!("{} ({})", written(&conflict.place), words(conflict)))
            .collect();
        let ways: BTreeSet<&str> = conflicts.iter().map(|one| way_out(one.why)).collect();
        let ways: Vec<&str> = ways.into_iter().collect();
        let more = match conflicts.len() {
            0..=3 => String::new(),
            all => format!(" and {} more", all - 3),
        };
        Refusal {
            reason: Reason::Conflict,
            message: format!(
                "{} can't be merged into {}: {}{more}; look at both, then {}",
                self.source.name,
                self.target,
                names.join(", "),
                ways.join(", and ")
            ),
            details: Some(json!({ "conflicts": shown })),
        }
    }
}

fn stands(view: &View<'_>, plan: &Plan, namespace: &Key) -> Result<bool, Stop> {
    let place = (
        namespace.scope.clone(),
        namespace.class,
        namespace.name.clone(),
    );
    if let Some(written) = plan.writes.get(&place) {
        return Ok(written.is_some());
    }
    Ok(view.get(namespace)?.is_some())
}

/// Whether a namespace that goes would have something in it.
fn is_used(view: &View<'_>, target: &BranchRow, plan: &Plan, scope: &str) -> Result<bool, Stop> {
    let is_inside = |place: &Place| {
        let rest = place.0.strip_prefix(scope);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(LEVEL_SEPARATOR))
    };
    let written = plan.writes.iter().filter(|(place, _)| is_inside(place));
    let gone = written.clone().filter(|(_, version)| version.is_none());
    if written.count() > gone.clone().count() {
        return Ok(true);
    }
    let limit = u32::try_from(gone.count() + 1).unwrap_or(u32::MAX);
    let inside = view.under(target.partition, target.branch, scope, limit)?;
    let left = inside.iter().filter(|(key, _)| {
        let place = (key.scope.clone(), key.class, key.name.clone());
        plan.writes.get(&place) != Some(&None)
    });
    Ok(left.count() > 0)
}

fn words(conflict: &Conflict) -> &'static str {
    let is_namespace = conflict.place.1 == Class::Container;
    match conflict.why {
        Why::BothChanged => "changed on both sides",
        Why::BasesDisagree => "its histories cross, and what both sides started from differs",
        Why::NameTaken if is_namespace => "the target has another namespace of that name",
        Why::NameTaken => "the target has another table of that name",
        Why::NoNamespace => "the target has no such namespace",
        Why::MovedAway => "it stands in another database now",
        Why::NamespaceInUse => "dropped in the source, but the target has something in it",
    }
}

fn way_out(why: Why) -> &'static str {
    match why {
        Why::BothChanged | Why::BasesDisagree | Why::NameTaken => {
            "merge again with a mode for each, FORCE to take the source's or DROP to leave it out"
        }
        Why::NoNamespace => "take the namespace too, or leave out with DROP what is in it",
        Why::MovedAway => "leave out with DROP what was moved away, or move it back first",
        Why::NamespaceInUse => "leave the namespace with DROP, or empty it in the target first",
    }
}

fn shown_conflict(conflict: &Conflict) -> Value {
    let state = |standing: &Option<Standing>| match standing {
        Some(standing) => json!({
            "table": written(&standing.place),
            "tableId": standing.version.object.0.to_string(),
            "version": serde_json::from_str::<Value>(&standing.version.body).unwrap_or_default(),
        }),
        None => Value::Null,
    };
    json!({
        "table": written(&conflict.place),
        "why": words(conflict),
        "base": state(&conflict.base),
        "source": state(&conflict.source),
        "target": state(&conflict.target),
    })
}
