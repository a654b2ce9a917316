//! `catalog …`.

use std::process::ExitCode;

use anabranch_http::encode_name;
use reqwest::Method;
use serde_json::json;

use super::{add_properties, done, properties_json, text};
use crate::cli::CatalogVerb;
use crate::client::{CatalogName, Client};
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

const CATALOGS: &str = "/v1/catalogs";

/// Runs the verb.
pub async fn run(verb: CatalogVerb) -> Result<ExitCode, Failure> {
    match verb {
        CatalogVerb::List { metalake, remote } => {
            let client = Client::new(&remote.server())?;
            let query = [("metalake", metalake.as_str())];
            let answer = client.get(CATALOGS, &query).await?;
            if remote.json {
                out::line(format_args!("{answer:#}"))?;
            } else {
                let mut table = Table::new(&["name", "location"]);
                for catalog in answer["catalogs"].as_array().into_iter().flatten() {
                    table.row([text(&catalog["name"]), text(&catalog["location"])]);
                }
                table.print()?;
            }
        }
        CatalogVerb::Create {
            name,
            location,
            properties,
            remote,
        } => {
            let client = Client::new(&remote.server())?;
            let parsed = CatalogName::parse(&name)?;
            let mut body = json!({
                "name": parsed.catalog,
                "metalake": parsed.metalake,
                "properties": properties_json(&properties),
            });
            if let Some(location) = location {
                body["location"] = location.into();
            }
            let answer = client
                .call(Method::POST, CATALOGS, &[], Some(&body))
                .await?;
            let location = text(&answer["location"]);
            done(&remote, &answer, &format!("created {name} at {location}"))?;
        }
        CatalogVerb::Show { name, remote } => {
            let client = Client::new(&remote.server())?;
            let answer = client.get(&path(&name)?, &[]).await?;
            if remote.json {
                out::line(format_args!("{answer:#}"))?;
            } else {
                let mut table = Table::new(&["property", "value"]);
                for key in ["metalake", "name", "id", "store", "location"] {
                    table.row([key.to_owned(), text(&answer[key])]);
                }
                add_properties(&mut table, &answer["properties"]);
                table.print_whole()?;
            }
        }
        CatalogVerb::Rename {
            name,
            new_name,
            remote,
        } => {
            let client = Client::new(&remote.server())?;
            let body = json!({"name": new_name});
            let path = path(&name)?;
            let answer = client.call(Method::PATCH, &path, &[], Some(&body)).await?;
            done(&remote, &answer, &format!("renamed {name} to {new_name}"))?;
        }
        CatalogVerb::Drop {
            name,
            cascade,
            remote,
        } => {
            let client = Client::new(&remote.server())?;
            let query = [("cascade", if cascade { "true" } else { "false" })];
            let path = path(&name)?;
            let answer = client.call(Method::DELETE, &path, &query, None).await?;
            done(&remote, &answer, &format!("dropped {name}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn path(name: &str) -> Result<String, Failure> {
    let full = CatalogName::parse(name)?.full();
    Ok(format!("{CATALOGS}/{}", encode_name(&full)))
}
