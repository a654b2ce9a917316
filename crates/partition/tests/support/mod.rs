//! A small world of counters on a store: partitions under the root, names in them, a command that
//! puts and one that fails on purpose.
#![allow(dead_code, clippy::unwrap_used)]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use anabranch_partition::{
    Accepted, Command, Config, Context, OperationKey, Partitions, Reason, Refusal, Request,
    RunError, Stop, Subject, View,
};
use anabranch_store::fault::{FaultStore, Faults};
use anabranch_store::{
    Answer, BranchId, Class, Key, Kind, ObjectId, PartitionId, PartitionKind, Read, Revision, Store,
};

pub fn partition(number: u64) -> PartitionId {
    PartitionId::new(PartitionKind::Metalake, number)
}

pub fn key(partition: PartitionId, name: &str) -> Key {
    Key {
        partition,
        branch: BranchId::MAIN,
        scope: String::new(),
        class: Class::Table,
        name: name.to_owned(),
    }
}

/// Makes a partition with its container, as creating a metalake does.
pub struct Found(pub PartitionId);

impl Command for Found {
    type Outcome = ();

    fn name(&self) -> &'static str {
        "found"
    }

    fn reads(&self) -> Vec<Read> {
        Vec::new()
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<(), Stop> {
        view.create_partition(self.0, PartitionId::ROOT);
        let container = Key {
            class: Class::Container,
            ..key(PartitionId::ROOT, &format!("metalake-{}", self.0.0))
        };
        view.put(container, Kind::Metalake, self.0.into(), "{}".into())?;
        Ok(())
    }
}

/// Puts a name; refused if `expect_absent` and it stands.
#[derive(Clone)]
pub struct Put {
    pub at: Key,
    /// `None`: one of the key's own.
    pub object: Option<u64>,
    pub body: String,
    pub expect_absent: bool,
}

impl Command for Put {
    type Outcome = i64;

    fn name(&self) -> &'static str {
        "put"
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.at.clone())]
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<i64, Stop> {
        if self.expect_absent && view.get(&self.at)?.is_some() {
            let reason = Reason::AlreadyExists(Subject::Table);
            return Err(Refusal::new(reason, "taken").into());
        }
        let object = match self.object {
            Some(object) => ObjectId::new(object),
            None => object_named(&self.at),
        };
        let body = self.body.as_str().into();
        let entry = view.put(self.at.clone(), Kind::IcebergTable, object, body)?;
        Ok(entry.version)
    }
}

/// Adds one to the number in a body: loses an update as soon as two run on one version.
#[derive(Clone)]
pub struct Increment(pub Key);

impl Command for Increment {
    type Outcome = i64;

    fn name(&self) -> &'static str {
        "increment"
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.0.clone())]
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<i64, Stop> {
        let standing = view.get(&self.0)?;
        let (object, number) = match &standing {
            Some(entry) => (entry.object, entry.body.parse::<i64>().unwrap()),
            None => (object_named(&self.0), 0),
        };
        let body = (number + 1).to_string();
        view.put(
            self.0.clone(),
            Kind::IcebergTable,
            object,
            body.as_str().into(),
        )?;
        Ok(number + 1)
    }
}

/// An object id of its own for each key.
fn object_named(key: &Key) -> ObjectId {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    ObjectId::new(hasher.finish())
}

/// A server: an executor over a store with faults of its own.
pub struct Server {
    pub partitions: Partitions,
    pub faults: Faults,
}

impl Server {
    pub fn over(store: &Arc<dyn Store>) -> Server {
        Server::with(store, Config::default())
    }

    pub fn with(store: &Arc<dyn Store>, config: Config) -> Server {
        let faults = Faults::new();
        let faulty = Arc::new(FaultStore::new(store.clone(), faults.clone()));
        Server {
            partitions: Partitions::new(faulty, config),
            faults,
        }
    }

    pub async fn found(&self, id: PartitionId) {
        self.run(vec![PartitionId::ROOT], Found(id)).await.unwrap();
    }

    pub async fn run<C: Command>(
        &self,
        partitions: Vec<PartitionId>,
        command: C,
    ) -> Result<Accepted<C::Outcome>, RunError> {
        self.partitions
            .run(request(partitions, command, None))
            .await
    }

    pub async fn keyed<C: Command>(
        &self,
        partitions: Vec<PartitionId>,
        command: C,
        operation_key: &str,
        fingerprint: &str,
    ) -> Result<Accepted<C::Outcome>, RunError> {
        let operation = OperationKey {
            key: operation_key.to_owned(),
            fingerprint: fingerprint.to_owned(),
        };
        let request = request(partitions, command, Some(operation));
        self.partitions.run(request).await
    }

    pub async fn put(&self, at: &Key, body: &str) -> Result<Accepted<i64>, RunError> {
        let put = Put {
            at: at.clone(),
            object: None,
            body: body.to_owned(),
            expect_absent: false,
        };
        self.run(vec![at.partition], put).await
    }

    pub async fn body(&self, at: &Key) -> Option<String> {
        let read = [Read::Point(at.clone())];
        match self.partitions.read(&read).await.unwrap().pop() {
            Some(Answer::Entry(entry)) => entry.map(|entry| entry.body.to_string()),
            other => panic!("{other:?}"),
        }
    }

    pub async fn body_at(&self, at: &Key, revision: Revision) -> Result<Option<String>, RunError> {
        let read = [Read::Point(at.clone())];
        let mut answers = self
            .partitions
            .read_at(at.partition, revision, &read)
            .await?;
        match answers.pop() {
            Some(Answer::Entry(entry)) => Ok(entry.map(|entry| entry.body.to_string())),
            other => panic!("{other:?}"),
        }
    }
}

pub fn request<C>(
    partitions: Vec<PartitionId>,
    command: C,
    operation: Option<OperationKey>,
) -> Request<C> {
    Request {
        command,
        partitions,
        principal: "tester".to_owned(),
        operation,
        patience: Duration::from_secs(30),
    }
}

pub fn is_refused<T: std::fmt::Debug>(result: &Result<T, RunError>, wanted: Reason) -> bool {
    matches!(result, Err(RunError::Refused(refusal)) if refusal.reason == wanted)
}

/// Runs a scenario on a fresh store of every engine; ends with the audit.
#[macro_export]
macro_rules! on_every_engine {
    ($($scenario:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    let folder = tempfile::tempdir().unwrap();
                    let store = anabranch_store::testing::sqlite_store(folder.path()).unwrap();
                    super::$scenario(store.clone()).await;
                    assert_eq!(store.audit().await.unwrap(), []);
                }
            )+
        }
        mod postgres {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    let mode = anabranch_store::LockMode::Pessimistic;
                    anabranch_store::testing::with_postgres_store(mode, |store| async move {
                        super::$scenario(store.clone()).await;
                        assert_eq!(store.audit().await.unwrap(), []);
                    })
                    .await;
                }
            )+
        }
        mod postgres_optimistic {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    let mode = anabranch_store::LockMode::Optimistic;
                    anabranch_store::testing::with_postgres_store(mode, |store| async move {
                        super::$scenario(store.clone()).await;
                        assert_eq!(store.audit().await.unwrap(), []);
                    })
                    .await;
                }
            )+
        }
    };
}
