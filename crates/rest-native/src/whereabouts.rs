//! What the containers of a page of changes are called now.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_partition::{Partitions, RunError};
use anabranch_store::{Answer, PartitionId, PartitionKind, Read};
use serde::Serialize;
use utoipa::ToSchema;

/// The containers on the way down to a partition: absent where the partition is not below such a
/// container, `null` where the container is no longer there.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub(crate) struct Whereabouts {
    /// The metalake; absent if the change is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    metalake: Option<Option<String>>,
    /// The catalog; absent if the change is about one, or about something above.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    catalog: Option<Option<String>>,
    /// The database; absent if the change is about one, or about something above.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    database: Option<Option<String>>,
}

/// Containers by their partitions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Containers {
    known: BTreeMap<PartitionId, Container>,
}

#[derive(Clone, Debug)]
struct Container {
    parent: PartitionId,
    name: Option<String>,
}

impl Containers {
    /// Reads the containers of these partitions and those around them: one read for each level,
    /// however many there are.
    pub(crate) async fn around(
        partitions: &Partitions,
        ids: impl Iterator<Item = PartitionId>,
    ) -> Result<Containers, RunError> {
        let mut containers = Containers::default();
        let mut wanted: BTreeSet<PartitionId> = ids.collect();
        loop {
            wanted.retain(|id| *id != PartitionId::ROOT && !containers.known.contains_key(id));
            if wanted.is_empty() {
                return Ok(containers);
            }
            let reads: Vec<Read> = wanted
                .iter()
                .flat_map(|id| [Read::Partition(*id), Read::Container(*id)])
                .collect();
            let mut answers = partitions.read(&reads).await?.into_iter();
            let level = std::mem::take(&mut wanted);
            for id in level {
                let (row, entries) = (answers.next(), answers.next());
                let (Some(Answer::Partition(Some(row))), Some(Answer::Entries(entries))) =
                    (row, entries)
                else {
                    continue;
                };
                let name = entries.into_iter().next().map(|(key, _)| key.name);
                let parent = row.parent;
                containers.known.insert(id, Container { parent, name });
                wanted.insert(parent);
            }
        }
    }

    /// The names on the way down to a partition.
    pub(crate) fn of(&self, partition: PartitionId) -> Whereabouts {
        let mut whereabouts = Whereabouts::default();
        let mut next = self.known.get_key_value(&partition);
        while let Some((id, container)) = next {
            let name = container.name.clone();
            match id.kind() {
                Some(PartitionKind::Database) => whereabouts.database = Some(name),
                Some(PartitionKind::Catalog) => whereabouts.catalog = Some(name),
                Some(PartitionKind::Metalake) => whereabouts.metalake = Some(name),
                Some(PartitionKind::Root) | None => {}
            }
            next = self.known.get_key_value(&container.parent);
        }
        whereabouts
    }
}
