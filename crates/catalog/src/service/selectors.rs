//! Which databases have a reference, and where a reference's name ends that holds dots.

use anabranch_partition::RunError;
use anabranch_store::{Answer, Class, Entry, Kind, PartitionId, Path, Read};

use crate::error::CatalogError;
use crate::name::{Namespace, Warehouse};
use crate::reference::body::{ReferenceKind, ReferenceName, reference_key};
use crate::reference::name::{Selector, is_reference_name, split_selector};
use crate::service::listing::{Page, Shelf, Shelved};
use crate::service::lookup::path;
use crate::service::{Catalog, Core};

impl ReferenceKind {
    pub(crate) fn stored(self) -> Kind {
        match self {
            ReferenceKind::Branch => Kind::Branch,
            ReferenceKind::Tag => Kind::Tag,
        }
    }
}

impl Catalog {
    /// Joins levels of a namespace that belong to the selector: clients that split names at dots
    /// send `db$tag_v1.0` as two levels. Following levels are joined while that names a reference
    /// and the shorter name doesn't.
    pub async fn joined(
        &self,
        warehouse: &Warehouse,
        namespace: Namespace,
    ) -> Result<Namespace, CatalogError> {
        let (plain, selector) = split_selector(namespace.database())?;
        let Some(Selector::Reference(shortest)) = selector else {
            return Ok(namespace);
        };
        if namespace.is_database() {
            return Ok(namespace);
        }
        let path = Path {
            database: Some(plain.to_owned()),
            ..path(warehouse, None, None)
        };
        let resolved = self.core.partitions.resolve(&[path]).await?.pop();
        let database = resolved.and_then(|resolved| resolved.database);
        let Some(database) = database.map(|entry| PartitionId(entry.object.0)) else {
            return Ok(namespace);
        };
        let mut names = vec![shortest.name];
        for level in &namespace.levels()[1..] {
            let longer = format!("{}.{level}", names[names.len() - 1]);
            if !is_reference_name(&longer) {
                break;
            }
            names.push(longer);
        }
        let exist = self.core.exist(database, shortest.kind, &names).await?;
        let joined = exist.iter().position(|exists| *exists).unwrap_or_default();
        Ok(namespace.with_first_joined(joined))
    }
}

impl Core {
    async fn exist(
        &self,
        database: PartitionId,
        kind: ReferenceKind,
        names: &[String],
    ) -> Result<Vec<bool>, CatalogError> {
        let reads = names
            .iter()
            .map(|name| Read::Point(reference_key(database, name)));
        let answers = self.partitions.read(&reads.collect::<Vec<_>>()).await?;
        Ok(answers
            .into_iter()
            .map(|answer| is_a(kind, &answer))
            .collect())
    }

    /// Leaves those databases of a page that have a reference.
    pub(crate) async fn keep_those_with(
        &self,
        databases: &mut Shelved,
        reference: &ReferenceName,
    ) -> Result<(), CatalogError> {
        let key = |entry: &Entry| reference_key(PartitionId(entry.object.0), &reference.name);
        let reads = databases
            .entries
            .iter()
            .map(|(_, entry)| Read::Point(key(entry)));
        let answers = self.partitions.read(&reads.collect::<Vec<_>>()).await?;
        let mut has = answers.iter().map(|answer| is_a(reference.kind, answer));
        databases.entries.retain(|_| has.next().unwrap_or_default());
        Ok(())
    }

    /// The branches and tags of a database, without `main`.
    pub(crate) async fn names_of_references(
        &self,
        database: &Entry,
    ) -> Result<Vec<ReferenceName>, CatalogError> {
        let shelf = Shelf {
            partition: PartitionId(database.object.0),
            scope: String::new(),
            class: Class::Reference,
            kinds: Vec::new(),
        };
        let listed = match self.list(shelf, &Page::default()).await {
            Ok(shelved) => shelved.entries,
            // The database was dropped meanwhile.
            Err(CatalogError::Run(RunError::Refused(_))) => Vec::new(),
            Err(error) => return Err(error),
        };
        let named = listed.into_iter().map(|(key, entry)| ReferenceName {
            kind: match entry.kind {
                Kind::Tag => ReferenceKind::Tag,
                _ => ReferenceKind::Branch,
            },
            name: key.name,
        });
        Ok(named.collect())
    }
}

fn is_a(kind: ReferenceKind, answer: &Answer) -> bool {
    match answer {
        Answer::Entry(Some(entry)) => entry.kind == kind.stored(),
        _ => false,
    }
}
