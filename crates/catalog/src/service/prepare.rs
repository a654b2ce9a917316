//! New metadata from old, as pure functions: what a commit would make of what stands.

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_files::{Location, MetadataName};
use anabranch_iceberg::{
    TableMetadata, TableRequirement, TableUpdate, UpdateContext, UpdateError, ViewMetadata,
    ViewRequirement, ViewUpdate, apply, apply_view, created_uuid, snapshot_ids_added,
};
use anabranch_partition::{Reason, Refusal};
use anabranch_store::ObjectId;
use bytes::Bytes;
use uuid::Uuid;

use crate::body::{self, CatalogBody, PointerBody, Properties};
use crate::command::{Becomes, Expected, PointerChange};
use crate::name::Identifier;
use crate::place::{Container, already_exists, not_found};
use crate::service::document::{Content, Document};
use crate::service::location;
use crate::service::pointers::{Pointer, PointerKind};

/// One table or view of a commit, as the protocol brings it.
#[derive(Clone, Debug)]
pub struct TableChange {
    /// Its name.
    pub identifier: Identifier,
    /// What must hold of it.
    pub requirements: Vec<TableRequirement>,
    /// What happens to it.
    pub updates: Vec<TableUpdate>,
}

/// A table or view after its commit.
#[derive(Clone, Debug)]
pub struct Committed {
    /// Where it stands.
    pub pointer: Pointer,
    /// What it says.
    pub document: Arc<Document>,
}

/// What is to be done with one name.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    UpdateTable {
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    },
    UpdateView {
        requirements: Vec<ViewRequirement>,
        updates: Vec<ViewUpdate>,
    },
    /// A new table or view whose metadata is made already.
    Create { content: Content },
    /// A pointer at metadata that lies in the store.
    Register {
        uuid: Uuid,
        location: String,
        metadata_location: String,
        overwrite: bool,
        document: Arc<Document>,
    },
}

impl Edit {
    /// Whether it makes something that isn't there yet.
    pub(crate) fn is_creation(&self) -> bool {
        match self {
            Edit::Create { .. } | Edit::Register { .. } => true,
            Edit::UpdateTable { requirements, .. } => {
                requirements.contains(&TableRequirement::AssertCreate)
            }
            Edit::UpdateView { .. } => false,
        }
    }
}

/// What stands under a name, or would stand if the commits before in the chain are applied.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) kind: PointerKind,
    pub(crate) object: ObjectId,
    pub(crate) version: i64,
    pub(crate) pointer: PointerBody,
    /// The pointer as the store holds it.
    pub(crate) body: Arc<str>,
    pub(crate) document: Arc<Document>,
}

impl Standing {
    fn expected(&self) -> Expected {
        Expected::Standing(self.object, self.body.clone())
    }
}

/// What an edit is computed on besides what stands.
pub(crate) struct Ground<'a> {
    pub(crate) catalog: &'a CatalogBody,
    pub(crate) database: &'a Container,
    pub(crate) now_ms: i64,
    /// Random ids for what the edit makes.
    pub(crate) object: ObjectId,
    pub(crate) file: Uuid,
}

/// A file that has to be stored before the commit.
#[derive(Clone, Debug)]
pub(crate) struct NewFile {
    pub(crate) location: Location,
    /// The document that hardly anybody asks for once this one is published.
    pub(crate) replaces: Option<Location>,
    pub(crate) document: Arc<Document>,
}

/// The prepared form of an edit.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) change: PointerChange,
    pub(crate) file: Option<NewFile>,
    pub(crate) after: Standing,
}

