//! References and their states, as a command sees them.

use anabranch_partition::{Layers, Listing, Reason, Refusal, Stop, Subject, View};
use anabranch_store::{
    BranchId, BranchRow, BranchState, Class, Kind, ObjectId, PartitionId, Revision,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::body::{
    MAIN, MergeBody, ReferenceBody, ReferenceKind, ReferenceName, reference_key, state_name,
};
use super::past::Past;
use crate::place::{not_found, shortened};

/// A reference that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) name: ReferenceName,
    pub(crate) body: ReferenceBody,
    /// `None` for `main`.
    pub(crate) object: Option<ObjectId>,
    /// The branch, or the one of the tag's state.
    pub(crate) row: BranchRow,
}

/// What a client is told of a reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReferenceInfo {
    /// Branch or tag.
    #[serde(flatten)]
    pub name: ReferenceName,
    /// The state that it shows.
    pub revision: String,
    /// Whether it can't be deleted.
    pub protected: bool,
    /// Milliseconds since 1970; `None` for `main`, which is as old as its database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<i64>,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
}

impl Found {
    /// The state that it shows now.
    pub(crate) fn state(&self) -> BranchState {
        BranchState {
            branch: self.row.branch,
            revision: self.body.revision.unwrap_or(self.row.head),
        }
    }

    pub(crate) fn info(&self) -> ReferenceInfo {
        let is_made = self.object.is_some();
        ReferenceInfo {
            name: self.name.clone(),
            revision: state_name(self.state()),
            protected: self.body.protected,
            created_at: is_made.then_some(self.body.created_at),
            created_by: is_made.then(|| self.body.created_by.clone()),
        }
    }

    /// Refuses if a client expects another state than the one that it shows.
    pub(crate) fn expect(&self, expected: Option<&str>) -> Result<(), Refusal> {
        let current = state_name(self.state());
        match expected {
            Some(expected) if expected != current => {
                let message = format!(
                    "{} {} is at revision {current}, not at the expected {}; look at \
                     what changed, and decide anew",
                    noun(self.name.kind),
                    self.name.name,
                    shortened(expected)
                );
                let details = json!({ "currentRevision": current });
                Err(self.refuse(Reason::Conflict, message, details))
            }
            _ => Ok(()),
        }
    }

    /// A refusal because of this reference; its details name it.
    pub(crate) fn refuse(
        &self,
        reason: Reason,
        message: impl Into<String>,
        details: Value,
    ) -> Refusal {
        naming(
            &self.name,
            Refusal {
                details: Some(details),
                ..Refusal::new(reason, message)
            },
        )
    }
}

/// Which of a request's references isn't there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The one that is asked about, or changed.
    Target,
    /// The one that something is made from.
    Source,
}

/// "There is no such reference", and which one of the request that is.
pub(crate) fn no_reference(name: &ReferenceName, missing: Missing) -> Refusal {
    let details = match missing {
        Missing::Target => json!({ "missing": "target" }),
        Missing::Source => json!({ "missing": "source" }),
    };
    naming(
        name,
        Refusal {
            details: Some(details),
            ..not_found(subject(name.kind), &name.name)
        },
    )
}

/// The refusal with the reference that it is about in its details.
pub(crate) fn naming(name: &ReferenceName, mut refusal: Refusal) -> Refusal {
    let details = refusal.details.get_or_insert_with(|| json!({}));
    details["reference"] = json!(name);
    refusal
}

/// A branch, as a request names it without saying what it is.
pub(crate) fn branch_named(name: &str) -> ReferenceName {
    ReferenceName {
        kind: ReferenceKind::Branch,
        name: name.to_owned(),
    }
}

pub(crate) fn subject(kind: ReferenceKind) -> Subject {
    match kind {
        ReferenceKind::Branch => Subject::Branch,
        ReferenceKind::Tag => Subject::Tag,
    }
}

pub(crate) fn noun(kind: ReferenceKind) -> &'static str {
    crate::place::noun(subject(kind))
}

