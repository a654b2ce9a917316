//! `table …`.

use std::process::ExitCode;

use anabranch_rest_native::ObjectName;
use reqwest::Method;
use serde_json::{Value, json};

use super::{add_properties, done, text, warehouse};
use crate::cli::{Remote, TableVerb};
use crate::client::{DatabaseName, TableName};
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

/// How metadata says that there is no snapshot.
const NO_SNAPSHOT: i64 = -1;

/// Runs the verb.
pub async fn run(verb: TableVerb) -> Result<ExitCode, Failure> {
    match verb {
        TableVerb::List { name, remote } => list(&name, &remote).await?,
        TableVerb::Show { name, remote } => {
            let table = TableName::parse(&name)?;
            let warehouse = warehouse(&remote, &table.database.catalog).await?;
            let path = warehouse.namespace(&table.database.levels, &["tables", &table.table]);
            let answer = warehouse.call(Method::GET, &path, &[], None).await?;
            if remote.json {
                out::line(format_args!("{answer:#}"))?;
            } else {
                show(&answer)?;
            }
        }
        TableVerb::Drop {
            name,
            purge,
            remote,
        } => {
            let table = TableName::parse(&name)?;
            let warehouse = warehouse(&remote, &table.database.catalog).await?;
            let path = warehouse.namespace(&table.database.levels, &["tables", &table.table]);
            let query = [("purgeRequested", if purge { "true" } else { "false" })];
            let answer = warehouse.call(Method::DELETE, &path, &query, None).await?;
            done(&remote, &answer, &format!("dropped {name}"))?;
        }
        TableVerb::Rename {
            name,
            new_name,
            remote,
        } => rename(&name, &new_name, &remote).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(name: &str, remote: &Remote) -> Result<(), Failure> {
    let database = DatabaseName::parse(name)?;
    let warehouse = warehouse(remote, &database.catalog).await?;
    let path = warehouse.namespace(&database.levels, &["tables"]);
    let found = warehouse.list(&path, &[], "identifiers").await?;
    if remote.json {
        out::line(format_args!("{:#}", json!({"identifiers": found})))?;
        return Ok(());
    }
    let mut table = Table::new(&["name"]);
    for identifier in &found {
        let name = vec![vec![text(&identifier["name"])]];
        table.row([ObjectName::from(name).to_string()]);
    }
    table.print()?;
    Ok(())
}

async fn rename(name: &str, new_name: &str, remote: &Remote) -> Result<(), Failure> {
    let (old, new) = (TableName::parse(name)?, TableName::parse(new_name)?);
    if old.database.catalog != new.database.catalog {
        return Err(Failure::setup(format!(
            "{name} and {new_name} are in different catalogs; a table stays in its own"
        )));
    }
    let identifier =
        |table: &TableName| json!({"namespace": table.database.levels, "name": table.table});
    let body = json!({"source": identifier(&old), "destination": identifier(&new)});
    let warehouse = warehouse(remote, &old.database.catalog).await?;
    let path = warehouse.path(&["tables", "rename"]);
    let answer = warehouse
        .call(Method::POST, &path, &[], Some(&body))
        .await?;
    done(remote, &answer, &format!("renamed {name} to {new_name}"))?;
    Ok(())
}

fn show(answer: &Value) -> Result<(), Failure> {
    let metadata = &answer["metadata"];
    let mut table = Table::new(&["property", "value"]);
    for key in ["table-uuid", "format-version", "location"] {
        table.row([key.to_owned(), text(&metadata[key])]);
    }
    let location = text(&answer["metadata-location"]);
    table.row(["metadata-location".to_owned(), location]);
    let snapshot = match &metadata["current-snapshot-id"] {
        id if *id == NO_SNAPSHOT => text(&Value::Null),
        id => text(id),
    };
    table.row(["current-snapshot-id".to_owned(), snapshot]);
    add_properties(&mut table, &metadata["properties"]);
    table.print_whole()?;

    let is_current = |schema: &&Value| schema["schema-id"] == metadata["current-schema-id"];
    let schemas = metadata["schemas"].as_array();
    let schema = schemas.into_iter().flatten().find(is_current);
    let fields = schema.and_then(|schema| schema["fields"].as_array());
    let mut table = Table::new(&["column", "type", "required"]);
    for field in fields.into_iter().flatten() {
        table.row([
            text(&field["name"]),
            shown_type(&field["type"]),
            text(&field["required"]),
        ]);
    }
    out::line("")?;
    table.print()
}

/// A type as Iceberg writes it: `list<string>`, `map<string, long>`, `struct<x: double, y: double>`.
fn shown_type(kind: &Value) -> String {
    let part = |name: &str| shown_type(&kind[name]);
    match kind["type"].as_str() {
        Some("list") => format!("list<{}>", part("element")),
        Some("map") => format!("map<{}, {}>", part("key"), part("value")),
        Some("struct") => {
            let fields = kind["fields"].as_array().into_iter().flatten();
            let fields = fields
                .map(|field| format!("{}: {}", text(&field["name"]), shown_type(&field["type"])));
            format!("struct<{}>", fields.collect::<Vec<_>>().join(", "))
        }
        _ => text(kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nested_type_is_shown_with_what_is_in_it() {
        let point = json!({"type": "struct", "fields": [
            {"name": "x", "type": "double"},
            {"name": "tags", "type": {"type": "list", "element": "string"}},
        ]});
        let places = json!({"type": "map", "key": "string", "value": point});
        let shown = "map<string, struct<x: double, tags: list<string>>>";
        assert_eq!(shown_type(&places), shown);
        assert_eq!(shown_type(&json!("decimal(10,2)")), "decimal(10,2)");
    }
}
