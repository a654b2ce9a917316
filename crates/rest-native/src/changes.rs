//! The change feed: `/v1/changes`.

#![allow(unused_qualifications, reason = "in what utoipa::path expands to")]

use std::time::Duration;

use anabranch_catalog::DEFAULT_METALAKE;
use anabranch_files::StorageSettings;
use anabranch_http::{Json, Query, RequestContext};
use anabranch_partition::{Cursor, FeedPage, Partitions, Refusal, RunError};
use anabranch_store::{Action, Answer, Change, Class, Kind, PartitionId, Path, Read};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::error::ApiError;
use crate::names::ObjectName;
use crate::whereabouts::{Containers, Whereabouts};
use crate::{Shared, operations};

const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1000;
const MAX_WAIT: Duration = Duration::from_secs(30);
/// A page ends behind the last change up to which the bodies are together no larger than this.
const PAGE_BYTES: usize = 8 << 20;
/// How many changes are read before it is known how large they are.
const FIRST_STEP: u32 = 10;
const MASKED: &str = "******";

/// Which changes.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FollowChanges {
    /// Only changes at and below this: a decimal id, `catalog[.database]` or
    /// `metalake.catalog.database`.
    partition: Option<String>,
    /// A `next` of this feed; absent: from the oldest change kept.
    after: Option<String>,
    /// Changes at most, 1 to 1000; 100 if absent. A page of large ones holds fewer: some 8 MiB.
    #[param(minimum = 1, maximum = 1000)]
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Milliseconds to wait for the first change; more than 30000 are taken as 30000.
    #[param(minimum = 0)]
    #[schema(minimum = 0)]
    wait: Option<i64>,
}

/// A page of the change feed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangePage {
    changes: Vec<ChangeAnswer>,
    /// Goes into `after` of the next call.
    next: String,
}

/// One change.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ChangeAnswer {
    /// Its place in the order of its partition: `revision.place`.
    position: String,
    /// The same for all changes that became visible together.
    commit_id: String,
    /// A decimal number.
    revision: String,
    /// RFC 3339, by the store's clock.
    at: String,
    by: String,
    /// A decimal number.
    partition: String,
    /// What happened.
    #[schema(value_type = String, example = "CREATE")]
    kind: Action,
    /// To what kind of thing.
    #[schema(value_type = String, example = "icebergTable")]
    r#type: Kind,
    /// To which thing: a decimal number that stays through renames.
    object: String,
    key: ChangeKey,
    /// What stood there before, if something did. Secrets are masked.
    #[schema(value_type = Option<Object>)]
    before: Option<Value>,
    /// What stands there now, if something does. Secrets are masked.
    #[schema(value_type = Option<Object>)]
    after: Option<Value>,
}

/// Where it happened.
#[derive(Debug, Serialize, ToSchema)]
struct ChangeKey {
    /// The containers around it by their names now.
    #[serde(flatten)]
    whereabouts: Whereabouts,
    /// The reference's id: a decimal number, `0` for `main`.
    branch: String,
    /// The nested namespaces below the database.
    scope: Vec<String>,
    #[schema(value_type = String, example = "table")]
    class: Class,
    name: String,
}

/// Follows what changes, in order: none is missed and none comes twice.
#[utoipa::path(get, path = "/v1/changes", tag = "changes", params(FollowChanges),
    responses((status = 200, body = ChangePage),
        (status = 410, description = "Changes behind `after` are no longer kept", body = crate::openapi::ErrorAnswer),
        (status = "default", body = crate::openapi::ErrorAnswer)))]
pub(crate) async fn changes(
    State(native): State<Shared>,
    context: RequestContext,
    Query(query): Query<FollowChanges>,
) -> Result<axum::Json<ChangePage>, ApiError> {
    follow(&native, &context, query).await
}

