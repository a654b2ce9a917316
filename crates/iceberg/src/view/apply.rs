//! Making a view, and applying the updates of a commit to one.

use serde_json::Map;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

use super::metadata::{VIEW_FORMAT_VERSION, ViewHistoryEntry, ViewMetadata};
use super::update::ViewUpdate;
use super::version::ViewVersion;
use crate::MAX_FORMAT_VERSION;
use crate::apply::UpdateContext;
use crate::error::UpdateError;
use crate::next_id::next_id;
use crate::schema::Schema;
use crate::schema_rules::check_schema;

/// Property that bounds how many versions are kept.
const HISTORY_SIZE_PROPERTY: &str = "version.history.num-entries";
const DEFAULT_HISTORY_SIZE: usize = 10;
/// Property that allows a new version to lack a dialect of the one before.
const DROP_DIALECT_PROPERTY: &str = "replace.drop-dialect.allowed";

/// A view to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateView {
    /// The identity, made by the caller.
    pub uuid: Uuid,
    /// Base location of the view's files.
    pub location: String,
    /// Schema of the view's rows.
    pub schema: Schema,
    /// The first version; its id and its schema's id are given by the view.
    pub version: ViewVersion,
    /// The properties.
    pub properties: BTreeMap<String, String>,
}

impl ViewMetadata {
    /// Makes the metadata of a new view, whose only version has the id 1 and whose only schema has the id 0.
    ///
    /// # Errors
    ///
    /// [`UpdateError::Invalid`] for a schema or version that doesn't fit.
    pub fn create(view: CreateView, context: &UpdateContext) -> Result<ViewMetadata, UpdateError> {
        let blank = ViewMetadata {
            view_uuid: view.uuid,
            location: String::new(),
            current_version_id: 0,
            versions: Vec::new(),
            version_log: Vec::new(),
            schemas: Vec::new(),
            properties: view.properties,
            extra: Map::new(),
        };
        let mut draft = ViewDraft::start(blank, context.now_ms);
        draft.set_location(&view.location)?;
        draft.add_schema(&view.schema)?;
        draft.add_version(&ViewVersion {
            schema_id: -1,
            ..view.version
        })?;
        draft.set_current_version(-1)?;
        draft.finish(None)
    }
}

/// Applies updates to a view. Updates that change nothing give back the base as it is.
///
/// # Errors
///
/// [`UpdateError::Invalid`]; requirements are checked by [`crate::ViewRequirement::check`].
pub fn apply_view(
    base: &ViewMetadata,
    updates: &[ViewUpdate],
    context: &UpdateContext,
) -> Result<ViewMetadata, UpdateError> {
    let mut draft = ViewDraft::start(base.clone(), context.now_ms);
    for update in updates {
        draft.apply(update)?;
    }
    draft.finish(Some(base))
}

/// A view in the middle of a commit.
struct ViewDraft {
    metadata: ViewMetadata,
    now_ms: i64,
    last_added_schema_id: Option<i32>,
    last_added_version_id: Option<i32>,
    added_version_ids: BTreeSet<i32>,
}

impl ViewDraft {
    fn start(metadata: ViewMetadata, now_ms: i64) -> ViewDraft {
        ViewDraft {
            metadata,
            now_ms,
            last_added_schema_id: None,
            last_added_version_id: None,
            added_version_ids: BTreeSet::new(),
        }
    }

    fn apply(&mut self, update: &ViewUpdate) -> Result<(), UpdateError> {
        match update {
            ViewUpdate::AssignUuid { uuid } => self.assign_uuid(*uuid),
            ViewUpdate::UpgradeFormatVersion { format_version } => {
                if i64::from(*format_version) == VIEW_FORMAT_VERSION {
                    return Ok(());
                }
                Err(UpdateError::invalid(format!(
                    "unsupported view format-version {format_version}, there is only 1"
                )))
            }
            ViewUpdate::AddSchema { schema } => self.add_schema(schema),
            ViewUpdate::SetLocation { location } => self.set_location(location),
            ViewUpdate::SetProperties { updates } => {
                self.metadata.properties.extend(updates.clone());
                Ok(())
            }
            ViewUpdate::RemoveProperties { removals } => {
                self.metadata
                    .properties
                    .retain(|name, _| !removals.contains(name));
                Ok(())
            }
            ViewUpdate::AddViewVersion { view_version } => self.add_version(view_version),
            ViewUpdate::SetCurrentViewVersion { view_version_id } => {
                self.set_current_version(*view_version_id)
            }
        }
    }

    fn assign_uuid(&self, uuid: Uuid) -> Result<(), UpdateError> {
        let current = self.metadata.view_uuid;
        if current == uuid {
            return Ok(());
        }
        Err(UpdateError::invalid(format!(
            "the view has the uuid {current}, which can't be changed to {uuid}; leave assign-uuid out"
        )))
    }

    fn set_location(&mut self, location: &str) -> Result<(), UpdateError> {
        if location.is_empty() {
            return Err(UpdateError::invalid("a view needs a location"));
        }
        self.metadata.location = location.to_string();
        Ok(())
    }

