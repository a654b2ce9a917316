//! Servers over one store and one warehouse folder, with faults of their own.
#![allow(dead_code, clippy::unwrap_used)]

pub mod manifests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anabranch_catalog::{
    Caller, Catalog, CatalogError, Committed, Identifier, Limits, Namespace, NewCatalog, NewTable,
    PointerKind, TableChange, Warehouse,
};
use anabranch_files::{Files, FilesOptions};
use anabranch_iceberg::{Schema, TableRequirement, TableUpdate};
use anabranch_partition::{Config, Partitions, Reason};
use anabranch_store::Store;
use anabranch_store::fault::{FaultStore, Faults};
use serde_json::json;

pub struct Server {
    pub catalog: Catalog,
    pub faults: Faults,
    pub file_faults: anabranch_files::Faults,
    pub lake: Warehouse,
    folder: PathBuf,
}

impl Server {
    pub fn over(store: &Arc<dyn Store>, folder: &Path) -> Server {
        Server::with(store, folder, Limits::default())
    }

    pub fn with(store: &Arc<dyn Store>, folder: &Path, limits: Limits) -> Server {
        let faults = Faults::new();
        let faulty = Arc::new(FaultStore::new(store.clone(), faults.clone()));
        let file_faults = anabranch_files::Faults::new();
        let files = Files::new(FilesOptions::default()).with_faults(file_faults.clone());
        let config = Config {
            resolve_for: Duration::from_secs(2),
            ..Config::default()
        };
        let partitions = Partitions::new(faulty, config);
        Server {
            catalog: Catalog::new(partitions, files, limits),
            faults,
            file_faults,
            lake: Warehouse::parse("lake").unwrap(),
            folder: folder.to_owned(),
        }
    }

    pub fn location(&self) -> String {
        format!("file://{}/warehouse", self.folder.display())
    }

    /// The metalake `default`, the catalog `lake` and the database `db`.
    pub async fn begin(&self) {
        let new = NewCatalog {
            warehouse: self.lake.clone(),
            location: self.location(),
            properties: BTreeMap::new(),
        };
        self.catalog.ensure_catalog(&caller(), &new).await.unwrap();
        self.namespace(&["db"]).await.unwrap();
    }

    pub async fn namespace(&self, levels: &[&str]) -> Result<(), CatalogError> {
        let created = self
            .catalog
            .create_namespace(&caller(), &self.lake, &namespace(levels), BTreeMap::new())
            .await;
        created.map(|_| ())
    }

    pub async fn drop_namespace(&self, levels: &[&str]) -> Result<(), CatalogError> {
        let dropped = self
            .catalog
            .drop_namespace(&caller(), &self.lake, &namespace(levels))
            .await;
        dropped.map(|_| ())
    }

    pub async fn create(&self, name: &str) -> Result<Committed, CatalogError> {
        self.create_in(&["db"], name).await
    }

    pub async fn create_in(&self, levels: &[&str], name: &str) -> Result<Committed, CatalogError> {
        let new = new_table(table(levels, name));
        self.catalog.create_table(&caller(), &self.lake, new).await
    }

    pub async fn drop_table(&self, name: &str, purge: bool) -> Result<(), CatalogError> {
        let at = table(&["db"], name);
        let kind = PointerKind::Table;
        let dropped = self
            .catalog
            .drop_pointer(&caller(), &self.lake, &at, kind, purge)
            .await;
        dropped.map(|_| ())
    }

    pub async fn rename(&self, from: &str, to: &str) -> Result<(), CatalogError> {
        let (from, to) = (table(&["db"], from), table(&["db"], to));
        let kind = PointerKind::Table;
        let renamed = self
            .catalog
            .rename_pointer(&caller(), &self.lake, kind, &from, &to)
            .await;
        renamed.map(|_| ())
    }

    pub async fn commit(
        &self,
        caller: &Caller,
        change: TableChange,
    ) -> Result<Committed, CatalogError> {
        self.catalog.commit_table(caller, &self.lake, change).await
    }

    /// Sets one property of a table, without any requirement.
    pub async fn set(&self, name: &str, key: &str, value: &str) -> Result<Committed, CatalogError> {
        self.commit(&caller(), set_property(name, key, value)).await
    }

    pub async fn properties(&self, name: &str) -> BTreeMap<String, String> {
        let at = table(&["db"], name);
        let kind = PointerKind::Table;
        let pointer = self.catalog.pointer(&self.lake, &at, kind).await.unwrap();
        let document = self.catalog.document(&pointer).await.unwrap();
        document.table().unwrap().properties().clone()
    }

