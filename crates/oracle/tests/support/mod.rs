//! Running the same updates through this project and through the `iceberg` crate, and comparing what comes out.
//!
//! Both results are compared as JSON values after [`normalise`], which removes what isn't a difference in meaning.

mod normal;

use serde_json::Value;

pub use normal::normalise;

/// Time at which commits of these tests happen; the `iceberg` crate has its own clock.
pub const NOW_MS: i64 = 1_700_000_000_000;

/// Where the base of a commit is stored.
pub const PREVIOUS_LOCATION: &str = "s3://bucket/table/metadata/1.json";

/// How a commit ended: the normalised document, or why it was refused.
pub type Outcome = Result<Value, String>;

/// The commit by this project.
pub fn ours(base: &Value, updates: &Value) -> Outcome {
    use anabranch_iceberg::{TableMetadata, TableUpdate, UpdateContext, apply};
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let base =
        TableMetadata::from_json(base.to_string().as_bytes()).map_err(|error| text(&error))?;
    let updates: Vec<TableUpdate> =
        serde_json::from_value(updates.clone()).map_err(|error| text(&error))?;
    let context = UpdateContext {
        now_ms: NOW_MS,
        previous_metadata_location: Some(PREVIOUS_LOCATION.to_string()),
    };
    let after = apply(Some(&base), &updates, &context).map_err(|error| text(&error))?;
    let document = serde_json::from_slice(&after.to_json()).map_err(|error| text(&error))?;
    Ok(normalise(&document))
}

/// The commit by the `iceberg` crate.
pub fn theirs(base: &Value, updates: &Value) -> Outcome {
    use iceberg::TableUpdate;
    use iceberg::spec::TableMetadata;
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let base: TableMetadata = serde_json::from_value(base.clone()).map_err(|error| text(&error))?;
    let updates: Vec<TableUpdate> =
        serde_json::from_value(updates.clone()).map_err(|error| text(&error))?;
    let mut builder = base.into_builder(Some(PREVIOUS_LOCATION.to_string()));
    for update in updates {
        builder = update.apply(builder).map_err(|error| text(&error))?;
    }
    let after = builder.build().map_err(|error| text(&error))?.metadata;
    let document = serde_json::to_value(&after).map_err(|error| text(&error))?;
    // What it builds, it must be able to read; else its answer is no oracle.
    serde_json::from_value::<TableMetadata>(document.clone()).map_err(|error| text(&error))?;
    Ok(normalise(&document))
}
