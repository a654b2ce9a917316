//! Creates a metalake, a catalog or a first-level database, with its partition.

use std::sync::Arc;

use anabranch_partition::{Command, Context, Stop, Subject, View};
use anabranch_store::{Kind, ObjectId, PartitionId, Read};

use crate::place::{Container, already_exists, container_key};

/// Locks the parent's partition, in which the new row lives.
pub(crate) struct CreateContainer {
    /// The parent and what it is; `None` for a metalake, whose parent is the root.
    pub(crate) parent: Option<(Container, Subject)>,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// The new partition's id; it carries the kind.
    pub(crate) partition: PartitionId,
    pub(crate) body: Arc<str>,
}

impl CreateContainer {
    pub(crate) fn parent_partition(&self) -> PartitionId {
        match &self.parent {
            Some((parent, _)) => parent.partition,
            None => PartitionId::ROOT,
        }
    }

    fn subject(&self) -> Subject {
        match self.kind {
            Kind::Metalake => Subject::Metalake,
            Kind::Catalog => Subject::Catalog,
            _ => Subject::Namespace,
        }
    }
}

impl Command for CreateContainer {
    /// The new partition's id.
    type Outcome = i64;

    fn name(&self) -> &'static str {
        "create_container"
    }

    fn reads(&self) -> Vec<Read> {
        let key = container_key(self.parent_partition(), &self.name);
        let parent = self.parent.iter().map(|(parent, _)| parent.read());
        parent.chain([Read::Point(key)]).collect()
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<i64, Stop> {
        if let Some((parent, subject)) = &self.parent {
            parent.guard(view, *subject)?;
        }
        let key = container_key(self.parent_partition(), &self.name);
        if view.get(&key)?.is_some() {
            return Err(already_exists(self.subject(), &self.name).into());
        }
        view.create_partition(self.partition, self.parent_partition());
        let object = ObjectId::from(self.partition);
        view.put(key, self.kind, object, self.body.clone())?;
        Ok(self.partition.0)
    }
}