    fn add_schema(&mut self, schema: &Schema) -> Result<(), UpdateError> {
        // A view stores no rows, so its schema may have the types of any table.
        check_schema(schema, MAX_FORMAT_VERSION)?;
        let known = self
            .metadata
            .schemas
            .iter()
            .find(|known| known.same_schema(schema));
        let schema_id = match known {
            Some(known) => known.schema_id,
            None => {
                let known = self.metadata.schemas.iter();
                let schema_id = next_id("schema", known.map(|known| known.schema_id), 0)?;
                self.metadata.schemas.push(Schema {
                    schema_id,
                    ..schema.clone()
                });
                schema_id
            }
        };
        self.last_added_schema_id = Some(schema_id);
        Ok(())
    }

    fn add_version(&mut self, version: &ViewVersion) -> Result<(), UpdateError> {
        version.check_dialects()?;
        let schema_id = match version.schema_id {
            -1 => self.last_added_schema_id.ok_or_else(|| {
                UpdateError::invalid("add-view-version: the schema-id -1 means the last one added, and there is none")
            })?,
            id => id,
        };
        if self.metadata.schema_by_id(schema_id).is_none() {
            return Err(UpdateError::invalid(format!(
                "add-view-version: the view has no schema {schema_id}; add it first and use -1"
            )));
        }
        let mut version = ViewVersion {
            schema_id,
            ..version.clone()
        };
        if let Some(known) = self
            .metadata
            .versions
            .iter()
            .find(|known| known.same_definition(&version))
        {
            self.last_added_version_id = Some(known.version_id);
            return Ok(());
        }
        let known = self.metadata.versions.iter();
        version.version_id = next_id("view version", known.map(|known| known.version_id), 1)?;
        self.last_added_version_id = Some(version.version_id);
        self.added_version_ids.insert(version.version_id);
        self.metadata.versions.push(version);
        Ok(())
    }

    fn set_current_version(&mut self, version_id: i32) -> Result<(), UpdateError> {
        let version_id = match version_id {
            -1 => self.last_added_version_id.ok_or_else(|| {
                UpdateError::invalid(
                    "set-current-view-version: -1 means the last version added, and there is none",
                )
            })?,
            id => id,
        };
        if self.metadata.version_by_id(version_id).is_none() {
            return Err(UpdateError::invalid(format!(
                "set-current-view-version: the view has no version {version_id}; add it first and use -1"
            )));
        }
        self.metadata.current_version_id = version_id;
        Ok(())
    }

    fn finish(mut self, base: Option<&ViewMetadata>) -> Result<ViewMetadata, UpdateError> {
        let before = base.and_then(ViewMetadata::current_version);
        if before.map(|version| version.version_id) != Some(self.metadata.current_version_id) {
            self.log_current_version();
            if let Some(before) = before {
                self.check_no_dialect_dropped(before)?;
            }
        }
        self.expire_versions()?;
        Ok(self.metadata)
    }

    /// A version of this commit became current when it was made, an older one becomes it now.
    fn log_current_version(&mut self) {
        let version_id = self.metadata.current_version_id;
        let made_ms = match self.metadata.version_by_id(version_id) {
            Some(version) if self.added_version_ids.contains(&version_id) => version.timestamp_ms,
            _ => self.now_ms,
        };
        self.metadata.version_log.push(ViewHistoryEntry {
            version_id,
            timestamp_ms: made_ms,
            extra: Map::new(),
        });
    }

    /// Engines that read the view in a dialect would lose it without a word.
    fn check_no_dialect_dropped(&self, before: &ViewVersion) -> Result<(), UpdateError> {
        let allowed = self.metadata.properties.get(DROP_DIALECT_PROPERTY);
        if allowed.is_some_and(|text| text.eq_ignore_ascii_case("true")) {
            return Ok(());
        }
        let dialects = self
            .metadata
            .current_version()
            .map(ViewVersion::dialects)
            .unwrap_or_default();
        match before
            .dialects()
            .into_iter()
            .find(|dialect| !dialects.contains(dialect))
        {
            None => Ok(()),
            Some(dialect) => Err(UpdateError::invalid(format!(
                "the new version lacks the dialect '{dialect}' of the current one; add it, or set \
                 {DROP_DIALECT_PROPERTY} to true"
            ))),
        }
    }

    /// Keeps the current version, those that this commit added, and the newest of the rest; the log begins after what
    /// it can't name any more.
    fn expire_versions(&mut self) -> Result<(), UpdateError> {
        let size = match self.metadata.properties.get(HISTORY_SIZE_PROPERTY) {
            None => DEFAULT_HISTORY_SIZE,
            Some(text) => text.trim().parse().ok().filter(|&size: &usize| size > 0).ok_or_else(|| {
                UpdateError::invalid(format!(
                    "the property {HISTORY_SIZE_PROPERTY} must be a number above 0, '{text}' is none"
                ))
            })?,
        };
        let kept_count = size.max(self.added_version_ids.len());
        if self.metadata.versions.len() <= kept_count {
            return Ok(());
        }
        let current = self.metadata.current_version_id;
        let mut newest_first: Vec<i32> = self
            .metadata
            .versions
            .iter()
            .map(|version| version.version_id)
            .collect();
        newest_first.sort_unstable_by(|left, right| right.cmp(left));
        let others = newest_first
            .into_iter()
            .filter(|&id| id != current)
            .take(kept_count - 1);
        let kept: BTreeSet<i32> = others.chain([current]).collect();
        self.metadata
            .versions
            .retain(|version| kept.contains(&version.version_id));
        let last_gap = self
            .metadata
            .version_log
            .iter()
            .rposition(|entry| !kept.contains(&entry.version_id));
        if let Some(position) = last_gap {
            self.metadata.version_log.drain(..=position);
        }
        Ok(())
    }
}