    pub async fn snapshots(&self, name: &str) -> Vec<i64> {
        let at = table(&["db"], name);
        let kind = PointerKind::Table;
        let pointer = self.catalog.pointer(&self.lake, &at, kind).await.unwrap();
        let document = self.catalog.document(&pointer).await.unwrap();
        let metadata = document.table().unwrap();
        metadata.snapshots().map(|one| one.snapshot_id()).collect()
    }

    pub async fn healthy(&self) {
        assert_eq!(self.catalog.doctor(true).await.unwrap(), []);
    }

    /// Metadata files of ours anywhere in the warehouse.
    pub fn metadata_files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.join("warehouse")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.to_string_lossy().ends_with(".metadata.json") {
                    found.push(path);
                }
            }
        }
        found
    }
}

pub fn caller() -> Caller {
    request("anything")
}

/// A caller whose request says these words.
pub fn request(words: &str) -> Caller {
    Caller {
        principal: "tester".to_owned(),
        idempotency_key: None,
        fingerprint: words.to_owned(),
        patience: Duration::from_secs(30),
    }
}

pub fn namespace(levels: &[&str]) -> Namespace {
    let levels = levels.iter().map(|level| (*level).to_owned()).collect();
    Namespace::new(levels).unwrap()
}

pub fn table(levels: &[&str], name: &str) -> Identifier {
    Identifier::new(namespace(levels), name.to_owned()).unwrap()
}

pub fn new_table(identifier: Identifier) -> NewTable {
    let schema = json!({
        "type": "struct",
        "schema-id": 0,
        "fields": [{"id": 1, "name": "x", "required": false, "type": "long"}]
    });
    NewTable {
        identifier,
        location: None,
        schema: serde_json::from_value::<Schema>(schema).unwrap(),
        partition_spec: None,
        write_order: None,
        properties: BTreeMap::new(),
    }
}

pub fn set_property(name: &str, key: &str, value: &str) -> TableChange {
    TableChange {
        identifier: table(&["db"], name),
        requirements: Vec::new(),
        updates: vec![update(
            json!({"action": "set-properties", "updates": {key: value}}),
        )],
    }
}

/// Adds a snapshot to main, as a writer that saw `parent` does.
pub fn append(name: &str, snapshot: i64, parent: Option<i64>, sequence: i64) -> TableChange {
    let mut added = json!({
        "snapshot-id": snapshot,
        "sequence-number": sequence,
        "timestamp-ms": 1_800_000_000_000_i64 + sequence,
        "manifest-list": format!("file:///nowhere/{snapshot}.avro"),
        "summary": {"operation": "append"},
        "schema-id": 0
    });
    if let Some(parent) = parent {
        added["parent-snapshot-id"] = json!(parent);
    }
    TableChange {
        identifier: table(&["db"], name),
        requirements: vec![requirement(json!({
            "type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent
        }))],
        updates: vec![
            update(json!({"action": "add-snapshot", "snapshot": added})),
            update(json!({
                "action": "set-snapshot-ref", "ref-name": "main", "type": "branch",
                "snapshot-id": snapshot
            })),
        ],
    }
}

pub fn update(value: serde_json::Value) -> TableUpdate {
    TableUpdate::from_json_value(value).unwrap()
}

pub fn requirement(value: serde_json::Value) -> TableRequirement {
    TableRequirement::from_json_value(value).unwrap()
}

pub fn reason<T: std::fmt::Debug>(result: &Result<T, CatalogError>) -> Option<Reason> {
    let error = result.as_ref().err()?;
    error.refusal().map(|refusal| refusal.reason)
}

/// Runs a scenario on a fresh store of every engine and a fresh warehouse.
#[macro_export]
macro_rules! on_every_engine {
    ($($scenario:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    let folder = tempfile::tempdir().unwrap();
                    let store = anabranch_store::testing::sqlite_store(folder.path()).unwrap();
                    super::$scenario(store, folder.path()).await;
                }
            )+
        }
        mod postgres {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    let folder = tempfile::tempdir().unwrap();
                    let mode = anabranch_store::LockMode::Pessimistic;
                    anabranch_store::testing::with_postgres_store(mode, |store| async {
                        super::$scenario(store, folder.path()).await;
                    })
                    .await;
                }
            )+
        }
        mod postgres_optimistic {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    let folder = tempfile::tempdir().unwrap();
                    let mode = anabranch_store::LockMode::Optimistic;
                    anabranch_store::testing::with_postgres_store(mode, |store| async {
                        super::$scenario(store, folder.path()).await;
                    })
                    .await;
                }
            )+
        }
    };
}
