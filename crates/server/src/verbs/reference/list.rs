//! `ref list`.

use serde_json::{Value, json};

use super::moment::minute;
use super::{text, trees};
use crate::cli::{RefKind, Remote};
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

/// Prints the references of a database.
pub async fn run(database: &str, kind: Option<RefKind>, remote: &Remote) -> Result<(), Failure> {
    let filter = kind.map(|kind| ("type", kind.filter()));
    let filter: Vec<(&str, &str)> = filter.into_iter().collect();
    let trees = trees(remote, database)?;
    let found = trees.list(&[], &filter, "references").await?;
    if remote.json {
        return out::line(format_args!("{:#}", json!({"references": found})));
    }
    let mut table = Table::new(&["name", "type", "revision", "created (UTC)", "by"]);
    for reference in &found {
        table.row([
            text(&reference["name"]),
            shown_type(reference),
            text(&reference["revision"]),
            minute(&reference["createdAt"]),
            text(&reference["createdBy"]),
        ]);
    }
    table.print()
}

/// What a reference is, and whether it was protected; `main` always is, and isn't said to be.
fn shown_type(reference: &Value) -> String {
    let kind = text(&reference["type"]).to_lowercase();
    let is_made = !reference["createdAt"].is_null();
    match reference["protected"] == true && is_made {
        true => format!("{kind}, protected"),
        false => kind,
    }
}
