//! Pages of names (specification: `ListNamespacesResponse`, `ListTablesResponse`).

use anabranch_catalog::{Identifier, Listing, Namespace, Page};
use serde::{Deserialize, Serialize};

use super::identifiers::WireIdentifier;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageQuery {
    page_token: Option<String>,
    page_size: Option<u32>,
}

impl From<PageQuery> for Page {
    fn from(query: PageQuery) -> Page {
        Page {
            token: query.page_token,
            size: query.page_size,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NamespacesQuery {
    pub(crate) parent: Option<String>,
    page_token: Option<String>,
    page_size: Option<u32>,
}

impl NamespacesQuery {
    pub(crate) fn page(&self) -> Page {
        Page {
            token: self.page_token.clone(),
            size: self.page_size,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ListNamespacesResponse {
    namespaces: Vec<Vec<String>>,
    next_page_token: Option<String>,
}

impl From<Listing<Namespace>> for ListNamespacesResponse {
    fn from(listing: Listing<Namespace>) -> ListNamespacesResponse {
        let levels = |namespace: Namespace| namespace.levels().to_vec();
        ListNamespacesResponse {
            namespaces: listing.items.into_iter().map(levels).collect(),
            next_page_token: listing.next,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ListIdentifiersResponse {
    identifiers: Vec<WireIdentifier>,
    next_page_token: Option<String>,
}

impl From<Listing<Identifier>> for ListIdentifiersResponse {
    fn from(listing: Listing<Identifier>) -> ListIdentifiersResponse {
        let identifiers = listing.items.into_iter().map(WireIdentifier::from);
        ListIdentifiersResponse {
            identifiers: identifiers.collect(),
            next_page_token: listing.next,
        }
    }
}
