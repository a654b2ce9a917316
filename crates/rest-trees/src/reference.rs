//! A branch or tag, as answers show it.

use anabranch_catalog::reference::{ReferenceInfo, ReferenceKind};
use anabranch_http::at_revision;
use axum::Json;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

/// Whether something is a branch or a tag.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum ReferenceType {
    Branch,
    Tag,
}

/// A branch or tag.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reference {
    r#type: ReferenceType,
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

impl From<ReferenceKind> for ReferenceType {
    fn from(kind: ReferenceKind) -> ReferenceType {
        match kind {
            ReferenceKind::Branch => ReferenceType::Branch,
            ReferenceKind::Tag => ReferenceType::Tag,
        }
    }
}

impl From<ReferenceInfo> for Reference {
    fn from(info: ReferenceInfo) -> Reference {
        Reference {
            r#type: info.name.kind.into(),
            name: info.name.name,
            revision: info.revision,
            protected: info.protected,
            created_at: info.created_at,
            created_by: info.created_by,
        }
    }
}

/// The answer that shows a reference.
pub(crate) fn shown(info: ReferenceInfo) -> Response {
    let revision = info.revision.clone();
    let reference = info.into();
    at_revision(&revision, Json(ReferenceAnswer { reference }))
}
