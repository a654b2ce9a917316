//! Creates a namespace nested in a database.

use std::sync::Arc;

use anabranch_partition::{Command, Context, Stop, Subject, View};
use anabranch_store::{BranchId, Kind, ObjectId, Read};

use crate::place::{Container, already_exists, guard_scope, nested_key, scope_key};

/// Locks the database's partition.
pub(crate) struct CreateNested {
    pub(crate) database: Container,
    /// The scope of the parent namespace.
    pub(crate) scope: String,
    pub(crate) name: String,
    pub(crate) object: ObjectId,
    pub(crate) body: Arc<str>,
}

impl Command for CreateNested {
    /// The new object's id.
    type Outcome = i64;

    fn name(&self) -> &'static str {
        "create_nested_namespace"
    }

    fn branch(&self) -> BranchId {
        self.database.map().1
    }

    fn reads(&self) -> Vec<Read> {
        let own = nested_key(self.database.map(), &self.scope, &self.name);
        let parent = scope_key(self.database.map(), &self.scope);
        parent
            .into_iter()
            .chain([own])
            .map(Read::Point)
            .chain([self.database.read()])
            .collect()
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<i64, Stop> {
        self.database.guard(view, Subject::Namespace)?;
        guard_scope(view, &self.database, &self.scope)?;
        let key = nested_key(self.database.map(), &self.scope, &self.name);
        if view.get(&key)?.is_some() {
            return Err(already_exists(Subject::Namespace, &self.name).into());
        }
        view.put(key, Kind::Namespace, self.object, self.body.clone())?;
        Ok(self.object.0)
    }
}
