//! Servers over one store, each with an executor, caches and faults of its own, and the clients'
//! side of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_catalog::{Catalog, Limits, Warehouse};
use anabranch_files::{Files, FilesOptions};
use anabranch_partition::{Config, Cursor, Partitions, RunError};
use anabranch_store::fault::{FaultStore, Faults};
use anabranch_store::{Change, PartitionId};
use uuid::Uuid;

use crate::record::{Answer, Record, Request, SeenTable, Sending};
use crate::run::Stores;
use crate::words::{Command, Name, Step};

pub struct Server {
    pub catalog: Catalog,
    pub faults: Faults,
}

/// The consumer of the feed, between two pages: its cursor is all that it remembers.
#[derive(Default)]
pub struct Consumer {
    pub cursor: Option<String>,
    pub read: Vec<Change>,
}

pub struct World {
    pub servers: Vec<Server>,
    pub metalake: String,
    pub metalake_id: PartitionId,
    pub consumer: tokio::sync::Mutex<Consumer>,
    folder: PathBuf,
    time: AtomicU64,
    record: Mutex<Record>,
    /// What any client saw last of each table.
    seen: Mutex<BTreeMap<Name, SeenTable>>,
}

/// Caches on, off, and too small; patient and impatient about lost COMMIT answers.
fn configs(caches: bool) -> [Config; 3] {
    let config = |cached_rows: usize, resolve_for: Duration| Config {
        cached_rows: if caches { cached_rows } else { 0 },
        resolve_for,
        ..Config::default()
    };
    let patient = Duration::from_secs(10);
    [
        config(50_000, patient),
        config(0, patient),
        config(4, Duration::ZERO),
    ]
}

impl World {
    /// Servers over one store, in a metalake of the run's own.
    pub async fn new(stores: &Stores, folder: &Path, caches: bool) -> World {
        let servers: Vec<Server> = configs(caches)
            .into_iter()
            .map(|config| {
                let faults = Faults::new();
                let faulty = FaultStore::new(stores.served(), faults.clone());
                let partitions = Partitions::new(Arc::new(faulty), config);
                let files = Files::new(FilesOptions::default());
                Server {
                    catalog: Catalog::new(partitions, files, Limits::default()),
                    faults,
                }
            })
            .collect();
        let metalake = format!("m{}", Uuid::new_v4().simple());
        let caller = crate::support::caller();
        let created = servers[0].catalog.create_metalake(&caller, &metalake);
        created.await.unwrap();
        let path = anabranch_store::Path {
            metalake: metalake.clone(),
            catalog: None,
            database: None,
            leaf: None,
        };
        let resolved = stores.store.resolve(&[path]).await.unwrap();
        let entry = resolved[0].metalake.as_ref().unwrap();
        World {
            metalake_id: PartitionId(entry.object.0),
            folder: folder.join(&metalake),
            servers,
            metalake,
            consumer: tokio::sync::Mutex::default(),
            time: AtomicU64::new(0),
            record: Mutex::default(),
            seen: Mutex::default(),
        }
    }

    pub fn warehouse(&self, catalog: &str) -> Warehouse {
        Warehouse {
            reference: None,
            metalake: self.metalake.clone(),
            catalog: catalog.to_owned(),
        }
    }

    pub fn location(&self, catalog: &str) -> String {
        format!("file://{}/{catalog}", self.folder.display())
    }

    pub fn record(&self) -> Record {
        self.record.lock().unwrap().clone()
    }

    pub fn saw(&self, name: &Name) -> Option<SeenTable> {
        self.seen.lock().unwrap().get(name).cloned()
    }

    fn remember(&self, request: &Request, answer: &Answer) {
        let catalog = match &request.step.command {
            Command::CreateTable(name)
            | Command::CreateStaged(name, _)
            | Command::LoadTable(name) => name.place.catalog,
            Command::Commit(catalog, _) => catalog,
            _ => return,
        };
        let mut seen = self.seen.lock().unwrap();
        for table in answer.tables() {
            seen.insert(crate::client::name_of(catalog, table), table.clone());
        }
    }

    /// Sends the request of a step to a server, and notes what is answered.
    pub async fn send(&self, step: &Step, server: usize) -> Answer {
        let request = {
            let mut record = self.record.lock().unwrap();
            let known = record.requests.get(&step.id).cloned();
            let request = known.unwrap_or_else(|| crate::client::say(self, step));
            record.requests.insert(step.id, request.clone());
            request
        };
        let called = self.tick();
        let answer = crate::client::ask(self, &request, server).await;
        self.remember(&request, &answer);
        let answered = self.tick();
        self.record.lock().unwrap().sendings.push(Sending {
            step: step.id,
            server,
            called,
            answered,
            answer: answer.clone(),
        });
        answer
    }

    fn tick(&self) -> u64 {
        self.time.fetch_add(1, Ordering::SeqCst)
    }

    /// The next page of the feed for the consumer, who remembers nothing but its cursor.
    pub async fn follow(&self, partitions: &Partitions, limit: u32) -> Result<usize, RunError> {
        let mut consumer = self.consumer.lock().await;
        let cursor = consumer
            .cursor
            .as_deref()
            .map(|text| Cursor::decode(text).unwrap());
        let below = Some(self.metalake_id);
        let page = partitions
            .feed(below, cursor.as_ref(), limit, Duration::ZERO)
            .await?;
        consumer.cursor = Some(page.next.encode());
        let count = page.changes.len();
        consumer.read.extend(page.changes);
        Ok(count)
    }
}