/// The same with the parameters in the body: a cursor grows with the number of databases, and may
/// not fit a URL.
#[utoipa::path(post, path = "/v1/changes", tag = "changes", request_body = FollowChanges,
    responses((status = 200, body = ChangePage),
        (status = 410, description = "Changes behind `after` are no longer kept", body = crate::openapi::ErrorAnswer),
        (status = "default", body = crate::openapi::ErrorAnswer)))]
pub(crate) async fn changes_by_body(
    State(native): State<Shared>,
    context: RequestContext,
    Json { value, .. }: Json<FollowChanges>,
) -> Result<axum::Json<ChangePage>, ApiError> {
    follow(&native, &context, value).await
}

async fn follow(
    native: &Shared,
    context: &RequestContext,
    wanted: FollowChanges,
) -> Result<axum::Json<ChangePage>, ApiError> {
    let limit = wanted.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        let message = format!("`limit` is 1 to {MAX_LIMIT}, not {limit}");
        return Err(Refusal::invalid(message).into());
    }
    let after = wanted.after.as_deref().filter(|text| !text.is_empty());
    let after = after.map(Cursor::decode).transpose()?;
    let below = match &wanted.partition {
        Some(text) => Some(partition(native, text).await?),
        None => None,
    };
    let wait = u64::try_from(wanted.wait.unwrap_or(0))
        .map_err(|_| Refusal::invalid("`wait` is a number of milliseconds from 0 on"))?;
    let wait = Duration::from_millis(wait)
        .min(MAX_WAIT)
        .min(context.time_left() / 2);
    let feed = native.catalog.partitions();
    let page = tokio::select! {
        page = bounded_page(feed, below, after.clone(), limit, wait) => page?,
        // The server stops: whoever waits is told that there is nothing yet.
        () = native.stopping.cancelled() => {
            bounded_page(feed, below, after.clone(), limit, Duration::ZERO).await?
        }
    };
    let changed = page.changes.iter().map(|change| change.key.partition);
    let containers = Containers::around(feed, changed).await?;
    let changes = page.changes.into_iter();
    Ok(axum::Json(ChangePage {
        next: page.next.encode(),
        changes: changes
            .map(|change| ChangeAnswer::new(change, &containers))
            .collect(),
    }))
}

/// A page of at most `limit` changes whose bodies are at most [`PAGE_BYTES`] together, or one
/// change. The feed is read in steps, because how large changes are is only known once they are
/// read.
async fn bounded_page(
    feed: &Partitions,
    below: Option<PartitionId>,
    after: Option<Cursor>,
    limit: u32,
    wait: Duration,
) -> Result<FeedPage, RunError> {
    let mut page = FeedPage {
        changes: Vec::new(),
        next: Cursor::default(),
    };
    let (mut from, mut wait, mut bytes, mut step) = (after, wait, 0, FIRST_STEP.min(limit));
    loop {
        let more = feed.feed(below, from.as_ref(), step, wait).await?;
        let sizes: Vec<usize> = more.changes.iter().map(bodies_bytes).collect();
        let fitting = fitting(&sizes, PAGE_BYTES.saturating_sub(bytes));
        let taken = match page.changes.is_empty() {
            true => fitting.max(1),
            false => fitting,
        };
        if taken == 0 && !sizes.is_empty() {
            return Ok(page);
        }
        if taken < sizes.len() {
            // Once more, up to where they fit: only the feed says where to go on behind that.
            step = u32::try_from(taken).unwrap_or(1);
            continue;
        }
        bytes += sizes.iter().sum::<usize>();
        let is_all = more.changes.len() < usize::try_from(step).unwrap_or(usize::MAX);
        page.changes.extend(more.changes);
        page.next = more.next.clone();
        (from, wait) = (Some(more.next), Duration::ZERO);
        let left = limit.saturating_sub(u32::try_from(page.changes.len()).unwrap_or(limit));
        if is_all || left == 0 || bytes >= PAGE_BYTES {
            return Ok(page);
        }
        // As many as fit if the others are as large as these.
        let average = (bytes / page.changes.len()).max(1);
        let expected = (PAGE_BYTES - bytes) / average;
        step = u32::try_from(expected).unwrap_or(left).clamp(1, left);
    }
}

