//! A call on a database, from its path to its answer.

use anabranch_catalog::{Caller, CatalogError, Warehouse};
use anabranch_http::{PathNames, RequestContext};
use anabranch_partition::Refusal;
use axum::response::Response;

use crate::protocol::Protocol;

/// The database that a path names, as it was written.
pub(crate) struct Database {
    warehouse: String,
    pub(crate) name: String,
}

impl Database {
    pub(crate) fn warehouse(&self) -> Result<Warehouse, Refusal> {
        Warehouse::parse(&self.warehouse)
    }

    /// The answer, or the error as the protocol says it.
    pub(crate) async fn answer<P: Protocol>(
        &self,
        work: impl Future<Output = Result<Response, CatalogError>>,
    ) -> Response {
        match work.await {
            Ok(response) => response,
            Err(error) => P::refuse(error, &self.name),
        }
    }
}

/// The path of the database alone.
pub(crate) fn database(PathNames([warehouse, name]): PathNames<2>) -> Database {
    Database { warehouse, name }
}

/// The database, and the name behind it.
pub(crate) fn below(PathNames([warehouse, name, below]): PathNames<3>) -> (Database, String) {
    (Database { warehouse, name }, below)
}

/// The database, and the two names behind it.
pub(crate) fn below_both(
    PathNames([warehouse, name, below, last]): PathNames<4>,
) -> (Database, String, String) {
    (Database { warehouse, name }, below, last)
}

/// Who asks; a request without a body has an empty one.
pub(crate) fn caller(context: &RequestContext, body: &[u8]) -> Caller {
    Caller {
        principal: context.principal.clone(),
        idempotency_key: context.idempotency_key.clone(),
        fingerprint: context.fingerprint(body),
        patience: context.patience(),
    }
}
