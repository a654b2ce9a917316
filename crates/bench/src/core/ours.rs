//! Our side: commands through the group commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_partition::{
    Command, Config, Context, OperationKey, Partitions, Request, Stop, View,
};
use anabranch_store::{
    BranchId, Class, Key, Kind, Leaf, ObjectId, PartitionId, PartitionKind, Path, Read, Store,
};
use uuid::Uuid;

use super::proxy::Proxy;
use super::{CALLERS, Rate, drive};
use crate::failure::Failure;

const PATIENCE: Duration = Duration::from_secs(60);

/// Makes the containers and tables to commit to.
struct Found {
    partitions: [PartitionId; 3],
    name: String,
}

impl Command for Found {
    type Outcome = ();

    fn name(&self) -> &'static str {
        "found"
    }

    fn reads(&self) -> Vec<Read> {
        Vec::new()
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<(), Stop> {
        let kinds = [Kind::Metalake, Kind::Catalog, Kind::Namespace];
        let mut parent = PartitionId::ROOT;
        for (partition, kind) in self.partitions.into_iter().zip(kinds) {
            view.create_partition(partition, parent);
            let key = key(parent, Class::Container, &self.name);
            view.put(key, kind, partition.into(), "{}".into())?;
            parent = partition;
        }
        Ok(())
    }
}

fn key(partition: PartitionId, class: Class, name: &str) -> Key {
    Key {
        partition,
        branch: BranchId::MAIN,
        scope: String::new(),
        class,
        name: name.to_owned(),
    }
}

/// Reads a row and writes its new version, as a table commit does.
struct Commit {
    table: Key,
    object: ObjectId,
    number: u64,
}

impl Command for Commit {
    type Outcome = i64;

    fn name(&self) -> &'static str {
        "commit"
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.table.clone())]
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<i64, Stop> {
        let body = super::body(self.number);
        let entry = view.put(
            self.table.clone(),
            Kind::IcebergTable,
            self.object,
            body.into(),
        )?;
        Ok(entry.version)
    }
}

pub struct Ours {
    partitions: Partitions,
    name: String,
    database: PartitionId,
    tables: Vec<(Key, ObjectId)>,
    number: AtomicU64,
}

impl Ours {
    pub async fn new(store: Arc<dyn Store>) -> Result<Ours, Failure> {
        let random = || Uuid::new_v4().as_u64_pair().0;
        let kinds = [
            PartitionKind::Metalake,
            PartitionKind::Catalog,
            PartitionKind::Database,
        ];
        let ids = kinds.map(|kind| PartitionId::new(kind, random()));
        let name = format!("bench-{}", Uuid::new_v4().simple());
        let database = ids[2];
        let tables = (0..CALLERS)
            .map(|caller| {
                let name = super::table_name(caller);
                (key(database, Class::Table, &name), ObjectId::new(random()))
            })
            .collect();
        let ours = Ours {
            partitions: Partitions::new(store, Config::default()),
            name: name.clone(),
            database,
            tables,
            number: AtomicU64::new(0),
        };
        let found = Found {
            partitions: ids,
            name,
        };
        ours.partitions
            .run(ours.request(vec![PartitionId::ROOT], found))
            .await?;
        for caller in 0..CALLERS {
            ours.commit(caller).await?;
        }
        Ok(ours)
    }

    pub fn is_embedded(&self) -> bool {
        self.partitions.store().is_serial()
    }

    fn request<C>(&self, partitions: Vec<PartitionId>, command: C) -> Request<C> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        Request {
            command,
            partitions,
            principal: "bench".to_owned(),
            operation: Some(OperationKey {
                key: format!("{}-{number}", self.name),
                fingerprint: super::FINGERPRINT.to_owned(),
            }),
            patience: PATIENCE,
        }
    }

    async fn commit(&self, caller: usize) -> Result<(), Failure> {
        let (table, object) = self.tables[caller].clone();
        let commit = Commit {
            table,
            object,
            number: self.number.load(Ordering::Relaxed),
        };
        let request = self.request(vec![self.database], commit);
        self.partitions.run(request).await?;
        Ok(())
    }

    pub async fn commit_for(&self, callers: usize, turn: Duration) -> Result<Rate, Failure> {
        drive(callers, turn, async |caller| self.commit(caller).await).await
    }

    /// Statements of each commit of a round in which so many callers commit at once, when the
    /// engine had time to gather them.
    pub async fn statements_of_commits(&self, callers: usize) -> Result<f64, Failure> {
        const ROUNDS: usize = 20;
        let store = self.partitions.store();
        let before = store.statements();
        for _ in 0..ROUNDS {
            let runs = (0..callers).map(|caller| self.commit(caller));
            futures::future::try_join_all(runs).await?;
        }
        Ok((store.statements() - before) as f64 / (ROUNDS * callers) as f64)
    }

    pub async fn statements_of_a_load(&self) -> Result<f64, Failure> {
        const LOADS: usize = 20;
        let path = Path {
            metalake: self.name.clone(),
            catalog: Some(self.name.clone()),
            database: Some(self.name.clone()),
            leaf: Some(Leaf {
                scope: String::new(),
                class: Class::Table,
                name: super::table_name(0),
            }),
        };
        let store = self.partitions.store();
        let before = store.statements();
        for _ in 0..LOADS {
            let found = self.partitions.resolve(std::slice::from_ref(&path)).await?;
            if found.first().is_none_or(|found| found.leaf.is_none()) {
                return Err(Failure::told("the table isn't found"));
            }
        }
        Ok((store.statements() - before) as f64 / LOADS as f64)
    }

    /// Round trips of one commit, through a proxy that is far away.
    pub async fn round_trips(&self, proxy: &Proxy) -> Result<f64, Failure> {
        const COMMITS: usize = 10;
        self.commit(0).await?;
        let before = proxy.round_trips();
        for _ in 0..COMMITS {
            self.commit(0).await?;
        }
        Ok((proxy.round_trips() - before) as f64 / COMMITS as f64)
    }
}