fn bodies_bytes(change: &Change) -> usize {
    let bodies = [&change.before, &change.after];
    bodies
        .iter()
        .map(|body| body.as_ref().map_or(0, |body| body.len()))
        .sum()
}

/// How many of the first ones fit.
fn fitting(sizes: &[usize], budget: usize) -> usize {
    let totals = sizes.iter().scan(0, |total: &mut usize, size| {
        *total += size;
        Some(*total)
    });
    totals.take_while(|total| *total <= budget).count()
}

async fn partition(native: &Shared, text: &str) -> Result<PartitionId, ApiError> {
    // In a body, where the query's own refusal doesn't see it.
    if text.contains('\0') {
        return Err(Refusal::invalid("`partition` has a NUL character; leave it out").into());
    }
    if let Ok(id) = text.parse().map(PartitionId) {
        let read = [Read::Partition(id)];
        return match native.catalog.partitions().read(&read).await?.as_slice() {
            [Answer::Partition(Some(_))] => Ok(id),
            _ => Err(ApiError::not_found(format!("there is no partition {text}"))),
        };
    }
    let name = ObjectName::parse(text).map_err(Refusal::invalid)?;
    let parts: Option<Vec<&String>> = name
        .parts()
        .iter()
        .map(|levels| match levels.as_slice() {
            [level] => Some(level),
            _ => None,
        })
        .collect();
    let default = DEFAULT_METALAKE.to_owned();
    let (metalake, catalog, database) = match parts.as_deref() {
        Some([catalog]) => (&default, *catalog, None),
        Some([catalog, database]) => (&default, *catalog, Some(*database)),
        Some([metalake, catalog, database]) => (*metalake, *catalog, Some(*database)),
        _ => {
            let message = format!(
                "`partition` is a decimal id, catalog[.database] or metalake.catalog.database; \
                 {text:?} is none"
            );
            return Err(Refusal::invalid(message).into());
        }
    };
    let path = Path {
        metalake: metalake.clone(),
        catalog: Some(catalog.clone()),
        database: database.cloned(),
        leaf: None,
    };
    let resolved = native.catalog.partitions().resolve(&[path]).await?;
    let found = resolved.into_iter().next().unwrap_or_default();
    let entry = match database {
        Some(_) => found.database,
        None => found.catalog,
    };
    entry
        .map(|entry| PartitionId(entry.object.0))
        .ok_or_else(|| ApiError::not_found(format!("{name} does not exist")))
}

impl ChangeAnswer {
    fn new(change: Change, containers: &Containers) -> ChangeAnswer {
        let shown = |body: Option<std::sync::Arc<str>>| body.map(|body| shown_body(&body));
        let scope = change.key.scope.split('\u{1f}');
        ChangeAnswer {
            position: format!("{}.{}", change.revision, change.place),
            commit_id: change.commit.0.to_string(),
            revision: change.revision.to_string(),
            at: operations::instant(change.at),
            by: change.principal,
            partition: change.key.partition.0.to_string(),
            kind: change.action,
            r#type: change.kind,
            object: change.object.0.to_string(),
            key: ChangeKey {
                whereabouts: containers.of(change.key.partition),
                branch: change.key.branch.0.to_string(),
                scope: scope
                    .filter(|level| !level.is_empty())
                    .map(str::to_owned)
                    .collect(),
                class: change.key.class,
                name: change.key.name,
            },
            before: shown(change.before),
            after: shown(change.after),
        }
    }
}

/// A body as the feed shows it: without the values of properties that are secret.
fn shown_body(body: &str) -> Value {
    let mut value: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    if let Some(properties) = value.get_mut("properties").and_then(Value::as_object_mut) {
        for (key, value) in properties {
            if StorageSettings::is_secret(key) {
                *value = Value::String(MASKED.to_owned());
            }
        }
    }
    value
}
