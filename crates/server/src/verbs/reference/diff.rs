//! `ref diff`.

use serde_json::Value;

use super::{text, trees};
use crate::cli::RefDiff;
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

/// Prints the tables that differ.
pub async fn run(diff: RefDiff) -> Result<(), Failure> {
    let trees = trees(&diff.remote, &diff.database)?;
    let revisions = [
        ("nameRevision", &diff.revision),
        ("otherRevision", &diff.other_revision),
    ];
    let given = revisions.iter();
    let given = given.filter_map(|(key, value)| Some((*key, value.as_deref()?)));
    let query: Vec<(&str, &str)> = given.collect();
    let segments = [diff.name.as_str(), "diff", diff.other.as_str()];
    let answer = trees.get(&segments, &query).await?;
    if diff.remote.json {
        return out::line(format_args!("{answer:#}"));
    }
    let one = side(&diff.name, &diff.revision);
    let other = side(&diff.other, &diff.other_revision);
    let tables = answer["tables"].as_array().map_or(&[][..], Vec::as_slice);
    if tables.is_empty() {
        return out::sentence(format_args!("{other} has the same tables as {one}"));
    }
    let mut table = Table::new(&["table", "change", "how"]);
    for found in tables {
        let change = text(&found["change"]);
        let how = how(found, &one, &other);
        table.row([text(&found["table"]), change, how]);
    }
    table.print()
}

/// A reference as messages name it: with its revision, if one was asked for.
fn side(name: &str, revision: &Option<String>) -> String {
    match revision {
        Some(revision) => format!("{name} at {revision}"),
        None => name.to_owned(),
    }
}

fn how(found: &Value, one: &str, other: &str) -> String {
    let (from, to) = (&found["from"], &found["to"]);
    let is_changed = from["version"] != to["version"];
    match found["change"].as_str() {
        Some("ADDED") => format!("only in {other}"),
        Some("REMOVED") => format!("only in {one}"),
        Some("RENAMED") if is_changed => format!("{} in {one}; changed too", text(&from["name"])),
        Some("RENAMED") => format!("{} in {one}", text(&from["name"])),
        _ => format!("another version than in {one}"),
    }
}
