//! Where tables lie, and which of these places a run may delete in.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anabranch_files::{Location, StorageSettings};
use anabranch_store::{Answer, Entry, PartitionId, Read};

use crate::body::{self, CatalogBody};
use crate::error::CatalogError;
use crate::name::LEVEL_SEPARATOR;
use crate::service::inventory::Held;
use crate::service::{Core, location};

/// A catalog that tables of the store belong to; one that is gone isn't among them.
#[derive(Clone, Debug)]
pub(super) struct Reached {
    pub(super) name: String,
    pub(super) body: CatalogBody,
    pub(super) settings: Arc<StorageSettings>,
}

/// Something that is kept, with where it belongs.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) held: Held,
    pub(super) database: PartitionId,
    pub(super) catalog: PartitionId,
}

/// Everything that is kept in the store.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    pub(super) kept: Vec<Kept>,
    pub(super) catalogs: HashMap<PartitionId, Reached>,
    databases: HashMap<PartitionId, String>,
}

/// The location of a table.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) location: Location,
    pub(super) table: String,
    /// Whether the run may delete in it.
    pub(super) is_ours: bool,
}

/// Locations of tables by their canonical spelling.
#[derive(Debug, Default)]
pub(super) struct Places {
    by_location: BTreeMap<String, Place>,
}

impl Core {
    /// Everything that stands on any branch of any database of the store, or can still be read.
    pub(super) async fn holdings(&self) -> Result<Holdings, CatalogError> {
        let mut holdings = Holdings::default();
        for row in self.database_rows(None).await? {
            holdings.add(row.id, row.parent, self.standing_pointers(row.id).await?);
            // What ended is read last: a pointer that ends in between is seen in one of the two.
            holdings.add(row.id, row.parent, self.ended_pointers(row.id).await?);
            if !holdings.catalogs.contains_key(&row.parent)
                && let Some((name, body)) = self.container(row.parent).await?
            {
                let body: CatalogBody = body::read(&body)?;
                if let Ok(settings) = StorageSettings::from_properties(&body.properties) {
                    let settings = Arc::new(settings);
                    let reached = Reached {
                        name,
                        body,
                        settings,
                    };
                    holdings.catalogs.insert(row.parent, reached);
                }
            }
            if let Some((name, _)) = self.container(row.id).await? {
                holdings.databases.insert(row.id, name);
            }
        }
        Ok(holdings)
    }

    /// The name and entry of a container that stands.
    async fn container(
        &self,
        partition: PartitionId,
    ) -> Result<Option<(String, Entry)>, CatalogError> {
        let read = Read::Container(partition);
        let Some(Answer::Entries(entries)) = self.partitions.read(&[read]).await?.pop() else {
            return Ok(None);
        };
        let found = entries.into_iter().next();
        Ok(found.map(|(key, entry)| (key.name, entry)))
    }
}

impl Holdings {
    fn add(&mut self, database: PartitionId, catalog: PartitionId, held: Vec<Held>) {
        self.kept.extend(held.into_iter().map(|held| Kept {
            held,
            database,
            catalog,
        }));
    }

    /// `catalog.database.table`, as far as the names are known.
    pub(super) fn label(&self, kept: &Kept) -> String {
        let catalog = self.catalogs.get(&kept.catalog);
        let catalog = catalog.map_or("?", |reached| reached.name.as_str());
        let database = self.databases.get(&kept.database);
        let database = database.map_or("?", String::as_str);
        let mut label = format!("{catalog}.{database}");
        for level in kept.held.key.scope.split(LEVEL_SEPARATOR) {
            if !level.is_empty() {
                label.push('/');
                label.push_str(level);
            }
        }
        format!("{label}.{}", kept.held.key.name)
    }

    /// The places of all tables. A place is the run's if all tables in it are.
    pub(super) fn places(&self, is_in_scope: impl Fn(&Kept) -> bool) -> Places {
        let mut places = Places::default();
        for kept in &self.kept {
            let text = &kept.held.pointer.location;
            let Ok(location) = Location::parse(text) else {
                continue;
            };
            let is_allowed = self.catalogs.get(&kept.catalog).is_some_and(|reached| {
                location::allowed_for_table(&reached.body, "location", text).is_ok()
            });
            let is_ours = is_allowed && is_in_scope(kept);
            let place = places.by_location.entry(location.canonical());
            let place = place.or_insert_with(|| Place {
                location,
                table: self.label(kept),
                is_ours: true,
            });
            place.is_ours &= is_ours;
        }
        places
    }
}

impl Places {
    /// The place that a file belongs to: the innermost one that it lies in.
    pub(super) fn of(&self, canonical: &str) -> Option<&Place> {
        let mut folder = canonical;
        while let Some((above, _)) = folder.rsplit_once('/') {
            if let Some(place) = self.by_location.get(above) {
                return Some(place);
            }
            folder = above;
        }
        None
    }

    /// The run's places that lie in no other of the run's.
    pub(super) fn outermost(&self) -> Vec<Place> {
        let ours = self.by_location.iter().filter(|(_, place)| place.is_ours);
        let outermost = ours.filter(|(canonical, _)| {
            let mut folder = canonical.as_str();
            while let Some((above, _)) = folder.rsplit_once('/') {
                if self
                    .by_location
                    .get(above)
                    .is_some_and(|place| place.is_ours)
                {
                    return false;
                }
                folder = above;
            }
            true
        });
        outermost.map(|(_, place)| place.clone()).collect()
    }
}
