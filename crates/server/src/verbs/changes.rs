//! `changes`: the feed, and where a reader of it goes on.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anabranch_rest_native::ObjectName;
use serde_json::{Value, json};

use super::text;
use crate::cli::Changes;
use crate::client::{Client, ClientError};
use crate::failure::Failure;
use crate::out;
use crate::stop::StopSignals;

const PAGE: &str = "500";
const WAIT_MILLIS: &str = "20000";
/// Before a server that can't be reached is asked again; doubled up to 16 times this.
const PAUSE: Duration = Duration::from_millis(500);

/// Prints changes; with `--follow`, until interrupted.
pub async fn run(verb: Changes) -> Result<ExitCode, Failure> {
    let client = Client::new(&verb.remote.server)?;
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
                eprintln!("anabranch: {error}");
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
            Err(error) => return Err(Failure::work(format!("can't print: {error}"))),
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
        (Some(cursor), true) => out::line(json!({"next": cursor})),
        (Some(cursor), false) if verb.remember.is_none() => {
            eprintln!("go on with: anabranch changes --after {cursor}");
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
    let mut query = vec![("limit", PAGE)];
    if verb.follow {
        query.push(("wait", WAIT_MILLIS));
    }
    if let Some(cursor) = cursor {
        query.push(("after", cursor));
    }
    if let Some(partition) = &verb.partition {
        query.push(("partition", partition));
    }
    client.get("/v1/changes", &query).await
}

fn print(changes: &[Value], as_json: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for change in changes {
        if as_json {
            writeln!(out, "{change}")?;
            continue;
        }
        let key = &change["key"];
        let scope = key["scope"].as_array().into_iter().flatten();
        let mut levels: Vec<String> = scope.map(text).collect();
        levels.push(text(&key["name"]));
        let name = ObjectName::from(vec![levels]).to_string();
        let printable = |char: char| if char.is_control() { '\u{fffd}' } else { char };
        writeln!(
            out,
            "{}  {:<6}  {:<12}  {}  by {}",
            text(&change["at"]),
            text(&change["kind"]),
            text(&change["type"]),
            name.chars().map(printable).collect::<String>(),
            text(&change["by"]),
        )?;
    }
    out.flush()
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
