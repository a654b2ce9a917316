//! The catalog service in this process, on a store of its own with one database.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_catalog::reference::{MAIN, Modes, ReferenceKind, ReferenceName, named_state};
use anabranch_catalog::{
    Caller, Catalog, CatalogError, Identifier, Limits, Namespace, NewCatalog, NewMerge,
    NewReference, NewTable, Page, PointerKind, SourceReference, TableChange, Warehouse,
};
use anabranch_files::{Files, FilesOptions};
use anabranch_iceberg::TableUpdate;
use anabranch_partition::{Config, Partitions, Request};
use anabranch_store::{PartitionId, Path, Store};
use serde_json::json;
use tempfile::TempDir;

use super::change::Change;
use super::rows::Rows;
use crate::database::{self, Database};
use crate::failure::Failure;
use crate::fill::Fill;
use crate::server;

const DATABASE: &str = "db";
/// What the tables that fill the database are like. It stands behind them.
pub const TEMPLATE: &str = "template";
const CONNECTIONS: usize = 16;
const PATIENCE: Duration = Duration::from_secs(120);

/// Where stores of a measurement are made.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    Sqlite,
    /// A server, and how to lock.
    Postgres(&'a str, &'static str),
}

pub struct Lake {
    catalog: Catalog,
    warehouse: Warehouse,
    partition: PartitionId,
    store: Arc<dyn Store>,
    rows: Rows,
    number: AtomicU64,
    folder: TempDir,
    database: Option<Database>,
}

/// The database at a branch.
pub fn at_branch(name: &str) -> String {
    match name {
        MAIN => DATABASE.to_owned(),
        name => format!("{DATABASE}$branch_{name}"),
    }
}

impl Lake {
    /// A database of so many tables, besides the template.
    pub async fn fill(place: Place<'_>, tables: usize) -> Result<Lake, Failure> {
        let folder = server::folder()?;
        let file = folder.path().join("catalog.db");
        let database = match place {
            Place::Sqlite => None,
            Place::Postgres(server, _) => Some(Database::create(server).await?),
        };
        let (url, rows) = match (place, &database) {
            (Place::Postgres(_, mode), Some(database)) => (
                database.url_in_mode(mode),
                Rows::of_postgres(&database.url()).await?,
            ),
            _ => (format!("sqlite:{}", file.display()), Rows::Sqlite(file)),
        };
        let store = database::open(&url, CONNECTIONS).await?;
        let lake = Lake {
            catalog: Catalog::new(
                Partitions::new(store.clone(), Config::default()),
                Files::new(FilesOptions::default()),
                Limits::default(),
            ),
            warehouse: Warehouse::parse("lake").map_err(CatalogError::from)?,
            partition: PartitionId(0),
            store,
            rows,
            number: AtomicU64::new(0),
            folder,
            database,
        };
        let lake = lake.begin().await?;
        let fill = Fill {
            store: url,
            namespace: DATABASE,
            template: TEMPLATE,
            tables,
            namespaces: 0,
        };
        fill.run().await?;
        Ok(lake)
    }

    async fn begin(self) -> Result<Lake, Failure> {
        let warehouse = self.folder.path().join("warehouse");
        let new = NewCatalog {
            warehouse: self.warehouse.clone(),
            location: format!("file://{}", warehouse.display()),
            properties: BTreeMap::new(),
        };
        self.catalog.ensure_catalog(&caller(), &new).await?;
        let namespace = namespace(DATABASE)?;
        let who = caller();
        let made =
            self.catalog
                .create_namespace(&who, &self.warehouse, &namespace, BTreeMap::new());
        made.await?;
        self.create_table(TEMPLATE).await?;
        let path = Path {
            metalake: self.warehouse.metalake.clone(),
            catalog: Some(self.warehouse.catalog.clone()),
            database: Some(DATABASE.to_owned()),
            leaf: None,
        };
        let found = self.catalog.partitions().resolve(&[path]).await?.pop();
        let entry = found.and_then(|found| found.database);
        let entry = entry.ok_or_else(|| Failure::told("the database isn't there"))?;
        Ok(Lake {
            partition: PartitionId(entry.object.0),
            ..self
        })
    }

    pub async fn remove(self) -> Result<(), Failure> {
        drop((self.catalog, self.store, self.rows));
        if let Some(database) = self.database {
            database.remove().await?;
        }
        Ok(self.folder.close()?)
    }

