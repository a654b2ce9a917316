//! What references show, how they came to it, and how they differ.

use anabranch_partition::{Listing as LayeredListing, Refusal, RunError, Stop, Subject, View};
use anabranch_store::{
    Answer, BranchId, BranchState, Change, Class, Key, PartitionId, Read, Revision,
};
use serde_json::json;

use crate::error::CatalogError;
use crate::name::{LEVEL_SEPARATOR, Warehouse};
use crate::place::not_found;
use crate::reference::body::{fork_key, merge_key, named_state, state_name};
use crate::reference::diff::{Difference, difference};
use crate::reference::find::{Found, Missing, branch_named, chosen_state, find, no_reference};
use crate::reference::log::{LogEntry, fork_line, lines};
use crate::reference::plan::Place;
use crate::reference::shown::ReferenceTable;
use crate::reference::sides::Side;
use crate::service::listing::{Listing, Page};
use crate::service::{Catalog, Core};

/// Changes that are read at once for a log, at least.
const CHANGES: u32 = 1000;

impl Catalog {
    /// The tables and views that a reference shows, or showed at an earlier revision of it, with
    /// those in nested namespaces, by namespace and name. All pages are of one state.
    pub async fn list_reference_tables(
        &self,
        warehouse: &Warehouse,
        database: &str,
        name: &str,
        revision: Option<&str>,
        page: &Page,
    ) -> Result<Listing<ReferenceTable>, CatalogError> {
        let core = &self.core;
        let database = core.versioned(warehouse, database).await?.partition;
        let token = TableToken::read(page)?;
        let asked = token.as_ref().map(|token| token.state.as_str());
        let side = core.side(database, name, asked.or(revision)).await?;
        let state = side.1;
        let limit = page.limit()?;
        let mut after = token.map(|token| token.last);
        let mut tables = Vec::new();
        loop {
            let listing = LayeredListing::Under {
                scope: String::new(),
                after: after.clone(),
                limit,
            };
            let found = core.list_state(&side, listing).await?;
            let is_full = found.len() as u32 == limit;
            after = found.last().map(|(key, _)| place(key));
            let shown = found.iter().filter(|(key, _)| key.class == Class::Table);
            tables.extend(shown.map(|(key, entry)| ReferenceTable::new(&place(key), entry)));
            let is_page = page.token.is_some() && !tables.is_empty();
            if is_page || !is_full {
                let next = after.filter(|_| is_full).map(|last| TableToken {
                    state: state_name(state),
                    last,
                });
                return Ok(Listing {
                    items: tables,
                    next: next.map(|token| token.write()),
                    revision: Some(state_name(state)),
                });
            }
        }
    }

    /// One table or view that a reference shows, with the state that was looked at.
    pub async fn reference_table(
        &self,
        warehouse: &Warehouse,
        database: &str,
        name: &str,
        table: &str,
        revision: Option<&str>,
    ) -> Result<(ReferenceTable, String), CatalogError> {
        let core = &self.core;
        let database = core.versioned(warehouse, database).await?.partition;
        let side = core.side(database, name, revision).await?;
        // Names hold dots too: whichever way to part it leads to something.
        let mut parts: Vec<&str> = table.split('.').collect();
        let mut scope: Vec<String> = Vec::new();
        let mut places = Vec::new();
        while !parts.is_empty() && scope.len() < crate::name::MAX_DEPTH {
            let levels = scope.join(&LEVEL_SEPARATOR.to_string());
            places.push((levels, Class::Table, parts.join(".")));
            scope.push(parts.remove(0).to_owned());
        }
        for place in places {
            let found = core.shown(&side, &place).await?;
            if let Some(entry) = found {
                return Ok((ReferenceTable::new(&place, &entry), state_name(side.1)));
            }
        }
        let missing = Refusal {
            details: Some(json!({ "table": table })),
            ..not_found(Subject::Table, table)
        };
        Err(missing.into())
    }

    /// What happened to a reference, the last first: to its branch, then to what that was made
    /// from. It reaches as far back as the change log, and on from there with merges and forks.
    pub async fn reference_log(
        &self,
        warehouse: &Warehouse,
        database: &str,
        name: &str,
        page: &Page,
    ) -> Result<Listing<LogEntry>, CatalogError> {
        let core = &self.core;
        let database = core.versioned(warehouse, database).await?.partition;
        let (row, state) = core.side(database, name, None).await?;
        let layers: Vec<BranchState> = std::iter::once(state).chain(row.lineage).collect();
        let limit = page.limit()? as usize;
        let (mut number, mut before) = match page.token.as_deref() {
            None | Some("") => (0, after(state.revision)),
            Some(token) => log_position(token, &layers)?,
        };
        let mut entries: Vec<LogEntry> = Vec::new();
        loop {
            let layer = layers[number].branch;
            let (found, is_end) = core.log_of(database, layer, before).await?;
            for (revision, entry) in found {
                entries.push(entry);
                before = revision;
                if entries.len() == limit {
                    break;
                }
            }
            let is_whole = is_end && entries.len() < limit;
            if is_whole && number + 1 == layers.len() {
                return Ok(log_page(entries, None, state));
            }
            if is_whole {
                entries.extend(core.fork_of(database, layer).await?);
                number += 1;
                before = after(layers[number].revision);
            }
            if entries.len() >= limit {
                let position = BranchState {
                    branch: layers[number].branch,
                    revision: before,
                };
                return Ok(log_page(entries, Some(position), state));
            }
        }
    }

