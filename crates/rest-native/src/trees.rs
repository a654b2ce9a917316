//! Branches and tags of a database: `/v1/catalogs/{catalog}/databases/{database}/trees`.

#![allow(unused_qualifications, reason = "in what utoipa::path expands to")]

use std::collections::BTreeMap;

use anabranch_catalog::reference::{Mode, Modes, ReferenceInfo, ReferenceKind, ReferenceName};
use anabranch_catalog::{MergedTable, NewMerge, NewReference, Page, SourceReference, Warehouse};
use anabranch_http::{Json, PathNames, Query, RequestContext};
use anabranch_partition::Refusal;
use axum::body::Bytes;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::error::ApiError;
use crate::{Shared, caller};

/// A branch or tag.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reference {
    /// `BRANCH` or `TAG`.
    r#type: String,
    name: String,
    /// The state that it shows: what `expectedRevision`, `source.revision` and
    /// `database$tag_rev-REVISION` take.
    revision: String,
    /// Whether it can't be deleted.
    protected: bool,
    /// Milliseconds since 1970; absent for `main`.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_by: Option<String>,
}

/// A reference alone.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReferenceAnswer {
    reference: Reference,
}

/// A page of references.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReferenceList {
    references: Vec<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

/// What a merge came to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MergeAnswer {
    /// The target afterwards.
    reference: Reference,
    result: MergeResult,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MergeResult {
    /// What the target shows afterwards; what it shows now, if it was only asked.
    revision: String,
    /// What both sides were compared with: their best common ancestors.
    base: Vec<String>,
    fast_forward: bool,
    tables: Vec<TableOutcome>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TableOutcome {
    /// Its name below the database.
    table: String,
    /// `UNCHANGED`, `TAKEN`, `KEPT`, `DROPPED`, `FORCED` or `IDENTICAL`.
    outcome: String,
}

/// Which reference, and maybe exactly which state of it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Source {
    /// `BRANCH` or `TAG`.
    r#type: String,
    name: String,
    /// Exactly this state, though the branch may have moved since.
    revision: Option<String>,
}

/// A branch or tag to be created.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreateReference {
    name: String,
    /// `BRANCH` or `TAG`.
    r#type: String,
    /// Where it starts.
    source: Source,
    /// The revision that the source has to show.
    expected_revision: Option<String>,
}

/// A merge to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MergeRequest {
    source: Source,
    /// `NORMAL` (the default), `FORCE` or `DROP`.
    default_merge_mode: Option<String>,
    #[serde(default)]
    table_merge_modes: Vec<TableMode>,
    /// The revision that the target has to show.
    expected_revision: Option<String>,
    /// Only says what would be.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TableMode {
    /// Its name below the database; levels of nested namespaces with dots between.
    table: String,
    /// `NORMAL`, `FORCE` or `DROP`.
    merge_mode: String,
}

/// What a reference has to be to be deleted.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeleteReference {
    /// `BRANCH` or `TAG`.
    r#type: Option<String>,
    /// The revision that it has to show.
    expected_revision: Option<String>,
}

/// What a reference is to become.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ChangeReference {
    /// Whether it can't be deleted.
    protected: bool,
}

/// How references are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct ListReferences {
    /// `branch` or `tag`; both if absent.
    r#type: Option<String>,
    /// References at most; 0 or absent for all that fit.
    max_results: Option<u64>,
    /// The `nextPageToken` of the page before.
    page_token: Option<String>,
}

impl From<ReferenceInfo> for Reference {
    fn from(info: ReferenceInfo) -> Reference {
        Reference {
            r#type: match info.name.kind {
                ReferenceKind::Branch => "BRANCH".to_owned(),
                ReferenceKind::Tag => "TAG".to_owned(),
            },
            name: info.name.name,
            revision: info.revision,
            protected: info.protected,
            created_at: info.created_at,
            created_by: info.created_by,
        }
    }
}

impl From<MergedTable> for TableOutcome {
    fn from(table: MergedTable) -> TableOutcome {
        let outcome = serde_json::to_value(table.outcome).unwrap_or_default();
        TableOutcome {
            table: table.table,
            outcome: outcome.as_str().unwrap_or_default().to_owned(),
        }
    }
}

fn kind(field: &str, text: &str) -> Result<ReferenceKind, Refusal> {
    match text {
        "BRANCH" => Ok(ReferenceKind::Branch),
        "TAG" => Ok(ReferenceKind::Tag),
        other => Err(Refusal::invalid(format!(
            "`{field}` is {other:?}; it is BRANCH or TAG"
        ))),
    }
}

