//! `ref …`.

mod create;
mod diff;
mod graph;
mod list;
mod log;
mod merge;
mod moment;

use std::process::ExitCode;

use reqwest::Method;
use serde_json::{Value, json};

use super::{done, text};
use crate::cli::{RefVerb, Remote};
use crate::client::{Client, RemoteTrees};
use crate::failure::Failure;

/// Runs the verb.
pub async fn run(verb: RefVerb) -> Result<ExitCode, Failure> {
    match verb {
        RefVerb::List {
            database,
            kind,
            remote,
        } => list::run(&database, kind, &remote).await?,
        RefVerb::Create(create) => create::run(create).await?,
        RefVerb::Delete {
            database,
            name,
            expect,
            remote,
        } => {
            let body = json!({"expectedRevision": expect});
            let trees = trees(&remote, &database)?;
            let answer = trees.change(Method::DELETE, &[&name], &body).await?;
            let shown = shown(&answer["reference"]);
            done(&remote, &answer, &format!("deleted {shown}"))?;
        }
        RefVerb::Protect {
            database,
            name,
            off,
            remote,
        } => {
            let body = json!({"protected": !off});
            let trees = trees(&remote, &database)?;
            let answer = trees.change(Method::PATCH, &[&name], &body).await?;
            let can = if off { "can" } else { "can't" };
            let sentence = format!("{} {can} be deleted", named(&answer["reference"]));
            done(&remote, &answer, &sentence)?;
        }
        RefVerb::Log {
            database,
            name,
            limit,
            remote,
        } => log::run(&database, &name, limit, &remote).await?,
        RefVerb::Diff(diff) => diff::run(diff).await?,
        RefVerb::Merge(merge) => return merge::run(merge).await,
    }
    Ok(ExitCode::SUCCESS)
}

fn trees(remote: &Remote, database: &str) -> Result<RemoteTrees, Failure> {
    RemoteTrees::of(Client::new(&remote.server())?, database)
}

/// A reference with what it is: `branch experiment`.
fn named(reference: &Value) -> String {
    let kind = text(&reference["type"]).to_lowercase();
    format!("{kind} {}", text(&reference["name"]))
}

/// The same with the state that it shows.
fn shown(reference: &Value) -> String {
    let revision = text(&reference["revision"]);
    format!("{} at {revision}", named(reference))
}