    fn next(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed)
    }

    /// A name that nothing has yet.
    pub fn fresh(&self, what: &str) -> String {
        format!("{what}_{}", self.next())
    }

    pub fn statements(&self) -> u64 {
        self.store.statements()
    }

    pub async fn rows(&self) -> Result<i64, Failure> {
        self.rows.count().await
    }

    /// A table whose documents stay of one length however often it changes.
    pub async fn create_table(&self, name: &str) -> Result<(), Failure> {
        let schema = json!({
            "type": "struct",
            "schema-id": 0,
            "fields": [{"id": 1, "name": "x", "required": false, "type": "long"}]
        });
        let schema = serde_json::from_value(schema);
        let kept = ("write.metadata.previous-versions-max", "1");
        let new = NewTable {
            identifier: identifier(DATABASE, name)?,
            location: None,
            schema: schema.map_err(|error| Failure::told(error.to_string()))?,
            partition_spec: None,
            write_order: None,
            properties: BTreeMap::from([(kept.0.to_owned(), kept.1.to_owned())]),
        };
        let who = caller();
        let made = self.catalog.create_table(&who, &self.warehouse, new);
        made.await?;
        Ok(())
    }

    pub async fn make(&self, kind: ReferenceKind, name: &str, from: &str) -> Result<(), Failure> {
        let new = NewReference {
            name: reference(kind, name),
            source: of_branch(from),
            expected: None,
        };
        let who = caller();
        let made = self
            .catalog
            .create_reference(&who, &self.warehouse, DATABASE, &new);
        made.await?;
        Ok(())
    }

    pub async fn delete(&self, name: &str) -> Result<(), Failure> {
        let (who, warehouse) = (caller(), &self.warehouse);
        let deleted = self
            .catalog
            .delete_reference(&who, warehouse, DATABASE, name, None, None);
        deleted.await?;
        Ok(())
    }

    /// Gives tables of a branch another version, in one commit.
    pub async fn change(&self, branch: &str, tables: Vec<String>) -> Result<(), Failure> {
        let catalog = &self.catalog;
        let found = catalog.reference(&self.warehouse, DATABASE, branch).await?;
        let state = named_state(&found.revision);
        let state = state.ok_or_else(|| Failure::told("a revision that names no state"))?;
        let request = Request {
            command: Change {
                partition: self.partition,
                branch: state.branch,
                tables,
                number: self.next(),
            },
            partitions: vec![self.partition],
            principal: "bench".to_owned(),
            operation: None,
            patience: PATIENCE,
        };
        catalog.partitions().run(request).await?;
        Ok(())
    }

    /// Merges a branch into `main`; answers how many tables that brought.
    pub async fn merge(&self, branch: &str) -> Result<usize, Failure> {
        let new = NewMerge {
            target: MAIN.to_owned(),
            source: of_branch(branch),
            expected: None,
            modes: Modes::default(),
            dry_run: false,
        };
        let (who, warehouse) = (caller(), &self.warehouse);
        let merged = self.catalog.merge(&who, warehouse, DATABASE, &new);
        Ok(merged.await?.value.tables.len())
    }

    /// Finds where a table stands.
    pub async fn look_up(&self, database: &str, table: &str) -> Result<(), Failure> {
        let at = identifier(database, table)?;
        let found = self
            .catalog
            .pointer(&self.warehouse, &at, PointerKind::Table);
        found.await?;
        Ok(())
    }

    /// The first page of the tables.
    pub async fn page(&self, database: &str, size: u32) -> Result<usize, Failure> {
        let page = Page {
            token: Some(String::new()),
            size: Some(size),
        };
        let (warehouse, namespace) = (&self.warehouse, namespace(database)?);
        let listed = self
            .catalog
            .list_pointers(warehouse, &namespace, PointerKind::Table, &page);
        Ok(listed.await?.items.len())
    }

    /// A commit to a table, with its document.
    pub async fn commit(&self, database: &str, table: &str) -> Result<(), Failure> {
        let value = self.next().to_string();
        let update = json!({"action": "set-properties", "updates": {"changed": value}});
        let update = TableUpdate::from_json_value(update);
        let change = TableChange {
            identifier: identifier(database, table)?,
            requirements: Vec::new(),
            updates: vec![update.map_err(|error| Failure::told(error.to_string()))?],
        };
        let who = caller();
        let committed = self.catalog.commit_table(&who, &self.warehouse, change);
        committed.await?;
        Ok(())
    }
}

fn caller() -> Caller {
    Caller {
        principal: "bench".to_owned(),
        idempotency_key: None,
        fingerprint: String::new(),
        patience: PATIENCE,
    }
}

fn reference(kind: ReferenceKind, name: &str) -> ReferenceName {
    ReferenceName {
        kind,
        name: name.to_owned(),
    }
}

fn of_branch(name: &str) -> SourceReference {
    SourceReference {
        name: reference(ReferenceKind::Branch, name),
        revision: None,
    }
}

fn namespace(database: &str) -> Result<Namespace, Failure> {
    let levels = vec![database.to_owned()];
    Ok(Namespace::new(levels).map_err(CatalogError::from)?)
}

fn identifier(database: &str, table: &str) -> Result<Identifier, Failure> {
    let found = Identifier::new(namespace(database)?, table.to_owned());
    Ok(found.map_err(CatalogError::from)?)
}
