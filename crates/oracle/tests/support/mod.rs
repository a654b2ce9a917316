//! Running the same updates through this project and through the `iceberg` crate, and comparing what comes out.
//!
//! Both results are compared as JSON values after [`normalise`], which removes what isn't a difference in meaning.

use serde_json::{Map, Value, json};

/// Time at which commits of these tests happen; the `iceberg` crate has its own clock.
pub const NOW_MS: i64 = 1_700_000_000_000;

/// Where the base of a commit is stored.
pub const PREVIOUS_LOCATION: &str = "s3://bucket/table/metadata/1.json";

/// A document without what two writers may write differently and mean the same:
///
/// - `last-updated-ms`, and log entries with a time from the clock: the `iceberg` crate can't be told the time;
/// - the order of schemas, specs, sort orders, snapshots and statistics: it keeps them in hash maps;
/// - fields that are empty or absent; a `current-snapshot-id` of -1 or absent;
/// - `null`s;
/// - the order of identifier fields, which are a set;
/// - references in version 1, where it writes and reads none.
pub fn normalise(document: &Value) -> Value {
    let Value::Object(fields) = document else {
        panic!("a document is an object");
    };
    let snapshot_times: Vec<Value> = list(document, "snapshots")
        .iter()
        .map(|found| found["timestamp-ms"].clone())
        .collect();
    let mut normal = Map::new();
    for (name, value) in fields {
        let value = match name.as_str() {
            "last-updated-ms" => continue,
            "refs" if document["format-version"] == json!(1) => continue,
            "current-snapshot-id" if value == &json!(-1) => continue,
            "schemas" => with_sorted_identifiers(sorted_by(value, "schema-id")),
            "schema" => with_sorted_identifiers(json!([value]))[0].clone(),
            "partition-specs" => sorted_by(value, "spec-id"),
            "sort-orders" => sorted_by(value, "order-id"),
            "versions" => sorted_by(value, "version-id"),
            "snapshots" | "statistics" | "partition-statistics" => sorted_by(value, "snapshot-id"),
            "encryption-keys" => sorted_by(value, "key-id"),
            "snapshot-log" => log_without_clock(value, &snapshot_times),
            "version-log" => log_without_clock(value, &version_times(document)),
            _ => value.clone(),
        };
        normal.insert(name.clone(), value);
    }
    without_nothing(Value::Object(normal))
}

fn list<'a>(document: &'a Value, name: &str) -> &'a [Value] {
    document
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn version_times(document: &Value) -> Vec<Value> {
    list(document, "versions")
        .iter()
        .map(|version| version["timestamp-ms"].clone())
        .collect()
}

fn log_without_clock(log: &Value, known_times: &[Value]) -> Value {
    let mut log = log.clone();
    for entry in log.as_array_mut().into_iter().flatten() {
        if !known_times.contains(&entry["timestamp-ms"]) {
            entry["timestamp-ms"] = json!("from the clock");
        }
    }
    log
}

fn sorted_by(items: &Value, id: &str) -> Value {
    let mut items = items.as_array().cloned().unwrap_or_default();
    items.sort_by_key(|item| (item[id].as_i64(), item[id].as_str().map(str::to_string)));
    Value::Array(items)
}

fn with_sorted_identifiers(mut schemas: Value) -> Value {
    for schema in schemas.as_array_mut().into_iter().flatten() {
        let ids = schema
            .get_mut("identifier-field-ids")
            .and_then(Value::as_array_mut);
        ids.into_iter()
            .for_each(|ids| ids.sort_by_key(Value::as_i64));
    }
    schemas
}

/// The value without nulls and empty lists and objects inside it.
fn without_nothing(value: Value) -> Value {
    let is_something = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    };
    match value {
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name, without_nothing(value)));
            Value::Object(fields.filter(|(_, value)| is_something(value)).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nothing).collect()),
        other => other,
    }
}

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
