//! What a commit does to a view and what it depends on, as they come over the wire.

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;
use std::collections::BTreeMap;
use uuid::Uuid;

use super::metadata::ViewMetadata;
use super::version::ViewVersion;
use crate::error::{ShapeError, UpdateError};
use crate::json::{Fields, FromValue, deserialize_value};
use crate::schema::Schema;
use crate::update::uuid_field;

/// One change to a view (REST specification: `ViewUpdate`).
#[derive(Debug, Clone, PartialEq)]
pub enum ViewUpdate {
    /// Names the view's identity; accepted if it is the one that the view has.
    AssignUuid {
        /// The identity.
        uuid: Uuid,
    },
    /// Names the format version; there is only 1.
    UpgradeFormatVersion {
        /// The version.
        format_version: i32,
    },
    /// Adds a schema, or finds the equal one that is there; its id is given by the view.
    AddSchema {
        /// The schema.
        schema: Schema,
    },
    /// Moves the base location of files to come.
    SetLocation {
        /// Location.
        location: String,
    },
    /// Sets properties.
    SetProperties {
        /// New values by name.
        updates: BTreeMap<String, String>,
    },
    /// Removes properties.
    RemoveProperties {
        /// Names; those that aren't there don't matter.
        removals: Vec<String>,
    },
    /// Adds a version, or finds the equal one that is there; its id is given by the view.
    AddViewVersion {
        /// The version.
        view_version: ViewVersion,
    },
    /// Chooses the version that readers see.
    SetCurrentViewVersion {
        /// Id, or -1 for the version that the commit added last.
        view_version_id: i32,
    },
}

impl ViewUpdate {
    /// Reads one update of a request.
    ///
    /// # Errors
    ///
    /// [`UpdateError::Invalid`], which names an unknown action or the field that is wrong.
    pub fn from_json_value(value: Value) -> Result<ViewUpdate, UpdateError> {
        Ok(ViewUpdate::from_value(value)?)
    }

    /// The name of the update on the wire.
    pub fn action(&self) -> &'static str {
        match self {
            ViewUpdate::AssignUuid { .. } => "assign-uuid",
            ViewUpdate::UpgradeFormatVersion { .. } => "upgrade-format-version",
            ViewUpdate::AddSchema { .. } => "add-schema",
            ViewUpdate::SetLocation { .. } => "set-location",
            ViewUpdate::SetProperties { .. } => "set-properties",
            ViewUpdate::RemoveProperties { .. } => "remove-properties",
            ViewUpdate::AddViewVersion { .. } => "add-view-version",
            ViewUpdate::SetCurrentViewVersion { .. } => "set-current-view-version",
        }
    }
}

impl FromValue for ViewUpdate {
    fn from_value(value: Value) -> Result<ViewUpdate, ShapeError> {
        let mut object = Fields::of("view update", value)?;
        let update = match object.string("action")?.as_str() {
            "assign-uuid" => ViewUpdate::AssignUuid {
                uuid: uuid_field(&mut object, "uuid")?,
            },
            "upgrade-format-version" => ViewUpdate::UpgradeFormatVersion {
                format_version: object.i32("format-version")?,
            },
            "add-schema" => ViewUpdate::AddSchema {
                schema: Schema::from_value(object.required("schema")?)?,
            },
            "set-location" => ViewUpdate::SetLocation {
                location: object.string("location")?,
            },
            // Older Java clients call the fields of these two `updated` and `removed`.
            "set-properties" => {
                object.accept_older_name("updated", "updates");
                ViewUpdate::SetProperties {
                    updates: object.string_map("updates")?,
                }
            }
            "remove-properties" => {
                object.accept_older_name("removed", "removals");
                ViewUpdate::RemoveProperties {
                    removals: object.string_list("removals")?,
                }
            }
            "add-view-version" => ViewUpdate::AddViewVersion {
                view_version: ViewVersion::from_value(object.required("view-version")?)?,
            },
            "set-current-view-version" => ViewUpdate::SetCurrentViewVersion {
                view_version_id: object.i32("view-version-id")?,
            },
            unknown => {
                return Err(ShapeError(format!(
                    "unknown view update action '{unknown}'"
                )));
            }
        };
        Ok(update)
    }
}

impl Serialize for ViewUpdate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("action", self.action())?;
        match self {
            ViewUpdate::AssignUuid { uuid } => map.serialize_entry("uuid", uuid)?,
            ViewUpdate::UpgradeFormatVersion { format_version } => {
                map.serialize_entry("format-version", format_version)?;
            }
            ViewUpdate::AddSchema { schema } => map.serialize_entry("schema", schema)?,
            ViewUpdate::SetLocation { location } => map.serialize_entry("location", location)?,
            ViewUpdate::SetProperties { updates } => map.serialize_entry("updates", updates)?,
            ViewUpdate::RemoveProperties { removals } => {
                map.serialize_entry("removals", removals)?
            }
            ViewUpdate::AddViewVersion { view_version } => {
                map.serialize_entry("view-version", view_version)?
            }
            ViewUpdate::SetCurrentViewVersion { view_version_id } => {
                map.serialize_entry("view-version-id", view_version_id)?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ViewUpdate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ViewUpdate, D::Error> {
        deserialize_value(deserializer)
    }
}

/// Something that must hold of the view when a commit is applied (REST specification: `ViewRequirement`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViewRequirement {
    /// The view is still the same one.
    AssertViewUuid {
        /// Its identity.
        uuid: Uuid,
    },
}

impl ViewRequirement {
    /// Reads one requirement of a request.
    ///
    /// # Errors
    ///
    /// [`UpdateError::Invalid`], which names an unknown type or the field that is wrong.
    pub fn from_json_value(value: Value) -> Result<ViewRequirement, UpdateError> {
        Ok(ViewRequirement::from_value(value)?)
    }

    /// Whether the requirement holds of the view, where `None` is a view that isn't there.
    ///
    /// # Errors
    ///
    /// [`UpdateError::NotFound`] if there is no view, else [`UpdateError::RequirementFailed`].
    pub fn check(&self, current: Option<&ViewMetadata>) -> Result<(), UpdateError> {
        let ViewRequirement::AssertViewUuid { uuid } = self;
        let Some(view) = current else {
            let message = "assert-view-uuid needs a view, and there is none".to_string();
            return Err(UpdateError::NotFound { message });
        };
        let found = view.uuid();
        if found == *uuid {
            return Ok(());
        }
        Err(UpdateError::requirement_failed(format!(
            "requirement failed: view-uuid was expected to be {uuid} and is {found}; reload the view and retry"
        )))
    }
}

impl FromValue for ViewRequirement {
    fn from_value(value: Value) -> Result<ViewRequirement, ShapeError> {
        let mut object = Fields::of("view requirement", value)?;
        match object.string("type")?.as_str() {
            "assert-view-uuid" => Ok(ViewRequirement::AssertViewUuid {
                uuid: uuid_field(&mut object, "uuid")?,
            }),
            unknown => Err(ShapeError(format!(
                "unknown view requirement type '{unknown}'"
            ))),
        }
    }
}

impl Serialize for ViewRequirement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ViewRequirement::AssertViewUuid { uuid } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "assert-view-uuid")?;
        map.serialize_entry("uuid", uuid)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for ViewRequirement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ViewRequirement, D::Error> {
        deserialize_value(deserializer)
    }
}
