//! Tables, views and namespaces as a state of a database shows them.

use anabranch_store::{Entry, Kind, ObjectId};

use super::plan::{Place, Standing, written};
use crate::body::PointerBody;

/// What stands under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    /// An Iceberg table.
    Table,
    /// An Iceberg view.
    View,
    /// A namespace nested in the database.
    Namespace,
}

/// What a state shows under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceTable {
    /// Its name below the database, levels of nested namespaces with dots between.
    pub name: String,
    /// What it is.
    pub thing: Thing,
    /// Which one: dropped and created again is another one, renamed the same.
    pub id: ObjectId,
    /// Names its content: two states that show the same id and version show the same.
    pub version: String,
    /// Where its metadata document lies; `None` for a namespace.
    pub metadata_location: Option<String>,
}

impl ReferenceTable {
    pub(crate) fn new(place: &Place, entry: &Entry) -> ReferenceTable {
        ReferenceTable::of(place, entry.kind, entry.object, &entry.body)
    }

    fn of(place: &Place, kind: Kind, id: ObjectId, body: &str) -> ReferenceTable {
        let thing = match kind {
            Kind::Namespace => Thing::Namespace,
            Kind::IcebergView => Thing::View,
            _ => Thing::Table,
        };
        let pointer = serde_json::from_str(body).ok();
        let metadata_location = pointer.map(|pointer: PointerBody| pointer.metadata_location);
        ReferenceTable {
            name: written(place),
            thing,
            id,
            version: metadata_location.clone().unwrap_or_else(|| body.to_owned()),
            metadata_location,
        }
    }
}

impl From<&Standing> for ReferenceTable {
    fn from(standing: &Standing) -> ReferenceTable {
        let version = &standing.version;
        ReferenceTable::of(&standing.place, version.kind, version.object, &version.body)
    }
}
