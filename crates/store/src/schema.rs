//! Which schema version a store is at, and what an operator does about another one.

use std::fmt::Display;

use crate::error::StoreError;

/// The migrations that a store of version `found` still lacks.
pub(crate) fn pending<'a>(
    found: i64,
    migrations: &'a [&'a str],
    place: &dyn Display,
) -> Result<&'a [&'a str], StoreError> {
    usize::try_from(found)
        .ok()
        .and_then(|done| migrations.get(done..))
        .ok_or_else(|| newer(found, migrations.len(), place))
}

/// Refuses every version but this program's own.
pub(crate) fn check(
    found: Option<i64>,
    migrations: &[&str],
    place: &dyn Display,
) -> Result<(), StoreError> {
    let supported = migrations.len();
    match found.map(usize::try_from) {
        Some(Ok(version)) if version == supported => Ok(()),
        Some(Ok(version)) if version < supported => Err(StoreError::Unusable {
            message: format!(
                "{place} has schema version {version}, this program needs {supported}; run \
                 `anabranch migrate` on it first"
            ),
        }),
        None => Err(StoreError::Unusable {
            message: format!("{place} holds no store; run `anabranch migrate` on it first"),
        }),
        Some(_) => Err(newer(found.unwrap_or_default(), supported, place)),
    }
}

fn newer(found: i64, supported: usize, place: &dyn Display) -> StoreError {
    StoreError::Unusable {
        message: format!(
            "{place} has schema version {found}, this program supports up to {supported}; use the \
             newer program that migrated it, or restore a backup from before"
        ),
    }
}
