//! `database …`.

use std::process::ExitCode;

use anabranch_rest_native::ObjectName;
use reqwest::Method;
use serde_json::{Value, json};

use super::{add_properties, done, properties_json, warehouse};
use crate::cli::DatabaseVerb;
use crate::client::{DatabaseName, database_or_catalog};
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

/// Runs the verb.
pub async fn run(verb: DatabaseVerb) -> Result<ExitCode, Failure> {
    match verb {
        DatabaseVerb::List { name, remote } => {
            let (catalog, levels) = database_or_catalog(&name)?;
            let warehouse = warehouse(&remote, &catalog).await?;
            let parent = levels.join("\u{1f}");
            let mut query = Vec::new();
            if !parent.is_empty() {
                query.push(("parent", parent.as_str()));
            }
            let path = warehouse.path(&["namespaces"]);
            let found = warehouse.list(&path, &query, "namespaces").await?;
            if remote.json {
                out::line(format_args!("{:#}", json!({"namespaces": found})))?;
            } else {
                let mut table = Table::new(&["name"]);
                for levels in &found {
                    table.row([shown(levels)]);
                }
                table.print()?;
            }
        }
        DatabaseVerb::Create {
            name,
            properties,
            remote,
        } => {
            let database = DatabaseName::parse(&name)?;
            let warehouse = warehouse(&remote, &database.catalog).await?;
            let body = json!({
                "namespace": database.levels,
                "properties": properties_json(&properties),
            });
            let path = warehouse.path(&["namespaces"]);
            let answer = warehouse
                .call(Method::POST, &path, &[], Some(&body))
                .await?;
            done(&remote, &answer, &format!("created {name}"))?;
        }
        DatabaseVerb::Show { name, remote } => {
            let database = DatabaseName::parse(&name)?;
            let warehouse = warehouse(&remote, &database.catalog).await?;
            let path = warehouse.namespace(&database.levels, &[]);
            let answer = warehouse.call(Method::GET, &path, &[], None).await?;
            if remote.json {
                out::line(format_args!("{answer:#}"))?;
            } else {
                let mut table = Table::new(&["property", "value"]);
                table.row(["name".to_owned(), shown(&answer["namespace"])]);
                add_properties(&mut table, &answer["properties"]);
                table.print_whole()?;
            }
        }
        DatabaseVerb::Drop { name, remote } => {
            let database = DatabaseName::parse(&name)?;
            let warehouse = warehouse(&remote, &database.catalog).await?;
            let path = warehouse.namespace(&database.levels, &[]);
            let answer = warehouse.call(Method::DELETE, &path, &[], None).await?;
            done(&remote, &answer, &format!("dropped {name}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The levels of a namespace as they are written on the command line.
fn shown(levels: &Value) -> String {
    let levels = levels.as_array().into_iter().flatten();
    let levels: Vec<String> = levels.map(super::text).collect();
    ObjectName::from(vec![levels]).to_string()
}
