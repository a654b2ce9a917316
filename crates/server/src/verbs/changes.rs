//! `changes`: the feed, and where a reader of it goes on.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anabranch_rest_native::ObjectName;
use reqwest::Method;
use serde_json::{Value, json};

use super::text;
use crate::cli::Changes;
use crate::client::{Client, ClientError};
use crate::failure::Failure;
use crate::out;
use crate::stop::StopSignals;

const PAGE: u32 = 500;
const WAIT_MILLIS: u32 = 20_000;
const DEFAULT_METALAKE: &str = "default";
const GONE: &str = "?";
/// Before a server that can't be reached is asked again; doubled up to 16 times this.
const PAUSE: Duration = Duration::from_millis(500);

/// Prints changes; with `--follow`, until interrupted.
pub async fn run(verb: Changes) -> Result<ExitCode, Failure> {
    let client = Client::new(&verb.remote.server())?;
    let mut signals = StopSignals::listen()?;
    let mut cursor = match &verb.remember {
        Some(file) => recall(file)?,
        None => verb.after.clone(),
    };
    let mut failures = 0;
    loop {
        let page = tokio::select! {
            page = next_page(&client, &verb, cursor.as_deref()) => page,
            _ = signals.next() => break,
        };
        let page = match page {
            Ok(page) => page,
            Err(error) if verb.follow && error.is_passing() => {
                out::complain(format_args!("anabranch: {}", Failure::from(error)));
                let pause = PAUSE * (1 << failures.min(4));
                failures += 1;
                tokio::select! {
                    () = tokio::time::sleep(pause) => continue,
                    _ = signals.next() => break,
                }
            }
            Err(error) => return Err(error.into()),
        };
        failures = 0;
        let changes = page["changes"].as_array().cloned().unwrap_or_default();
        let next = page["next"].as_str().map(str::to_owned);
        match print(&changes, verb.remote.json) {
            Ok(()) => {}
            // Whoever read it has seen enough; the cursor stays where it was.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
            Err(error) => out::ended(Err(error))?,
        }
        if let (Some(file), Some(next)) = (&verb.remember, &next) {
            remember(file, next)?;
        }
        cursor = next.or(cursor);
        if !verb.follow && changes.is_empty() {
            break;
        }
    }
    match (&cursor, verb.remote.json) {
        (Some(cursor), true) => out::line(json!({"next": cursor}))?,
        // Not the cursor itself: it grows with the number of databases.
        (Some(_), false) if verb.remember.is_none() => {
            out::complain("with --remember FILE the next call goes on where this one ended");
        }
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

async fn next_page(
    client: &Client,
    verb: &Changes,
    cursor: Option<&str>,
) -> Result<Value, ClientError> {
    let mut wanted = json!({"limit": PAGE, "partition": verb.partition, "after": cursor});
    if verb.follow {
        wanted["wait"] = WAIT_MILLIS.into();
    }
    // In the body: a cursor may not fit a URL.
    let (method, path) = (Method::POST, "/v1/changes");
    client.call(method, path, &[], Some(&wanted)).await
}

fn print(changes: &[Value], as_json: bool) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    for change in changes {
        if as_json {
            writeln!(stdout, "{change}")?;
            continue;
        }
        let line = format!(
            "{}  {:<6}  {:<12}  {}  by {}",
            moment(&change["at"]),
            text(&change["kind"]),
            text(&change["type"]),
            full_name(change),
            text(&change["by"]),
        );
        writeln!(stdout, "{}", out::escaped(&line))?;
    }
    stdout.flush()
}

/// A moment to the second: the exact order is the order of the lines.
fn moment(at: &Value) -> String {
    let at = text(at);
    match at.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => at,
    }
}

/// A thing's name as the other verbs take it; a container that is gone is a question mark.
fn full_name(change: &Value) -> String {
    let key = &change["key"];
    let container = |level: &str| {
        let name = key.get(level)?;
        Some(name.as_str().unwrap_or(GONE).to_owned())
    };
    let metalake = container("metalake").filter(|name| name != DEFAULT_METALAKE);
    let above = [metalake, container("catalog")].into_iter().flatten();
    let mut parts: Vec<Vec<String>> = above.map(|name| vec![name]).collect();
    let name = text(&key["name"]);
    let Some(database) = container("database") else {
        parts.push(vec![name]);
        return ObjectName::from(parts).to_string();
    };
    let scope = key["scope"].as_array().into_iter().flatten().map(text);
    let mut namespace: Vec<String> = std::iter::once(database).chain(scope).collect();
    if change["type"] == "namespace" {
        namespace.push(name);
        parts.push(namespace);
    } else {
        parts.extend([namespace, vec![name]]);
    }
    ObjectName::from(parts).to_string()
}

fn recall(file: &Path) -> Result<Option<String>, Failure> {
    match std::fs::read_to_string(file) {
        Ok(cursor) if cursor.trim().is_empty() => Ok(None),
        Ok(cursor) => Ok(Some(cursor.trim().to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::setup(format!(
            "can't read {}: {error}; name another file with --remember",
            file.display()
        ))),
    }
}

/// Only after the changes were printed, and never in part: whoever is killed between the two sees
/// some changes again, and misses none.
fn remember(file: &Path, cursor: &str) -> Result<(), Failure> {
    let mut fresh = file.as_os_str().to_owned();
    fresh.push(".new");
    std::fs::write(&fresh, cursor)
        .and_then(|()| std::fs::rename(&fresh, file))
        .map_err(|error| {
            let file = file.display();
            Failure::setup(format!(
                "can't write {file}: {error}; name another file with --remember"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_is_shown_by_the_name_that_other_verbs_take() {
        let shown = |kind: &str, key: Value| full_name(&json!({"type": kind, "key": key}));
        let lake = json!({"metalake": "default", "scope": [], "name": "lake"});
        assert_eq!(shown("catalog", lake), "lake");
        let table = json!({
            "metalake": "prod", "catalog": "lake", "database": "my.db", "scope": ["eu"],
            "name": "orders",
        });
        assert_eq!(
            shown("icebergTable", table),
            "prod.lake.\"my.db\"/eu.orders"
        );
        let nested = json!({
            "metalake": "default", "catalog": "lake", "database": null, "scope": ["eu"],
            "name": "north",
        });
        assert_eq!(shown("namespace", nested), "lake.?/eu/north");
    }
}