/// Checks the requirements against what stands, and computes what comes after it.
pub(crate) fn prepare(
    identifier: &Identifier,
    kind: PointerKind,
    edit: &Edit,
    standing: Option<&Standing>,
    ground: &Ground<'_>,
) -> Result<Prepared, Refusal> {
    if let Some(other) = standing.filter(|standing| standing.kind != kind) {
        return Err(if edit.is_creation() {
            already_exists(other.kind.subject(), &identifier.to_string())
        } else {
            not_found(kind.subject(), &identifier.to_string())
        });
    }
    match edit {
        Edit::UpdateTable {
            requirements,
            updates,
        } => {
            let base = standing.map(table_of).transpose()?;
            for requirement in requirements {
                requirement
                    .check(base.as_deref())
                    .map_err(|error| refusal(error, identifier, kind))?;
            }
            let context = context(standing, ground);
            let applied = match &base {
                Some(base) => apply(Some(base), updates, &context),
                None if edit.is_creation() => {
                    let complete = completed(updates, identifier, ground)?;
                    apply(None, &complete, &context)
                }
                None => return Err(not_found(kind.subject(), &identifier.to_string())),
            };
            let after = applied.map_err(|error| refusal(error, identifier, kind))?;
            if let (Some(standing), Some(base)) = (standing, &base)
                && after == **base
            {
                return Ok(unchanged(identifier, standing, ground));
            }
            if base.is_none_or(|base| base.location() != after.location()) {
                location::allowed_for_table(ground.catalog, "location", after.location())?;
            }
            written(
                identifier,
                standing,
                Content::Table(Arc::new(after)),
                ground,
            )
        }
        Edit::UpdateView {
            requirements,
            updates,
        } => {
            let Some(standing) = standing else {
                return Err(not_found(kind.subject(), &identifier.to_string()));
            };
            let base = view_of(standing)?;
            for requirement in requirements {
                requirement
                    .check(Some(&base))
                    .map_err(|error| refusal(error, identifier, kind))?;
            }
            if updates.is_empty() {
                return Ok(unchanged(identifier, standing, ground));
            }
            let after = apply_view(&base, updates, &context(Some(standing), ground))
                .map_err(|error| refusal(error, identifier, kind))?;
            if after.location() != base.location() {
                location::allowed_for_table(ground.catalog, "location", after.location())?;
            }
            written(
                identifier,
                Some(standing),
                Content::View(Arc::new(after)),
                ground,
            )
        }
        Edit::Create { content } => {
            if standing.is_some() {
                return Err(already_exists(kind.subject(), &identifier.to_string()));
            }
            written(identifier, None, content.clone(), ground)
        }
        Edit::Register {
            uuid,
            location,
            metadata_location,
            overwrite,
            document,
        } => {
            if standing.is_some() && !overwrite {
                return Err(already_exists(kind.subject(), &identifier.to_string()));
            }
            let pointer = PointerBody {
                uuid: *uuid,
                metadata_location: metadata_location.clone(),
                location: location.clone(),
            };
            let document = document.clone();
            Ok(pointed(
                identifier, kind, standing, pointer, document, ground,
            ))
        }
    }
}

/// Keys under which a request is found again by the ids inside it.
pub(crate) fn derived_keys(edit: &Edit, standing: Option<&Standing>) -> Vec<String> {
    let Edit::UpdateTable {
        requirements,
        updates,
    } = edit
    else {
        return Vec::new();
    };
    let mut keys = Vec::new();
    if let Some(uuid) = created_uuid(updates) {
        keys.push(format!("create/{uuid}"));
    }
    // What the request says it is about counts too: since it was applied, its table may have been
    // renamed, and nothing, or another table, stand under the name.
    let asserted = requirements
        .iter()
        .filter_map(|requirement| match requirement {
            TableRequirement::AssertTableUuid { uuid } => Some(*uuid),
            _ => None,
        });
    let uuids: BTreeSet<Uuid> = standing
        .map(|standing| standing.pointer.uuid)
        .into_iter()
        .chain(asserted)
        .collect();
    for uuid in uuids {
        let snapshots = snapshot_ids_added(updates).into_iter();
        keys.extend(snapshots.map(|snapshot| format!("snapshot/{uuid}/{snapshot}")));
    }
    keys
}

/// The updates of a creation, with an identity and a place where they name none.
fn completed(
    updates: &[TableUpdate],
    identifier: &Identifier,
    ground: &Ground<'_>,
) -> Result<Vec<TableUpdate>, Refusal> {
    let mut complete = Vec::with_capacity(updates.len() + 2);
    let uuid = created_uuid(updates).unwrap_or(ground.file);
    if created_uuid(updates).is_none() {
        complete.push(TableUpdate::AssignUuid { uuid });
    }
    let is_location = |update: &TableUpdate| matches!(update, TableUpdate::SetLocation { .. });
    if !updates.iter().any(is_location) {
        let nothing = Properties::new();
        let location = location::for_new_table(ground.catalog, &nothing, identifier, uuid, None)?;
        complete.push(TableUpdate::SetLocation { location });
    }
    complete.extend_from_slice(updates);
    Ok(complete)
}

fn context(standing: Option<&Standing>, ground: &Ground<'_>) -> UpdateContext {
    UpdateContext {
        now_ms: ground.now_ms,
        previous_metadata_location: standing
            .map(|standing| standing.pointer.metadata_location.clone()),
    }
}

