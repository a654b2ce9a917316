//! Fills a store through the core's commands: rows like those of a table and a namespace that the
//! server made, as many as wanted, in a few large commits.

use std::sync::Arc;
use std::time::Duration;

use anabranch_partition::{Command, Config, Context, Partitions, Request, Stop, View};
use anabranch_store::{
    BranchId, Class, Entry, Key, Leaf, ObjectId, PartitionId, PartitionKind, Path, Read,
};
use uuid::Uuid;

use crate::database;
use crate::failure::Failure;
use crate::table::progress;

const METALAKE: &str = "default";
const CATALOG: &str = "lake";
const PER_COMMIT: usize = 2000;
const PATIENCE: Duration = Duration::from_secs(120);

/// What a store is filled with.
pub struct Fill {
    pub store: String,
    pub namespace: &'static str,
    /// The table that the others are like.
    pub template: &'static str,
    pub tables: usize,
    pub namespaces: usize,
}

/// The name of a table that was filled in.
pub fn table(number: usize) -> String {
    format!("table_{number:06}")
}

/// The name of a namespace that was filled in.
pub fn namespace(number: usize) -> String {
    format!("namespace_{number:06}")
}

/// Copies of one row.
struct Copies {
    partition: PartitionId,
    class: Class,
    names: Vec<(String, u64)>,
    like: Entry,
}

impl Copies {
    fn key(&self, name: &str) -> Key {
        Key {
            partition: self.partition,
            branch: BranchId::MAIN,
            scope: String::new(),
            class: self.class,
            name: name.to_owned(),
        }
    }
}

impl Command for Copies {
    type Outcome = ();

    fn name(&self) -> &'static str {
        "copies"
    }

    fn reads(&self) -> Vec<Read> {
        self.names
            .iter()
            .map(|(name, _)| Read::Point(self.key(name)))
            .collect()
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<(), Stop> {
        for (name, random) in &self.names {
            let object = match self.class {
                Class::Container => {
                    let partition = PartitionId::new(PartitionKind::Database, *random);
                    view.create_partition(partition, self.partition);
                    partition.into()
                }
                _ => ObjectId::new(*random),
            };
            view.put(
                self.key(name),
                self.like.kind,
                object,
                self.like.body.clone(),
            )?;
        }
        Ok(())
    }
}

impl Fill {
    pub async fn run(&self) -> Result<(), Failure> {
        let store = database::open(&self.store, 4).await?;
        let config = Config {
            cached_rows: 0,
            ..Config::default()
        };
        let partitions = Partitions::new(Arc::clone(&store), config);
        let path = Path {
            metalake: METALAKE.to_owned(),
            catalog: Some(CATALOG.to_owned()),
            database: Some(self.namespace.to_owned()),
            leaf: Some(Leaf {
                scope: String::new(),
                class: Class::Table,
                name: self.template.to_owned(),
            }),
        };
        let found = partitions.resolve(&[path]).await?.pop().unwrap_or_default();
        let (Some(catalog), Some(database), Some(table)) =
            (found.catalog, found.database, found.leaf)
        else {
            return Err(Failure::told("the rows to copy aren't there"));
        };
        let tables = PartitionId(database.object.0);
        let namespaces = PartitionId(catalog.object.0);
        for (partition, class, size, name, like) in [
            (
                tables,
                Class::Table,
                self.tables,
                self::table as fn(usize) -> String,
                &table,
            ),
            (
                namespaces,
                Class::Container,
                self.namespaces,
                namespace,
                &database,
            ),
        ] {
            for first in (0..size).step_by(PER_COMMIT) {
                let numbers = first..size.min(first + PER_COMMIT);
                let command = Copies {
                    partition,
                    class,
                    names: numbers.map(|number| (name(number), random())).collect(),
                    like: like.clone(),
                };
                let request = Request {
                    command,
                    partitions: vec![partition],
                    principal: "bench".to_owned(),
                    operation: None,
                    patience: PATIENCE,
                };
                partitions.run(request).await?;
                if first > 0 && first % 20_000 == 0 {
                    progress(&format!("{first} of {size}"));
                }
            }
        }
        Ok(())
    }
}

fn random() -> u64 {
    Uuid::new_v4().as_u64_pair().0
}