/// The reference of a name, of whichever kind.
pub(crate) fn find(
    view: &View<'_>,
    database: PartitionId,
    name: &str,
) -> Result<Option<Found>, Stop> {
    let (kind, body, object) = if name == MAIN {
        let body = ReferenceBody {
            branch: BranchId::MAIN,
            revision: None,
            lineage: Vec::new(),
            protected: true,
            created_at: 0,
            created_by: String::new(),
        };
        (ReferenceKind::Branch, body, None)
    } else {
        let Some(entry) = view.get(&reference_key(database, name))? else {
            return Ok(None);
        };
        let kind = match entry.kind {
            Kind::Tag => ReferenceKind::Tag,
            _ => ReferenceKind::Branch,
        };
        let body = serde_json::from_str(&entry.body).map_err(|_| unreadable("reference"))?;
        (kind, body, Some(entry.object))
    };
    let row = view.branch(database, body.branch)?;
    let row = row.ok_or_else(|| unreadable("reference"))?;
    let name = ReferenceName {
        kind,
        name: name.to_owned(),
    };
    Ok(Some(Found {
        name,
        body,
        object,
        row,
    }))
}

/// The reference of a kind and name that something is made from.
pub(crate) fn find_source(
    view: &View<'_>,
    database: PartitionId,
    wanted: &ReferenceName,
) -> Result<Found, Stop> {
    let found = find(view, database, &wanted.name)?;
    let found = found.filter(|found| found.name.kind == wanted.kind);
    found.ok_or_else(|| no_reference(wanted, Missing::Source).into())
}

/// The state that a client asked for: the one that the reference shows, or an earlier one of the
/// same branch that is still kept.
pub(crate) fn chosen_state(
    view: &View<'_>,
    found: &Found,
    asked: Option<BranchState>,
) -> Result<BranchState, Stop> {
    let shown = found.state();
    let state = asked.unwrap_or(shown);
    let is_its_own = match found.name.kind {
        ReferenceKind::Branch => state.branch == shown.branch && state.revision <= shown.revision,
        ReferenceKind::Tag => state == shown,
    };
    if !is_its_own {
        let message = format!(
            "`source.revision` names no state of {} {}; use one that an answer about it gave out",
            noun(found.name.kind),
            found.name.name
        );
        return Err(found
            .refuse(Reason::InvalidInput, message, json!({}))
            .into());
    }
    if !view.is_kept(&found.row, state.revision)? {
        let message = format!(
            "revision {} is older than what is kept; use a newer one, or leave it out",
            state_name(state)
        );
        return Err(found.refuse(Reason::Gone, message, json!({})).into());
    }
    Ok(state)
}

/// A state and those below it, each by its oldest name: one of a branch that had no change of its
/// own by then is the state that the branch started from.
fn layers_of(row: &BranchRow, revision: Revision) -> Vec<BranchState> {
    let own = BranchState {
        branch: row.branch,
        revision,
    };
    let layers: Vec<BranchState> = std::iter::once(own)
        .chain(row.lineage.iter().copied())
        .collect();
    let has_own = |(number, state): &(usize, &BranchState)| {
        let below = layers.get(number + 1);
        below.is_none_or(|below| state.revision > below.revision)
    };
    let named = layers.iter().enumerate().filter(has_own);
    named.map(|(_, state)| *state).collect()
}

/// The state by its oldest name.
pub(crate) fn oldest_name(row: &BranchRow, revision: Revision) -> BranchState {
    let own = BranchState {
        branch: row.branch,
        revision,
    };
    layers_of(row, revision).first().copied().unwrap_or(own)
}

/// All that is past of a state.
pub(crate) fn past_of(view: &View<'_>, row: &BranchRow, revision: Revision) -> Result<Past, Stop> {
    let mut past = Past::default();
    for state in layers_of(row, revision) {
        if let Some(merge) = last_merge(view, row.partition, state)? {
            past = past.and(&merge.past);
        }
        past = Past::of(state, &past);
    }
    Ok(past)
}

/// The last merge into a branch by a revision.
fn last_merge(
    view: &View<'_>,
    database: PartitionId,
    state: BranchState,
) -> Result<Option<MergeBody>, Stop> {
    let first = Listing::Range {
        scope: String::new(),
        class: Class::Merge,
        kinds: Vec::new(),
        after: None,
        limit: 1,
    };
    let found = view.list_in(&Layers::only(database, state), first)?;
    let Some((_, entry)) = found.first() else {
        return Ok(None);
    };
    let body = serde_json::from_str(&entry.body).map_err(|_| unreadable("merge"))?;
    Ok(Some(body))
}

pub(crate) fn unreadable(what: &str) -> Stop {
    Refusal::invalid(format!("the {what}'s row can't be read; run doctor")).into()
}
