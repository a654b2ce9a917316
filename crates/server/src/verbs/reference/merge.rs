//! `ref merge`.

mod conflicts;

use std::collections::BTreeMap;
use std::process::ExitCode;

use reqwest::Method;
use serde_json::{Value, json};

use super::{text, trees};
use crate::cli::RefMerge;
use crate::client::ClientError;
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

/// Merges, or says what a merge would do; exit status 1 if both sides changed a table.
pub async fn run(merge: RefMerge) -> Result<ExitCode, Failure> {
    let trees = trees(&merge.remote, &merge.database)?;
    let source = trees.source(&merge.source, merge.revision.as_deref());
    let modes = merge.tables.iter();
    let modes = modes.map(|(table, mode)| json!({"table": table, "mergeMode": mode.word()}));
    let body = json!({
        "source": source.await?,
        "defaultMergeMode": merge.mode.word(),
        "tableMergeModes": modes.collect::<Vec<Value>>(),
        "expectedRevision": merge.expect,
        "dryRun": merge.dry_run,
    });
    let segments = [merge.into.as_str(), "merge"];
    match trees.change(Method::POST, &segments, &body).await {
        Ok(answer) if merge.remote.json => out::line(format_args!("{answer:#}"))?,
        Ok(answer) => show(&merge, &answer)?,
        Err(ClientError::Refused { details, .. }) if details["conflicts"].is_array() => {
            return conflicts::show(&merge, &details);
        }
        Err(error) => return Err(error.into()),
    }
    Ok(ExitCode::SUCCESS)
}

fn show(merge: &RefMerge, answer: &Value) -> Result<(), Failure> {
    let result = &answer["result"];
    let outcomes = result["tables"].as_array().map_or(&[][..], Vec::as_slice);
    let (source, target) = (&merge.source, &merge.into);
    let revision = text(&result["revision"]);
    if outcomes.is_empty() {
        return out::sentence(format_args!(
            "nothing to merge: {target} at {revision} has all of {source} already"
        ));
    }
    let mut table = Table::new(&["table", "outcome"]);
    for one in outcomes {
        let outcome = text(&one["outcome"]);
        let meaning = meaning(&outcome, source, target);
        table.row([text(&one["table"]), format!("{outcome}: {meaning}")]);
    }
    table.print()?;
    let how = match result["fastForward"] == true {
        true => ", by fast-forward",
        false => "",
    };
    let counted = counted(outcomes);
    out::line("")?;
    if merge.dry_run {
        out::sentence(format_args!(
            "a merge of {source} into {target} would succeed{how}: {counted}; nothing was changed"
        ))?;
        return out::sentence(format_args!(
            "to merge only if {target} stays as it is: --expect {revision}"
        ));
    }
    out::sentence(format_args!(
        "merged {source} into {target}{how}: {counted}; {target} is at {revision}"
    ))
}

fn meaning(outcome: &str, source: &str, target: &str) -> String {
    match outcome {
        "TAKEN" => format!("as in {source}"),
        "KEPT" => format!("only {target} changed it"),
        "DROPPED" => format!("the changes of {source} are left out"),
        "FORCED" => format!("as in {source}, in place of what {target} had"),
        "IDENTICAL" => "both made the same of it".to_owned(),
        _ => "neither changed it".to_owned(),
    }
}

/// How many tables had each outcome: `2 taken, 1 kept`.
fn counted(outcomes: &[Value]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for one in outcomes {
        *counts
            .entry(text(&one["outcome"]).to_lowercase())
            .or_default() += 1;
    }
    let counts = counts.iter();
    let words = counts.map(|(outcome, count)| format!("{count} {outcome}"));
    words.collect::<Vec<_>>().join(", ")
}
