//! A log as a graph: the way of one reference goes down on the left; what was merged comes in from
//! the right, and where a branch was made the way goes on in a column of its own.

use serde_json::Value;

use super::log::some;
use super::moment::minute;
use super::text;

/// Columns of forks, at most: deeper ones stay in the last.
const DEEPEST: usize = 8;

/// The lines of a log of the reference of this name, the last entry first.
pub fn draw(name: &str, entries: &[Value]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut depth = 0;
    let mut branch = name.to_owned();
    for (number, entry) in entries.iter().enumerate() {
        let indent = "  ".repeat(depth);
        let is_last = number + 1 == entries.len();
        let below = if is_last { ' ' } else { '│' };
        let source = &entry["source"];
        let from = format!(
            "{} {}",
            text(&source["type"]).to_lowercase(),
            text(&source["name"])
        );
        let when = format!("{}  {}", minute(&entry["at"]), text(&entry["by"]));
        let state = format!("{}  {when}", text(&entry["revision"]));
        match entry["kind"].as_str() {
            Some("FORK") => {
                let turn = if is_last { "○  " } else { "╰─╮" };
                lines.push(format!("{indent}{turn}  {branch} made from {from}"));
                if !is_last && depth < DEEPEST {
                    depth += 1;
                }
                lines.push(format!("{}{below}    {when}", "  ".repeat(depth)));
                branch = text(&source["name"]);
            }
            Some("MERGE") => {
                let tables = some(&entry["tables"]);
                lines.push(format!("{indent}●─╮  merge of {from}: {tables}"));
                lines.push(format!("{indent}│ ○  its {}", text(&source["revision"])));
                lines.push(format!("{indent}{below}    {state}"));
            }
            kind => {
                let did = match kind {
                    Some("CREATE") => "create",
                    Some("DROP") => "drop",
                    Some("RENAME") => "rename",
                    _ => "commit to",
                };
                lines.push(format!("{indent}●    {did} {}", some(&entry["tables"])));
                lines.push(format!("{indent}{below}    {state}"));
            }
        }
    }
    lines
        .iter()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn merges_come_in_from_the_right_and_forks_go_on_in_another_column() {
        let at = 1_777_899_725_999_i64;
        let main = json!({"type": "BRANCH", "name": "main", "revision": "0-4"});
        let entries = [
            json!({"kind": "MERGE", "revision": "a-9", "at": at, "by": "ann", "tables": ["b"],
                "source": main}),
            json!({"kind": "COMMIT", "revision": "a-8", "at": at, "by": "ann",
                "tables": ["a", "b", "c", "d", "e"]}),
            json!({"kind": "FORK", "revision": "0-1", "at": at, "by": "ann", "tables": [],
                "source": main}),
            json!({"kind": "CREATE", "revision": "0-1", "at": at, "by": "bob", "tables": ["a"]}),
        ];
        let drawn = "\
●─╮  merge of branch main: b
│ ○  its 0-4
│    a-9  2026-05-04 13:02  ann
●    commit to a, b, c and 2 more
│    a-8  2026-05-04 13:02  ann
╰─╮  x made from branch main
  │    2026-05-04 13:02  ann
  ●    create a
       0-1  2026-05-04 13:02  bob";
        assert_eq!(draw("x", &entries).join("\n"), drawn);
    }
}
