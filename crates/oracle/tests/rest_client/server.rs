//! A server in this process that listens, and the client on it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_catalog::{
    Caller, Catalog as Service, Committed, Document, Identifier, Limits, Namespace, NewCatalog,
    NewTable, Pointer, PointerKind, TableChange, Warehouse,
};
use anabranch_files::{Files, FilesOptions};
use anabranch_http::{RequestLimits, ServeLimits, Shapes, Stack, serve};
use anabranch_partition::{Config, Partitions};
use anabranch_rest_iceberg::{BASE, Errors, Settings, router};
use anabranch_store::testing::sqlite_store;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use iceberg::io::LocalFsStorageFactory;
use iceberg::spec::{NestedField, PrimitiveType, Schema, Type};
use iceberg::table::Table;
use iceberg::{
    Catalog, CatalogBuilder, Error, ErrorKind, NamespaceIdent, TableCreation, TableIdent,
};
use iceberg_catalog_rest::{RestCatalog, RestCatalogBuilder};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::normal::normalise;

/// A server on a store and a warehouse in a folder; all of it ends with [`Server::audited`], or with the test.
pub struct Server {
    pub service: Service,
    pub client: RestCatalog,
    address: String,
    rivals: Rivals,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<bool>,
    folder: TempDir,
}

/// What others do, each while a commit of the client is on its way.
#[derive(Clone)]
struct Rivals {
    service: Service,
    waiting: Arc<Mutex<VecDeque<Rival>>>,
}

enum Rival {
    Commits(TableChange),
    Replaces(Identifier),
}

impl Rivals {
    async fn commit(&self, change: TableChange) {
        let committed = self.service.commit_table(&test(), &lake(), change).await;
        committed.expect("the rival's commit");
    }

    async fn replace(&self, identifier: Identifier) {
        let (caller, lake, kind) = (test(), lake(), PointerKind::Table);
        let dropped = self
            .service
            .drop_pointer(&caller, &lake, &identifier, kind, false)
            .await;
        dropped.expect("the rival's drop");
        let schema = serde_json::to_value(schema()).unwrap();
        let new = NewTable {
            identifier,
            location: None,
            schema: serde_json::from_value(schema).unwrap(),
            partition_spec: None,
            write_order: None,
            properties: Default::default(),
        };
        let created = self.service.create_table(&caller, &lake, new).await;
        created.expect("the rival's table");
    }
}

impl Server {
    pub async fn start() -> Server {
        Server::with_limits(Limits::default()).await
    }

    pub async fn with_limits(limits: Limits) -> Server {
        let folder = tempfile::tempdir().expect("a folder");
        let service = service(&folder, limits).await;
        let rivals = Rivals {
            service: service.clone(),
            waiting: Arc::default(),
        };
        let routes = router(service.clone(), Settings::default())
            .layer(from_fn_with_state(rivals.clone(), let_rivals_in));
        let shapes = Shapes::new(Errors).under(BASE, Errors);
        let stack = Stack::new(shapes, RequestLimits::default());
        let routes = stack.around(Router::new().nest(BASE, routes));

        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            // Sent, or gone with the test.
            let _ = stopped.await;
        };
        let serving = tokio::spawn(serve(listener, routes, ServeLimits::default(), stopped));
        let address = format!("http://{address}{BASE}");
        Server {
            service,
            client: connect(&address, "lake").await,
            address,
            rivals,
            stop,
            serving,
            folder,
        }
    }

    /// One more client, which shares nothing with the others.
    pub async fn connect(&self, warehouse: &str) -> RestCatalog {
        connect(&self.address, warehouse).await
    }

    /// Where a file of the test's own may lie.
    pub fn file(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    pub async fn namespace(&self, levels: &[&str]) -> NamespaceIdent {
        let namespace = NamespaceIdent::from_strs(levels).unwrap();
        let created = self.client.create_namespace(&namespace, HashMap::new());
        created.await.unwrap();
        namespace
    }

    /// Creates a table with this schema in a namespace that is there.
    pub async fn table(&self, namespace: &NamespaceIdent, name: &str) -> Table {
        let created = self.client.create_table(namespace, creation(name));
        created.await.unwrap()
    }

    /// Creates a table as other clients do.
    pub async fn create_here(&self, new: NewTable) -> Committed {
        let created = self.service.create_table(&test(), &lake(), new).await;
        created.unwrap()
    }

    /// Commits to a table as other clients do.
    pub async fn commit_here(&self, identifier: &TableIdent, updates: Value) -> Committed {
        let change = change(identifier, updates);
        let committed = self.service.commit_table(&test(), &lake(), change).await;
        committed.unwrap()
    }

    /// Before the client's next commit arrives, somebody else makes this one.
    pub fn let_win(&self, identifier: &TableIdent, updates: Value) {
        self.expect_rival(Rival::Commits(change(identifier, updates)));
    }

    /// Before the client's next commit arrives, somebody else drops its table and creates another of the name.
    pub fn let_replace(&self, identifier: &TableIdent) {
        self.expect_rival(Rival::Replaces(here(identifier)));
    }

    fn expect_rival(&self, rival: Rival) {
        self.rivals.waiting.lock().unwrap().push_back(rival);
    }

    pub async fn held(&self, identifier: &TableIdent) -> (Pointer, Arc<Document>) {
        let pointer = self
            .service
            .pointer(&lake(), &here(identifier), PointerKind::Table)
            .await
            .unwrap();
        let document = self.service.document(&pointer).await.unwrap();
        (pointer, document)
    }

    /// The metadata document that the service holds, as the bytes say it.
    pub async fn held_document(&self, identifier: &TableIdent) -> Value {
        let (_, document) = self.held(identifier).await;
        serde_json::from_slice(document.bytes()).unwrap()
    }

    /// What an operation gave to the client, what the client loads, what the service holds and what lies in the
    /// file are all the same.
    pub async fn assert_held(&self, table: &Table) {
        let loaded = self.client.load_table(table.identifier()).await.unwrap();
        assert_eq!(loaded.metadata(), table.metadata());
        assert_eq!(loaded.metadata_location(), table.metadata_location());

        let (pointer, document) = self.held(table.identifier()).await;
        assert_eq!(
            table.metadata_location(),
            Some(pointer.metadata_location.as_str())
        );
        let held: Value = serde_json::from_slice(document.bytes()).unwrap();
        let seen = serde_json::to_value(table.metadata()).unwrap();
        assert_eq!(normalise(&seen), normalise(&held));
        assert_eq!(seen["last-updated-ms"], held["last-updated-ms"]);

        let file = table.file_io().new_input(&pointer.metadata_location);
        let bytes = file.unwrap().read().await.unwrap();
        assert_eq!(&bytes, document.bytes());
    }

    /// The store breaks none of its invariants, no file is missing, and the server ends.
    pub async fn audited(self) {
        let violations = self.service.doctor(true).await.expect("an audit");
        assert!(violations.is_empty(), "{violations:?}");
        let waiting = self.rivals.waiting.lock().unwrap().len();
        assert_eq!(waiting, 0, "rivals that found no commit to beat");
        self.stop.send(()).expect("the server runs");
        assert!(self.serving.await.expect("the server ends in order"));
    }
}

