//! `ref create`.

use reqwest::Method;
use serde_json::json;

use super::{done, shown, trees};
use crate::cli::RefCreate;
use crate::failure::Failure;

/// Creates a branch or tag.
pub async fn run(create: RefCreate) -> Result<(), Failure> {
    let trees = trees(&create.remote, &create.database)?;
    let source = trees.source(&create.from, create.from_revision.as_deref());
    let body = json!({
        "name": create.name,
        "type": if create.tag { "TAG" } else { "BRANCH" },
        "source": source.await?,
        "expectedRevision": create.expect,
    });
    let answer = trees.change(Method::POST, &[], &body).await?;
    let sentence = format!(
        "created {}, from {}",
        shown(&answer["reference"]),
        create.from
    );
    done(&create.remote, &answer, &sentence)
}
