//! Pages of names. A token is the last name of the page before, so that what is created or dropped
//! meanwhile makes no name come twice or be left out.

use anabranch_partition::Refusal;
use anabranch_store::{Answer, BranchId, Class, Entry, Key, Kind, PartitionId, Read};

use crate::error::CatalogError;
use crate::service::Core;

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
    fn after(&self) -> Result<Option<String>, Refusal> {
        match self.token.as_deref() {
            None | Some("") => Ok(None),
            Some(token) => match token.strip_prefix(TOKEN_MARK) {
                Some(name) => Ok(Some(name.to_owned())),
                None => Err(Refusal::invalid(
                    "`pageToken` is none that this server gave out; begin again without it",
                )),
            },
        }
    }

    fn limit(&self) -> Result<u32, Refusal> {
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

/// Entries of a page, and the token of the next one.
pub(crate) type Entries = (Vec<(Key, Entry)>, Option<String>);

impl Core {
    pub(crate) async fn list(&self, shelf: Shelf, page: &Page) -> Result<Entries, CatalogError> {
        let limit = page.limit()?;
        let mut after = page.after()?;
        let mut listed = Vec::new();
        loop {
            let read = Read::Range {
                partition: shelf.partition,
                branch: BranchId::MAIN,
                scope: shelf.scope.clone(),
                class: shelf.class,
                kinds: shelf.kinds.clone(),
                after: after.clone(),
                limit,
            };
            let Some(Answer::Entries(entries)) = self.partitions.read(&[read]).await?.pop() else {
                return Ok((listed, None));
            };
            let full = entries.len() as u32 == limit;
            after = entries.last().map(|(key, _)| key.name.clone());
            listed.extend(entries);
            if !full {
                return Ok((listed, None));
            }
            if page.token.is_some() {
                return Ok((listed, after.map(|name| format!("{TOKEN_MARK}{name}"))));
            }
        }
    }
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