fn mode(field: &str, text: &str) -> Result<Mode, Refusal> {
    match text {
        "NORMAL" => Ok(Mode::Normal),
        "FORCE" => Ok(Mode::Force),
        "DROP" => Ok(Mode::Drop),
        other => Err(Refusal::invalid(format!(
            "`{field}` is {other:?}; it is NORMAL, FORCE or DROP"
        ))),
    }
}

impl Source {
    fn read(self) -> Result<SourceReference, Refusal> {
        Ok(SourceReference {
            name: ReferenceName {
                kind: kind("source.type", &self.r#type)?,
                name: self.name,
            },
            revision: self.revision,
        })
    }
}

impl MergeRequest {
    fn modes(&self) -> Result<Modes, Refusal> {
        let default = match &self.default_merge_mode {
            Some(text) => mode("defaultMergeMode", text)?,
            None => Mode::default(),
        };
        let mut tables = BTreeMap::new();
        for (number, one) in self.table_merge_modes.iter().enumerate() {
            let field = format!("tableMergeModes[{number}].mergeMode");
            let mode = mode(&field, &one.merge_mode)?;
            if tables.insert(one.table.clone(), mode).is_some() {
                return Err(Refusal::invalid(format!(
                    "`tableMergeModes` names {:?} twice; give each table one mode",
                    one.table
                )));
            }
        }
        Ok(Modes { default, tables })
    }
}

/// Lists branches and tags, `main` among them.
#[utoipa::path(get, path = "/v1/catalogs/{catalog}/databases/{database}/trees", tag = "references",
    params(("catalog" = String, Path, description = "`catalog` or `metalake.catalog`"),
        ("database" = String, Path, description = "Its name, without a selector"), ListReferences),
    responses((status = 200, body = ReferenceList), (status = "default", body = crate::openapi::ErrorAnswer)))]
pub(crate) async fn list(
    State(native): State<Shared>,
    PathNames([catalog, database]): PathNames<2>,
    Query(query): Query<ListReferences>,
) -> Result<axum::Json<ReferenceList>, ApiError> {
    let warehouse = Warehouse::parse(&catalog)?;
    let wanted = match query.r#type.as_deref() {
        None | Some("") => None,
        Some("branch") => Some(ReferenceKind::Branch),
        Some("tag") => Some(ReferenceKind::Tag),
        Some(other) => {
            let message = format!("`type` is {other:?}; it is branch or tag");
            return Err(Refusal::invalid(message).into());
        }
    };
    let page = Page {
        token: Some(query.page_token.unwrap_or_default()),
        size: query
            .max_results
            .filter(|size| *size > 0)
            .map(|size| u32::try_from(size).unwrap_or(u32::MAX)),
    };
    let listing = native
        .catalog
        .list_references(&warehouse, &database, wanted, &page)
        .await?;
    Ok(axum::Json(ReferenceList {
        references: listing.items.into_iter().map(Reference::from).collect(),
        next_page_token: listing.next,
    }))
}

/// Shows a branch or tag.
#[utoipa::path(get, path = "/v1/catalogs/{catalog}/databases/{database}/trees/{name}", tag = "references",
    params(("catalog" = String, Path), ("database" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = ReferenceAnswer), (status = "default", body = crate::openapi::ErrorAnswer)))]
pub(crate) async fn show(
    State(native): State<Shared>,
    PathNames([catalog, database, name]): PathNames<3>,
) -> Result<axum::Json<ReferenceAnswer>, ApiError> {
    let warehouse = Warehouse::parse(&catalog)?;
    let info = native
        .catalog
        .reference(&warehouse, &database, &name)
        .await?;
    Ok(answer(info))
}

/// Creates a branch or tag, in time and space that don't depend on the number of tables.
#[utoipa::path(post, path = "/v1/catalogs/{catalog}/databases/{database}/trees", tag = "references",
    request_body = CreateReference,
    params(("catalog" = String, Path), ("database" = String, Path),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition harmless")),
    responses((status = 200, body = ReferenceAnswer), (status = "default", body = crate::openapi::ErrorAnswer)))]
