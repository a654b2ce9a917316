//! The modes of a merge.

use std::collections::BTreeMap;

use anabranch_catalog::reference::{Mode, Modes};
use anabranch_partition::Refusal;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::request::quoted;

/// Tables with a mode of their own, at most.
const MOST_TABLES: usize = 10_000;
/// Bytes of a table's name with its namespaces, at most: 16 levels and the table itself, of 255
/// each, with dots between.
const LONGEST_TABLE: usize = 17 * 256;

/// What to do with the source's changes of one table.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TableMode {
    /// Its name below the database; levels of nested namespaces with dots between.
    table: String,
    /// `NORMAL`, `FORCE` or `DROP`.
    merge_mode: String,
}

/// The default and the modes of single tables, each named once.
pub(super) fn read(default: Option<&str>, of_tables: Vec<TableMode>) -> Result<Modes, Refusal> {
    let default = match default {
        Some(text) => mode("defaultMergeMode", text)?,
        None => Mode::default(),
    };
    if of_tables.len() > MOST_TABLES {
        return Err(Refusal::invalid(format!(
            "`tableMergeModes` names {} tables; it takes {MOST_TABLES} at most, so say in \
             `defaultMergeMode` what counts for most of them",
            of_tables.len()
        )));
    }
    let mut tables = BTreeMap::new();
    for (number, one) in of_tables.into_iter().enumerate() {
        let mode = mode(
            &format!("tableMergeModes[{number}].mergeMode"),
            &one.merge_mode,
        )?;
        if one.table.is_empty() || one.table.len() > LONGEST_TABLE {
            return Err(Refusal::invalid(format!(
                "`tableMergeModes[{number}].table` is {}; it is the name of a table, 1 to \
                 {LONGEST_TABLE} bytes long",
                quoted(&one.table)
            )));
        }
        if tables.contains_key(&one.table) {
            return Err(Refusal::invalid(format!(
                "`tableMergeModes` names {} twice; give each table one mode",
                quoted(&one.table)
            )));
        }
        tables.insert(one.table, mode);
    }
    Ok(Modes { default, tables })
}

fn mode(field: &str, text: &str) -> Result<Mode, Refusal> {
    match text {
        "NORMAL" => Ok(Mode::Normal),
        "FORCE" => Ok(Mode::Force),
        "DROP" => Ok(Mode::Drop),
        other => Err(Refusal::invalid(format!(
            "`{field}` is {}; it is NORMAL, FORCE or DROP",
            quoted(other)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(table: impl Into<String>, mode: &str) -> TableMode {
        TableMode {
            table: table.into(),
            merge_mode: mode.to_owned(),
        }
    }

    #[test]
    fn a_table_has_one_mode_and_the_rest_the_default() {
        let modes = read(
            Some("DROP"),
            vec![table("a", "FORCE"), table("b", "NORMAL")],
        );
        let modes = modes.expect("modes");
        assert_eq!(modes.default, Mode::Drop);
        assert_eq!(modes.tables["a"], Mode::Force);
        assert_eq!(modes.tables["b"], Mode::Normal);
        assert_eq!(read(None, Vec::new()), Ok(Modes::default()));
    }

    #[test]
    fn what_is_wrong_is_named_and_never_repeated_at_length() {
        let many = (0..=MOST_TABLES).map(|number| table(number.to_string(), "DROP"));
        let long = "x".repeat(LONGEST_TABLE + 1);
        let refused = [
            (read(Some("normal"), Vec::new()), "`defaultMergeMode`"),
            (
                read(None, vec![table("a", "FORCE"), table("b", "force")]),
                "`tableMergeModes[1].mergeMode`",
            ),
            (
                read(None, vec![table("a", "FORCE"), table("a", "FORCE")]),
                "twice",
            ),
            (read(None, many.collect()), "`tableMergeModes`"),
            (
                read(None, vec![table(long, "DROP")]),
                "`tableMergeModes[0].table`",
            ),
            (
                read(None, vec![table("", "DROP")]),
                "`tableMergeModes[0].table`",
            ),
        ];
        for (read, named) in refused {
            let message = read.expect_err(named).message;
            assert!(message.contains(named) && message.len() < 300, "{message}");
        }
    }
}
