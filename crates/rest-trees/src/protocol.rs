//! What a protocol brings.

use anabranch_catalog::CatalogError;
use axum::response::Response;

/// How a protocol answers what can't be done.
pub trait Protocol: Send + Sync + 'static {
    /// The error in the protocol's shape. A refusal that is about a branch or tag has it as
    /// `reference` (`type` and `name`) in its details, and says `missing` (`source` or `target`)
    /// of one that isn't there; the database is the one of the path.
    fn refuse(error: CatalogError, database: &str) -> Response;
}
