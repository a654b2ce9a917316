//! `gc`.

use std::process::ExitCode;
use std::time::Duration;

use anabranch_http::encode_name;
use reqwest::Method;
use serde_json::{Value, json};

use super::text;
use crate::cli::Gc;
use crate::client::{Client, database_or_catalog};
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

const PAUSE: Duration = Duration::from_millis(500);
/// Lines of progress are this many pauses apart.
const PAUSES_PER_LINE: u32 = 20;
/// Files that are shown in a terminal, at most; `--json` shows all that the server names.
const SHOWN: usize = 20;

/// Runs the verb.
pub async fn run(verb: Gc) -> Result<ExitCode, Failure> {
    let (catalog, levels) = database_or_catalog(&verb.name)?;
    if levels.len() > 1 {
        return Err(Failure::setup(format!(
            "{} is a nested namespace; name its database: a gc looks through a whole one",
            verb.name
        )));
    }
    let client = Client::new(&verb.remote.server())?;
    let path = format!("/v1/catalogs/{}/gc", encode_name(&catalog.full()));
    let mut body = json!({"dryRun": verb.dry_run});
    if let Some(database) = levels.first() {
        body["database"] = json!(database);
    }
    if let Some(hours) = verb.grace_hours {
        body["gracePeriodMillis"] = json!(hours.saturating_mul(3_600_000));
    }
    let started = client.call(Method::POST, &path, &[], Some(&body)).await?;
    let id = text(&started["id"]);
    let path = format!("{path}/{}", encode_name(&id));
    // A dry run is of no use without its end.
    if !(verb.wait || verb.dry_run) {
        if verb.remote.json {
            out::line(format_args!("{started:#}"))?;
        } else {
            out::sentence(format_args!(
                "gc {id} is queued; see GET {path}, or --wait for it"
            ))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut run = wait(&client, &path).await?;
    add_files(&client, &path, &mut run).await?;
    if verb.remote.json {
        out::line(format_args!("{run:#}"))?;
    } else {
        show(&run)?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn wait(client: &Client, path: &str) -> Result<Value, Failure> {
    let mut pauses = 0;
    loop {
        let run = client.get(path, &[]).await?;
        if run["state"] == "DONE" {
            return Ok(run);
        }
        if pauses % PAUSES_PER_LINE == PAUSES_PER_LINE - 1 {
            let removed = text(&run["removed"]["files"]);
            out::complain(match run["state"].as_str() {
                Some("QUEUED") => "waiting for a server to take it".to_owned(),
                _ => format!(
                    "{} metadata documents and {} manifests read, {removed} files removed",
                    text(&run["documentsRead"]),
                    text(&run["manifestsRead"])
                ),
            });
        }
        pauses += 1;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Adds the files of the further pages.
async fn add_files(client: &Client, path: &str, run: &mut Value) -> Result<(), Failure> {
    while let Some(token) = run["nextPageToken"].as_str().map(str::to_owned) {
        let mut page = client.get(path, &[("pageToken", &token)]).await?;
        if let (Some(all), Some(more)) = (run["files"].as_array_mut(), page["files"].as_array_mut())
        {
            all.append(more);
        }
        run["nextPageToken"] = page["nextPageToken"].take();
    }
    if let Some(members) = run.as_object_mut() {
        members.remove("nextPageToken");
    }
    Ok(())
}

fn show(run: &Value) -> Result<(), Failure> {
    let files = run["files"].as_array().map_or(&[][..], Vec::as_slice);
    let total = |field: &str| {
        let (files, bytes) = (&run[field]["files"], &run[field]["bytes"]);
        format!("{} files, {} bytes", text(files), text(bytes))
    };
    if !files.is_empty() {
        let mut table = Table::new(&["table", "file", "bytes", "why"]);
        for file in files.iter().take(SHOWN) {
            let location = text(&file["location"]);
            let name = location.rsplit('/').next().unwrap_or_default().to_owned();
            let why = text(&file["why"]);
            table.row([text(&file["table"]), name, text(&file["bytes"]), why]);
        }
        table.print()?;
        if files.len() > SHOWN {
            out::sentence(format_args!("… and more; --json names up to 10000"))?;
        }
    }
    for one in run["unreadable"].as_array().into_iter().flatten() {
        let (table, problem) = (text(&one["table"]), text(&one["problem"]));
        out::sentence(format_args!("all files of {table} stay: {problem}"))?;
    }
    let kept = &run["kept"];
    out::sentence(format_args!(
        "kept: {} needed, {} young, {} hidden, {} of unreadable tables",
        text(&kept["needed"]),
        text(&kept["young"]),
        text(&kept["hidden"]),
        text(&kept["unreadable"])
    ))?;
    match run["dryRun"].as_bool() {
        Some(true) => out::sentence(format_args!("would be removed: {}", total("garbage"))),
        _ => out::sentence(format_args!("removed: {}", total("removed"))),
    }
}
