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
                out::line(format_args!("{answer:#}"));
            } else {
                show(&answer);
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
            done(&remote, &answer, &format!("dropped {name}"));
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
        out::line(format_args!("{:#}", json!({"identifiers": found})));
        return Ok(());
    }
    let mut table = Table::new(&["name"]);
    for identifier in &found {
        let name = vec![vec![text(&identifier["name"])]];
        table.row([ObjectName::from(name).to_string()]);
    }
    table.print();
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
    done(remote, &answer, &format!("renamed {name} to {new_name}"));
    Ok(())
}

fn show(answer: &Value) {
    let metadata = &answer["metadata"];
    let mut table = Table::new(&["property", "value"]);
    for key in ["table-uuid", "format-version", "location"] {
        table.row([key.to_owned(), text(&metadata[key])]);
    }
    let location = text(&answer["metadata-location"]);
    table.row(["metadata-location".to_owned(), location]);
    let snapshot = text(&metadata["current-snapshot-id"]);
    table.row(["current-snapshot-id".to_owned(), snapshot]);
    add_properties(&mut table, &metadata["properties"]);
    table.print();

    let is_current = |schema: &&Value| schema["schema-id"] == metadata["current-schema-id"];
    let schemas = metadata["schemas"].as_array();
    let schema = schemas.into_iter().flatten().find(is_current);
    let fields = schema.and_then(|schema| schema["fields"].as_array());
    let mut table = Table::new(&["column", "type", "required"]);
    for field in fields.into_iter().flatten() {
        let kind = match &field["type"] {
            Value::Object(nested) => nested.get("type").map_or_else(String::new, text),
            plain => text(plain),
        };
        table.row([text(&field["name"]), kind, text(&field["required"])]);
    }
    out::line("");
    table.print();
}
