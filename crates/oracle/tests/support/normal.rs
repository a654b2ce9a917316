//! Metadata documents without what isn't a difference in meaning.

use serde_json::{Map, Value, json};

/// A document without what two writers may write differently and mean the same:
///
/// - `last-updated-ms`, and log entries with a time from the clock: the `iceberg` crate can't be told the time;
/// - the order of schemas, specs, sort orders, snapshots and statistics: it keeps them in hash maps;
/// - fields that are empty or absent; a `current-snapshot-id` of -1 or absent;
/// - `null`s;
/// - the order of identifier fields, which are a set;
/// - references in version 1, where it writes and reads none;
/// - sequence numbers in version 1, where all are 0: it sends them with a snapshot, and writes none.
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
            "snapshots" if document["format-version"] == json!(1) => {
                without_field(sorted_by(value, "snapshot-id"), "sequence-number")
            }
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

fn without_field(mut items: Value, name: &str) -> Value {
    for item in items.as_array_mut().into_iter().flatten() {
        item.as_object_mut().and_then(|item| item.remove(name));
    }
    items
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