async fn service(folder: &TempDir, limits: Limits) -> Service {
    let store = sqlite_store(folder.path()).expect("a store");
    let partitions = Partitions::new(store, Config::default());
    let files = Files::new(FilesOptions::default());
    let service = Service::new(partitions, files, limits);
    let new = NewCatalog {
        warehouse: lake(),
        location: format!("file://{}/warehouse", folder.path().display()),
        properties: Default::default(),
    };
    service.ensure_catalog(&test(), &new).await.expect("lake");
    service
}

async fn connect(address: &str, warehouse: &str) -> RestCatalog {
    let properties = [("uri", address), ("warehouse", warehouse)];
    let properties = properties.map(|(key, value)| (key.to_owned(), value.to_owned()));
    RestCatalogBuilder::default()
        .with_storage_factory(Arc::new(LocalFsStorageFactory))
        .load("rest", HashMap::from(properties))
        .await
        .unwrap()
}

async fn let_rivals_in(State(rivals): State<Rivals>, request: Request, next: Next) -> Response {
    let is_commit = request.method() == Method::POST && request.uri().path().contains("/tables/");
    if is_commit {
        let rival = rivals.waiting.lock().unwrap().pop_front();
        match rival {
            Some(Rival::Commits(change)) => rivals.commit(change).await,
            Some(Rival::Replaces(identifier)) => rivals.replace(identifier).await,
            None => {}
        }
    }
    next.run(request).await
}

pub fn lake() -> Warehouse {
    Warehouse::parse("lake").unwrap()
}

/// Who calls the service beside the client.
fn test() -> Caller {
    Caller {
        principal: "test".to_owned(),
        idempotency_key: None,
        fingerprint: String::new(),
        patience: Duration::from_secs(30),
    }
}

fn change(identifier: &TableIdent, updates: Value) -> TableChange {
    TableChange {
        identifier: here(identifier),
        requirements: Vec::new(),
        updates: serde_json::from_value(updates).unwrap(),
    }
}

/// A name of the client's as the service has it.
pub fn here(identifier: &TableIdent) -> Identifier {
    let namespace = Namespace::new(identifier.namespace().clone().inner()).unwrap();
    Identifier::new(namespace, identifier.name().to_owned()).unwrap()
}

pub fn named(namespace: &NamespaceIdent, name: &str) -> TableIdent {
    TableIdent::new(namespace.clone(), name.to_owned())
}

pub fn schema() -> Schema {
    let long = Type::Primitive(PrimitiveType::Long);
    let text = Type::Primitive(PrimitiveType::String);
    Schema::builder()
        .with_fields([
            NestedField::required(1, "id", long).into(),
            NestedField::optional(2, "text", text).into(),
        ])
        .build()
        .unwrap()
}

pub fn creation(name: &str) -> TableCreation {
    TableCreation::builder()
        .name(name.to_owned())
        .schema(schema())
        .build()
}

#[track_caller]
pub fn refused<T>(outcome: Result<T, Error>, kind: ErrorKind) -> Error {
    let Err(error) = outcome else {
        panic!("not refused, though it should be: {kind}");
    };
    assert_eq!(error.kind(), kind, "{error}");
    error
}

/// Refused in the server's own words, which this client has no kind for.
#[track_caller]
pub fn refused_as<T>(outcome: Result<T, Error>, status: u16, kind: &str) {
    let text = refused(outcome, ErrorKind::Unexpected).to_string();
    assert!(text.contains(&format!("status: {status}")), "{text}");
    assert!(text.contains(&format!("\"{kind}\"")), "{text}");
}