fn table_of(standing: &Standing) -> Result<Arc<TableMetadata>, Refusal> {
    match standing.document.content(PointerKind::Table) {
        Ok(Content::Table(metadata)) => Ok(metadata),
        Ok(Content::View(_)) => Err(Refusal::invalid("the metadata is that of a view")),
        Err(error) => Err(Refusal::invalid(format!(
            "the table's metadata can't be read: {error}"
        ))),
    }
}

fn view_of(standing: &Standing) -> Result<Arc<ViewMetadata>, Refusal> {
    match standing.document.content(PointerKind::View) {
        Ok(Content::View(metadata)) => Ok(metadata),
        Ok(Content::Table(_)) => Err(Refusal::invalid("the metadata is that of a table")),
        Err(error) => Err(Refusal::invalid(format!(
            "the view's metadata can't be read: {error}"
        ))),
    }
}

fn unchanged(identifier: &Identifier, standing: &Standing, ground: &Ground<'_>) -> Prepared {
    Prepared {
        change: PointerChange {
            database: ground.database.clone(),
            scope: identifier.namespace.scope(),
            name: identifier.name.clone(),
            kind: standing.kind.kind(),
            expected: standing.expected(),
            becomes: Becomes::Same,
        },
        file: None,
        after: standing.clone(),
    }
}

fn written(
    identifier: &Identifier,
    standing: Option<&Standing>,
    content: Content,
    ground: &Ground<'_>,
) -> Result<Prepared, Refusal> {
    let (kind, uuid, location, bytes, folder) = match &content {
        Content::Table(metadata) => {
            let folder = location::metadata_folder(
                ground.catalog,
                metadata.location(),
                metadata.properties(),
            )?;
            let own = metadata.location().to_owned();
            (
                PointerKind::Table,
                metadata.uuid(),
                own,
                metadata.to_json(),
                folder,
            )
        }
        Content::View(metadata) => {
            let folder = location::metadata_folder(
                ground.catalog,
                metadata.location(),
                metadata.properties(),
            )?;
            let own = metadata.location().to_owned();
            (
                PointerKind::View,
                metadata.uuid(),
                own,
                metadata.to_json(),
                folder,
            )
        }
    };
    let previous =
        standing.and_then(|standing| standing.pointer.metadata_location.rsplit('/').next());
    let name = MetadataName::next(previous, ground.file).to_string();
    let file_location = folder
        .join(&name)
        .map_err(|error| Refusal::invalid(error.to_string()))?;
    let pointer = PointerBody {
        uuid,
        metadata_location: file_location.as_str().to_owned(),
        location,
    };
    let document = Arc::new(Document::of(Bytes::from(bytes), content));
    let prepared = pointed(
        identifier,
        kind,
        standing,
        pointer,
        document.clone(),
        ground,
    );
    Ok(Prepared {
        file: Some(NewFile {
            location: file_location,
            replaces: standing
                .and_then(|standing| Location::parse(&standing.pointer.metadata_location).ok()),
            document,
        }),
        ..prepared
    })
}

fn pointed(
    identifier: &Identifier,
    kind: PointerKind,
    standing: Option<&Standing>,
    pointer: PointerBody,
    document: Arc<Document>,
    ground: &Ground<'_>,
) -> Prepared {
    // Registering another table over one makes it another thing.
    let same = standing.filter(|standing| standing.pointer.uuid == pointer.uuid);
    let (object, version) = match same {
        Some(standing) => (standing.object, standing.version + 1),
        None => (ground.object, 1),
    };
    let body = body::write(&pointer);
    Prepared {
        change: PointerChange {
            database: ground.database.clone(),
            scope: identifier.namespace.scope(),
            name: identifier.name.clone(),
            kind: kind.kind(),
            expected: match standing {
                Some(standing) => standing.expected(),
                None => Expected::Absent,
            },
            becomes: Becomes::Version {
                object,
                body: body.clone(),
            },
        },
        file: None,
        after: Standing {
            kind,
            object,
            version,
            pointer,
            body,
            document,
        },
    }
}

fn refusal(error: UpdateError, identifier: &Identifier, kind: PointerKind) -> Refusal {
    match error {
        UpdateError::Invalid { message } => Refusal::invalid(format!("{identifier}: {message}")),
        UpdateError::RequirementFailed { message } | UpdateError::Conflict { message } => {
            Refusal::new(Reason::Conflict, format!("{identifier}: {message}"))
        }
        UpdateError::AlreadyExists { .. } => {
            already_exists(kind.subject(), &identifier.to_string())
        }
        UpdateError::NotFound { .. } => not_found(kind.subject(), &identifier.to_string()),
    }
}