    /// What differs between two references of a database, or earlier states of them.
    pub async fn reference_diff(
        &self,
        warehouse: &Warehouse,
        database: &str,
        (name, revision): (&str, Option<&str>),
        (other, other_revision): (&str, Option<&str>),
    ) -> Result<Difference, CatalogError> {
        let core = &self.core;
        let database = core.versioned(warehouse, database).await?.partition;
        let one = core.side(database, name, revision).await?;
        let other = core.side(database, other, other_revision).await?;
        let rule = |view: &View<'_>| difference(view, database, one.clone(), other.clone());
        let found = core.partitions.look(rule).await?;
        // What was read while it was being pruned wasn't whole.
        for side in [&one, &other] {
            core.check_kept(side).await?;
        }
        Ok(found)
    }
}

impl Core {
    /// A reference's branch, and the state that it shows or showed.
    async fn side(
        &self,
        database: PartitionId,
        name: &str,
        revision: Option<&str>,
    ) -> Result<Side, CatalogError> {
        let asked = revision.map(|revision| {
            named_state(revision).ok_or_else(|| {
                Refusal::invalid(format!(
                    "the revision {:?} is none that an answer gave out",
                    revision.chars().take(60).collect::<String>()
                ))
            })
        });
        let asked = asked.transpose()?;
        let rule = |view: &View<'_>| -> Result<(Found, BranchState), Stop> {
            let found = find(view, database, name)?;
            let found = found.ok_or_else(|| no_reference(&branch_named(name), Missing::Target))?;
            let state = chosen_state(view, &found, asked)?;
            Ok((found, state))
        };
        let (found, state) = self.partitions.look(rule).await?;
        Ok((found.row, state))
    }

    /// Lines of one branch before a revision, and whether they are all.
    async fn log_of(
        &self,
        database: PartitionId,
        branch: BranchId,
        before: Revision,
    ) -> Result<(Vec<(Revision, LogEntry)>, bool), CatalogError> {
        let mut limit = CHANGES;
        loop {
            let reads = [
                Read::Log {
                    partition: database,
                    branch,
                    before,
                    limit,
                },
                Read::Range {
                    partition: database,
                    branch,
                    scope: String::new(),
                    class: Class::Merge,
                    kinds: Vec::new(),
                    after: Some(merge_key(database, branch, before).name),
                    limit,
                },
            ];
            let mut answers = self.partitions.read(&reads).await?.into_iter();
            let (Some(Answer::Changes(mut changes)), Some(Answer::Entries(mut merges))) =
                (answers.next(), answers.next())
            else {
                return Err(RunError::Failed.into());
            };
            let is_end = (changes.len() as u32) < limit;
            let merges_end = (merges.len() as u32) < limit;
            if !is_end {
                // The last revision may not be there whole.
                let last = changes.last().map(|change| change.revision);
                changes.retain(|change| Some(change.revision) != last);
                if changes.is_empty() {
                    limit *= 4;
                    continue;
                }
            }
            let reached = oldest(&changes, is_end);
            merges.retain(|(_, entry)| entry.from >= reached);
            let found = lines(branch, &changes, &merges);
            if found.is_empty() && !is_end {
                // Nothing but references was made and deleted in between.
                return Box::pin(self.log_of(database, branch, reached)).await;
            }
            return Ok((found, is_end && merges_end));
        }
    }

    async fn fork_of(
        &self,
        database: PartitionId,
        branch: BranchId,
    ) -> Result<Option<LogEntry>, CatalogError> {
        let read = [Read::Point(fork_key(database, branch))];
        match self.partitions.read(&read).await?.pop() {
            Some(Answer::Entry(entry)) => Ok(entry.as_ref().and_then(fork_line)),
            _ => Err(RunError::Failed.into()),
        }
    }
}

/// Down to where a part of the change log says everything.
fn oldest(changes: &[Change], is_end: bool) -> Revision {
    match changes.last() {
        Some(change) if !is_end => change.revision,
        _ => Revision::ZERO,
    }
}

fn after(revision: Revision) -> Revision {
    Revision(revision.0.saturating_add(1))
}

fn log_page(
    items: Vec<LogEntry>,
    next: Option<BranchState>,
    shown: BranchState,
) -> Listing<LogEntry> {
    Listing {
        items,
        next: next.map(state_name),
        revision: Some(state_name(shown)),
    }
}

/// Which layer a page of a log begins in, and before which revision.
fn log_position(token: &str, layers: &[BranchState]) -> Result<(usize, Revision), Refusal> {
    let state = named_state(token);
    let number = state.and_then(|state| {
        let is_within = |layer: &BranchState| {
            layer.branch == state.branch && state.revision <= after(layer.revision)
        };
        let number = layers.iter().position(is_within)?;
        Some((number, state.revision))
    });
    number.ok_or_else(no_token)
}

fn no_token() -> Refusal {
    Refusal::invalid("`pageToken` is none that this server gave out; begin again without it")
}

fn place(key: &Key) -> Place {
    (key.scope.clone(), key.class, key.name.clone())
}

/// Where a page of tables begins: the state that all pages are of, and the last one of the page
/// before.
struct TableToken {
    state: String,
    last: Place,
}

impl TableToken {
    fn read(page: &Page) -> Result<Option<TableToken>, Refusal> {
        let text = match page.token.as_deref() {
            None | Some("") => return Ok(None),
            Some(text) => text,
        };
        let parsed = || {
            let (state, last) = text.split_once('.')?;
            let bytes = hex::decode(last).ok()?;
            let (scope, class, name) = serde_json::from_slice(&bytes).ok()?;
            let state = state.to_owned();
            let last = (scope, class, name);
            Some(TableToken { state, last })
        };
        let token: Option<TableToken> = parsed();
        token.map(Some).ok_or_else(no_token)
    }

    fn write(&self) -> String {
        let last = serde_json::to_vec(&self.last).unwrap_or_default();
        format!("{}.{}", self.state, hex::encode(last))
    }
}
