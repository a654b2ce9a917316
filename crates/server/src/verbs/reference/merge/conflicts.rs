//! Tables that both sides changed, and what to do about them.

use std::process::ExitCode;

use serde_json::Value;

use super::text;
use crate::cli::RefMerge;
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

/// Prints the conflicts; the exit status says that nothing was merged.
pub fn show(merge: &RefMerge, details: &Value) -> Result<ExitCode, Failure> {
    if merge.remote.json {
        out::line(format_args!("{details:#}"))?;
        return Ok(ExitCode::FAILURE);
    }
    let conflicts = details["conflicts"].as_array();
    let conflicts = conflicts.map_or(&[][..], Vec::as_slice);
    let (source, target) = (&merge.source, &merge.into);
    let on = |side: &str| format!("on {side}");
    let mut table = Table::new(&["table", &on(source), &on(target), "conflict"]);
    for conflict in conflicts {
        table.row([
            text(&conflict["table"]),
            since(&conflict["base"], &conflict["source"]),
            since(&conflict["base"], &conflict["target"]),
            text(&conflict["why"]),
        ]);
    }
    table.print()?;
    let first = conflicts.first();
    let first = first.map(|conflict| quoted(&text(&conflict["table"])));
    let first = first.unwrap_or_default();
    out::line("")?;
    out::sentence("Look at both, then merge again with a mode for each table, such as")?;
    for (mode, side) in [("FORCE", source), ("DROP", target)] {
        let option = format!("--table {first}={mode}");
        out::sentence(format_args!("  {option:<30}  to have it as on {side}"))?;
    }
    let count = match conflicts.len() {
        1 => "1 table is".to_owned(),
        many => format!("{many} tables are"),
    };
    Err(Failure::work(format!(
        "{count} in conflict, so nothing of {source} was merged into {target}"
    )))
}

/// What one side made of a table since the two parted.
fn since(base: &Value, now: &Value) -> String {
    match (base, now) {
        (Value::Null, Value::Null) => "-".to_owned(),
        (Value::Null, _) => "created".to_owned(),
        (_, Value::Null) => "dropped".to_owned(),
        _ if base["tableId"] != now["tableId"] => "replaced".to_owned(),
        _ if base["table"] != now["table"] => format!("renamed to {}", text(&now["table"])),
        _ if base == now => "unchanged".to_owned(),
        _ => "changed".to_owned(),
    }
}

/// A name as a shell takes it in one piece.
fn quoted(name: &str) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || "._-".contains(char);
    match name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_side_is_told_by_what_it_did() {
        let state = |table: &str, id: &str, at: &str| json!({"table": table, "tableId": id, "version": {"metadataLocation": at}});
        let base = state("t", "1", "a");
        for (base, now, told) in [
            (&base, base.clone(), "unchanged"),
            (&base, state("t", "1", "b"), "changed"),
            (&base, state("u", "1", "b"), "renamed to u"),
            (&base, state("t", "2", "a"), "replaced"),
            (&base, Value::Null, "dropped"),
            (&Value::Null, base.clone(), "created"),
            (&Value::Null, Value::Null, "-"),
        ] {
            assert_eq!(since(base, &now), told);
        }
    }

    #[test]
    fn a_name_reaches_the_program_in_one_piece() {
        assert_eq!(quoted("eu.features"), "eu.features");
        assert_eq!(quoted("it's $x"), r"'it'\''s $x'");
    }
}
