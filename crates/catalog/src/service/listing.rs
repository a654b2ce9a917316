//! Pages of names. A token is the last name of the page before, so that what is created or dropped
//! meanwhile makes no name come twice or be left out.

use anabranch_partition::{Listing as LayeredListing, Reason, Refusal, RunError, Subject};
use anabranch_store::{
    Answer, BranchId, Class, Entry, Key, Kind, PartitionId, PartitionKind, PartitionState, Read,
};

use crate::error::CatalogError;
use crate::place::noun;
use crate::reference::body::state_name;
use crate::service::Core;
use crate::service::lookup::reference_revision;
use crate::service::reach::Reach;

/// Names of one page, at most.
const MAX_PAGE: u32 = 1000;
const TOKEN_MARK: char = 'n';

/// What part of a listing is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// `None`: everything in one answer. Empty: the first page. Else: a token from the page before.
    pub token: Option<String>,
    /// Names at most, 1 to 1000.
    pub size: Option<u32>,
}

/// A page of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing<T> {
    /// In byte order of the names.
    pub items: Vec<T>,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
    /// What the header `Anabranch-Revision` says, where the listing is of a database.
    pub revision: Option<String>,
}

impl Page {
    /// The name behind which the page begins.
    pub(crate) fn after(&self) -> Result<Option<String>, Refusal> {
        match self.token.as_deref() {
            None | Some("") => Ok(None),
            Some(token) => match token.strip_prefix(TOKEN_MARK) {
                Some(name) if !name.contains('\0') => Ok(Some(name.to_owned())),
                _ => Err(Refusal::invalid(
                    "`pageToken` is none that this server gave out; begin again without it",
                )),
            },
        }
    }

    pub(crate) fn limit(&self) -> Result<u32, Refusal> {
        match self.size {
            None => Ok(MAX_PAGE),
            Some(0) => Err(Refusal::invalid("`pageSize` is at least 1")),
            Some(size) => Ok(size.min(MAX_PAGE)),
        }
    }
}

/// What is listed.
pub(crate) struct Shelf {
    pub(crate) partition: PartitionId,
    pub(crate) scope: String,
    pub(crate) class: Class,
    pub(crate) kinds: Vec<Kind>,
}

/// What stands on a shelf.
pub(crate) struct Shelved {
    pub(crate) entries: Vec<(Key, Entry)>,
    /// The token of the next page, if there is one.
    pub(crate) next: Option<String>,
    /// Of a database's listing: the state that all entries are of.
    pub(crate) revision: String,
}

impl Shelf {
    fn read(&self, after: Option<String>, limit: u32) -> Read {
        Read::Range {
            partition: self.partition,
            branch: BranchId::MAIN,
            scope: self.scope.clone(),
            class: self.class,
            kinds: self.kinds.clone(),
            after,
            limit,
        }
    }
}

impl Core {
    /// A page, or everything: then the first read and those after it are of one revision.
    pub(crate) async fn list(&self, shelf: Shelf, page: &Page) -> Result<Shelved, CatalogError> {
        let limit = page.limit()?;
        let reads = [
            Read::Branch(shelf.partition, BranchId::MAIN),
            Read::Partition(shelf.partition),
            shelf.read(page.after()?, limit),
        ];
        let mut answers = self.partitions.read(&reads).await?;
        let (
            Some(Answer::Entries(mut listed)),
            Some(Answer::Partition(row)),
            Some(Answer::Branch(main)),
        ) = (answers.pop(), answers.pop(), answers.pop())
        else {
            return Err(RunError::Failed.into());
        };
        let row = row.filter(|row| row.state == PartitionState::Live);
        let at = row.ok_or_else(|| dropped(shelf.partition))?.last_revision;
        let revision = reference_revision(main.map(|row| row.head).unwrap_or_default());
        let mut rest = listed.len() as u32 == limit;
        if page.token.is_some() {
            let last = listed.last().filter(|_| rest);
            let next = last.map(|(key, _)| format!("{TOKEN_MARK}{}", key.name));
            return Ok(Shelved {
                entries: listed,
                next,
                revision,
            });
        }
        while rest {
            let after = listed.last().map(|(key, _)| key.name.clone());
            let read = [shelf.read(after, limit)];
            let answers = self.partitions.read_at(shelf.partition, at, &read);
            let Some(Answer::Entries(further)) = answers.await?.pop() else {
                return Err(RunError::Failed.into());
            };
            rest = further.len() as u32 == limit;
            listed.extend(further);
        }
        Ok(Shelved {
            entries: listed,
            next: None,
            revision,
        })
    }
}

impl Core {
    /// The same at what is selected of a database; `main` if nothing is.
    pub(crate) async fn list_at(
        &self,
        shelf: Shelf,
        reach: Option<&Reach>,
        page: &Page,
    ) -> Result<Shelved, CatalogError> {
        let Some(side) = reach.and_then(Reach::side) else {
            return self.list(shelf, page).await;
        };
        let limit = page.limit()?;
        let mut after = page.after()?;
        let mut entries = Vec::new();
        loop {
            let listing = LayeredListing::Range {
                scope: shelf.scope.clone(),
                class: shelf.class,
                kinds: shelf.kinds.clone(),
                after,
                limit,
            };
            let found = self.list_state(&side, listing).await?;
            let is_full = found.len() as u32 == limit;
            entries.extend(found);
            let last = entries.last().filter(|_| is_full);
            after = last.map(|(key, _): &(Key, Entry)| key.name.clone());
            if page.token.is_some() || after.is_none() {
                let next = after.map(|name| format!("{TOKEN_MARK}{name}"));
                return Ok(Shelved {
                    entries,
                    next,
                    revision: state_name(side.1),
                });
            }
        }
    }
}

/// What was found by its name is gone: an empty listing would tell of a state that never was.
fn dropped(partition: PartitionId) -> Refusal {
    let subject = match partition.kind() {
        Some(PartitionKind::Database) => Subject::Namespace,
        Some(PartitionKind::Catalog) => Subject::Catalog,
        _ => Subject::Metalake,
    };
    let message = format!("the {} was dropped meanwhile", noun(subject));
    Refusal::new(Reason::NotFound(subject), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_was_not_given_out_is_refused() {
        let page = Page {
            token: Some("42".to_owned()),
            size: None,
        };
        assert!(page.after().is_err());
    }
}