pub(crate) async fn create(
    State(native): State<Shared>,
    context: RequestContext,
    PathNames([catalog, database]): PathNames<2>,
    Json { value, raw }: Json<CreateReference>,
) -> Result<axum::Json<ReferenceAnswer>, ApiError> {
    let warehouse = Warehouse::parse(&catalog)?;
    let new = NewReference {
        name: ReferenceName {
            kind: kind("type", &value.r#type)?,
            name: value.name,
        },
        source: value.source.read()?,
        expected: value.expected_revision,
    };
    let caller = caller(&context, &raw);
    let made = native
        .catalog
        .create_reference(&caller, &warehouse, &database, &new)
        .await?;
    Ok(answer(made.value))
}

/// Protects a branch or tag from being deleted, or lets it be.
#[utoipa::path(patch, path = "/v1/catalogs/{catalog}/databases/{database}/trees/{name}", tag = "references",
    request_body = ChangeReference,
    params(("catalog" = String, Path), ("database" = String, Path), ("name" = String, Path),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition harmless")),
    responses((status = 200, body = ReferenceAnswer), (status = "default", body = crate::openapi::ErrorAnswer)))]
pub(crate) async fn change(
    State(native): State<Shared>,
    context: RequestContext,
    PathNames([catalog, database, name]): PathNames<3>,
    Json { value, raw }: Json<ChangeReference>,
) -> Result<axum::Json<ReferenceAnswer>, ApiError> {
    let warehouse = Warehouse::parse(&catalog)?;
    let caller = caller(&context, &raw);
    let changed = native
        .catalog
        .protect_reference(&caller, &warehouse, &database, &name, value.protected)
        .await?;
    Ok(answer(changed.value))
}

/// Deletes a branch or tag; answers what it was.
#[utoipa::path(delete, path = "/v1/catalogs/{catalog}/databases/{database}/trees/{name}", tag = "references",
    request_body = Option<DeleteReference>,
    params(("catalog" = String, Path), ("database" = String, Path), ("name" = String, Path),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition harmless")),
    responses((status = 200, body = ReferenceAnswer), (status = "default", body = crate::openapi::ErrorAnswer)))]
pub(crate) async fn delete(
    State(native): State<Shared>,
    context: RequestContext,
    PathNames([catalog, database, name]): PathNames<3>,
    raw: Bytes,
) -> Result<axum::Json<ReferenceAnswer>, ApiError> {
    let warehouse = Warehouse::parse(&catalog)?;
    let wanted: DeleteReference = match raw.trim_ascii() {
        [] => DeleteReference::default(),
        body => serde_json::from_slice(body).map_err(|error| {
            Refusal::invalid(format!(
                "the body does not fit: {error}; leave it out, or send {{}}"
            ))
        })?,
    };
    let wanted_kind = wanted.r#type.map(|text| kind("type", &text)).transpose()?;
    let caller = caller(&context, &raw);
    let expected = wanted.expected_revision.as_deref();
    let deleted = native
        .catalog
        .delete_reference(&caller, &warehouse, &database, &name, wanted_kind, expected)
        .await?;
    Ok(answer(deleted.value))
}

/// Merges a state into a branch: every table at once, or nothing.
#[utoipa::path(post, path = "/v1/catalogs/{catalog}/databases/{database}/trees/{name}/merge",
    tag = "references", request_body = MergeRequest,
    params(("catalog" = String, Path), ("database" = String, Path),
        ("name" = String, Path, description = "The branch that is merged into"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition harmless")),
    responses((status = 200, body = MergeAnswer), (status = "default", body = crate::openapi::ErrorAnswer)))]
pub(crate) async fn merge(
    State(native): State<Shared>,
    context: RequestContext,
    PathNames([catalog, database, name]): PathNames<3>,
    Json { value, raw }: Json<MergeRequest>,
) -> Result<axum::Json<MergeAnswer>, ApiError> {
    let warehouse = Warehouse::parse(&catalog)?;
    let modes = value.modes()?;
    let new = NewMerge {
        target: name,
        modes,
        expected: value.expected_revision,
        dry_run: value.dry_run,
        source: value.source.read()?,
    };
    let caller = caller(&context, &raw);
    let merged = native
        .catalog
        .merge(&caller, &warehouse, &database, &new)
        .await?
        .value;
    Ok(axum::Json(MergeAnswer {
        reference: merged.reference.into(),
        result: MergeResult {
            revision: merged.revision,
            base: merged.bases,
            fast_forward: merged.fast_forward,
            tables: merged.tables.into_iter().map(TableOutcome::from).collect(),
        },
    }))
}

fn answer(info: ReferenceInfo) -> axum::Json<ReferenceAnswer> {
    axum::Json(ReferenceAnswer {
        reference: info.into(),
    })
}
