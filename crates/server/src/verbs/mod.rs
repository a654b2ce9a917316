//! Verbs that talk to a server.

pub mod catalog;
pub mod changes;
pub mod database;
pub mod gc;
pub mod reference;
pub mod table;

use serde_json::Value;

use crate::cli::Remote;
use crate::client::{CatalogName, Client, RemoteWarehouse};
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

async fn warehouse(remote: &Remote, name: &CatalogName) -> Result<RemoteWarehouse, Failure> {
    let client = Client::new(&remote.server())?;
    Ok(RemoteWarehouse::find(client, name).await?)
}

/// Says what was done: in JSON, what the server answered.
fn done(remote: &Remote, answer: &Value, sentence: &str) -> Result<(), Failure> {
    if remote.json {
        out::line(format_args!("{answer:#}"))
    } else {
        out::sentence(sentence)
    }
}

/// A text in a JSON answer; anything else as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Adds a row for each property.
fn add_properties(table: &mut Table, properties: &Value) {
    for (key, value) in properties.as_object().into_iter().flatten() {
        table.row([key.clone(), text(value)]);
    }
}

fn properties_json(properties: &[(String, String)]) -> Value {
    let pairs = properties.iter();
    let pairs = pairs.map(|(key, value)| (key.clone(), Value::from(value.clone())));
    Value::Object(pairs.collect())
}
