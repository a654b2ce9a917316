//! What happened to a branch, commit by commit.

use anabranch_store::{Action, BranchId, BranchState, Change, Class, Entry, Key, Revision};

use super::body::{ForkBody, MergeBody, ReferenceName, state_name};
use super::plan::written;

/// What a line of a log tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Tables got new versions, or several things happened at once.
    Commit,
    /// Tables, views or namespaces came into being.
    Create,
    /// They were dropped.
    Drop,
    /// One got another name.
    Rename,
    /// A state was merged.
    Merge,
    /// The branch was made.
    Fork,
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The state that the branch showed since.
    pub revision: String,
    /// When, in milliseconds since 1970 by the store's clock.
    pub at: i64,
    /// Who.
    pub by: String,
    /// What.
    pub event: Event,
    /// The names that it changed, levels with dots between.
    pub tables: Vec<String>,
    /// What was merged, or what the branch was made from.
    pub source: Option<LogSource>,
}

/// A state that came into a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSource {
    /// As the request named it: the name may mean another reference by now.
    pub name: ReferenceName,
    /// The state.
    pub revision: String,
}

/// The lines of one branch, the last first. The changes are those that the change log has, the
/// last first and whole revisions; the merges also those that it has no longer.
pub(crate) fn lines(
    branch: BranchId,
    changes: &[Change],
    merges: &[(Key, Entry)],
) -> Vec<(Revision, LogEntry)> {
    let mut lines: Vec<(Revision, LogEntry)> = Vec::new();
    for of_one in changes.chunk_by(|one, other| one.revision == other.revision) {
        let is_content = |change: &&Change| {
            matches!(
                change.key.class,
                Class::Container | Class::Table | Class::Merge
            )
        };
        let of_one: Vec<&Change> = of_one.iter().rev().filter(is_content).collect();
        lines.extend(line(branch, &of_one));
    }
    for (_, entry) in merges {
        if lines.iter().all(|(revision, _)| *revision != entry.from) {
            lines.extend(old_merge(branch, entry));
        }
    }
    lines.sort_by_key(|(revision, _)| std::cmp::Reverse(*revision));
    lines
}

fn line(branch: BranchId, changes: &[&Change]) -> Option<(Revision, LogEntry)> {
    let first = changes.first()?;
    let mut tables: Vec<String> = Vec::new();
    let mut source = None;
    let mut actions = Vec::new();
    for change in changes {
        let key = &change.key;
        if key.class == Class::Merge {
            let merge = change.after.as_ref();
            source = merge.and_then(|body| serde_json::from_str::<MergeBody>(body).ok());
            continue;
        }
        let name = written(&(key.scope.clone(), key.class, key.name.clone()));
        if !tables.contains(&name) {
            tables.push(name);
        }
        actions.push(change.action);
    }
    let all = |wanted| actions.iter().all(|action| *action == wanted);
    let event = match &source {
        Some(_) => Event::Merge,
        None if all(Action::Create) => Event::Create,
        None if all(Action::Drop) => Event::Drop,
        None if all(Action::Rename) => Event::Rename,
        None => Event::Commit,
    };
    let entry = LogEntry {
        revision: named(branch, first.revision),
        at: first.at.millis(),
        by: first.principal.clone(),
        event,
        tables,
        source: source.map(|merge| merge_source(&merge)),
    };
    Some((first.revision, entry))
}

fn old_merge(branch: BranchId, entry: &Entry) -> Option<(Revision, LogEntry)> {
    let merge: MergeBody = serde_json::from_str(&entry.body).ok()?;
    let line = LogEntry {
        revision: named(branch, entry.from),
        at: entry.from.time().millis(),
        by: merge.by.clone(),
        event: Event::Merge,
        tables: merge.tables.clone(),
        source: Some(merge_source(&merge)),
    };
    Some((entry.from, line))
}

/// The line of a branch's creation. The state is the one that it showed then.
pub(crate) fn fork_line(entry: &Entry) -> Option<LogEntry> {
    let fork: ForkBody = serde_json::from_str(&entry.body).ok()?;
    let revision = state_name(fork.state);
    Some(LogEntry {
        revision: revision.clone(),
        at: entry.from.time().millis(),
        by: fork.by,
        event: Event::Fork,
        tables: Vec::new(),
        source: Some(LogSource {
            name: fork.source,
            revision,
        }),
    })
}

fn merge_source(merge: &MergeBody) -> LogSource {
    LogSource {
        name: merge.source.clone(),
        revision: state_name(merge.state),
    }
}

fn named(branch: BranchId, revision: Revision) -> String {
    state_name(BranchState { branch, revision })
}
