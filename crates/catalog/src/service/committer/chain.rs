//! What each name would show if the jobs of the batch so far are published.

use std::collections::{HashMap, HashSet};

use crate::error::CatalogError;
use crate::name::Identifier;
use crate::service::prepare::Standing;

type Loaded = Result<Option<Standing>, CatalogError>;

#[derive(Default)]
pub(super) struct Chain {
    standing: HashMap<Identifier, Loaded>,
    unpublished: HashSet<Identifier>,
}

impl Chain {
    /// Starts from what stands in the store.
    pub(super) fn begin(&mut self, loaded: Vec<(Identifier, Loaded)>) {
        self.standing.extend(loaded);
    }

    /// What stands under a name, or would; an error if its metadata can't be loaded.
    pub(super) fn standing(
        &self,
        identifier: &Identifier,
    ) -> Result<Option<&Standing>, CatalogError> {
        match self.standing.get(identifier) {
            Some(Ok(standing)) => Ok(standing.as_ref()),
            Some(Err(error)) => Err(error.clone()),
            None => Ok(None),
        }
    }

    /// Whether any of these names would show something that isn't published yet.
    pub(super) fn is_ahead_for<'a>(
        &self,
        identifiers: impl IntoIterator<Item = &'a Identifier>,
    ) -> bool {
        identifiers
            .into_iter()
            .any(|identifier| self.unpublished.contains(identifier))
    }

    /// Goes one job further.
    pub(super) fn go_on(&mut self, identifier: Identifier, after: Standing) {
        self.unpublished.insert(identifier.clone());
        self.standing.insert(identifier, Ok(Some(after)));
    }
}
