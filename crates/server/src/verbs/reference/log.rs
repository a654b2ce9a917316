//! `ref log`.

use std::io::IsTerminal;

use serde_json::{Value, json};

use super::{graph, text, trees};
use crate::cli::Remote;
use crate::client::{ClientError, RemoteTrees};
use crate::failure::Failure;
use crate::out;
use crate::table::{fitted, terminal_width};

/// Entries that are asked for at once, at most.
const PAGE: usize = 1000;

/// Prints what happened to a reference.
pub async fn run(database: &str, name: &str, limit: usize, remote: &Remote) -> Result<(), Failure> {
    let trees = trees(remote, database)?;
    let (entries, next) = read(&trees, name, limit).await?;
    if remote.json {
        let mut log = json!({"entries": entries});
        if let Some(next) = next {
            log["nextPageToken"] = next.into();
        }
        return out::line(format_args!("{log:#}"));
    }
    let width = match std::io::stdout().is_terminal() {
        true => terminal_width(),
        false => usize::MAX,
    };
    for line in graph::draw(name, &entries) {
        out::line(fitted(&out::escaped(&line), width))?;
    }
    if next.is_some() {
        out::complain(format_args!(
            "there is more: --limit {} shows twice as many entries",
            limit.saturating_mul(2)
        ));
    }
    Ok(())
}

/// So many entries, and the token of those behind them.
async fn read(
    trees: &RemoteTrees,
    name: &str,
    limit: usize,
) -> Result<(Vec<Value>, Option<String>), ClientError> {
    let mut entries = Vec::new();
    let mut token = String::new();
    loop {
        let size = (limit.max(1) - entries.len()).min(PAGE).to_string();
        let query = [("maxResults", size.as_str()), ("pageToken", &token)];
        let page = trees.get(&[name, "log"], &query).await?;
        entries.extend(page["entries"].as_array().into_iter().flatten().cloned());
        match page["nextPageToken"].as_str() {
            Some(next) if entries.len() < limit => token = next.to_owned(),
            Some(next) => return Ok((entries, Some(next.to_owned()))),
            None => return Ok((entries, None)),
        }
    }
}

/// Names, as many as stay readable on one line.
pub(super) fn some(tables: &Value) -> String {
    const SHOWN: usize = 3;
    let names: Vec<String> = tables.as_array().into_iter().flatten().map(text).collect();
    match names.len() {
        0 => "no table".to_owned(),
        count if count <= SHOWN + 1 => names.join(", "),
        count => format!("{} and {} more", names[..SHOWN].join(", "), count - SHOWN),
    }
}
