//! A server in this process.

use std::collections::BTreeMap;
use std::time::Duration;

use anabranch_catalog::{Caller, Catalog, Limits, NewCatalog, Warehouse};
use anabranch_files::{Files, FilesOptions};
use anabranch_http::{RequestLimits, Shapes, Stack};
use anabranch_partition::{Config, Partitions};
use anabranch_rest_native::Native;
use anabranch_store::testing::sqlite_store;
use axum::Router;
use axum::body::{Body, to_bytes};
use http::{HeaderMap, Method, Request};
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Where the database `training` has its references.
pub const TREES: &str = "/paimon/v1/lake/databases/training/trees";

/// A server with an empty database `training` in `lake`.
pub struct Server {
    router: Router,
    _folder: TempDir,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Answer {
    #[track_caller]
    pub fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}", self.body);
        self
    }

    /// The body is exactly this, but for what its message says.
    #[track_caller]
    pub fn refused(self, code: u16, kind: Value, name: Value) {
        self.refused_with(code, kind, name, json!({}));
    }

    /// The same with further fields.
    #[track_caller]
    pub fn refused_with(self, code: u16, kind: Value, name: Value, further: Value) {
        assert_eq!(self.further(code, kind, name), further);
    }

    /// The fields beside those that the protocol has.
    #[track_caller]
    pub fn further(self, code: u16, kind: Value, name: Value) -> Value {
        assert_eq!(self.status, code, "{}", self.body);
        let mut body = self.body;
        let fields = body.as_object_mut().expect("an object");
        let message = fields.remove("message").unwrap_or_default();
        assert!(message.as_str().is_some_and(|said| said.len() > 10));
        let exact = [
            ("resourceType", kind),
            ("resourceName", name),
            ("code", json!(code)),
        ];
        for (field, value) in exact {
            assert_eq!(fields.remove(field), Some(value), "{field}");
        }
        body
    }

    pub fn revision(&self) -> &str {
        let revision = self.headers.get("anabranch-revision");
        let revision = revision.and_then(|value| value.to_str().ok());
        revision.unwrap_or_else(|| panic!("no revision: {self:?}"))
    }

    /// The reference, checked against the header.
    pub fn reference(&self) -> &Value {
        let reference = &self.body["reference"];
        assert_eq!(reference["revision"], self.revision(), "{self:?}");
        reference
    }
}

impl Server {
    pub async fn start() -> Server {
        let folder = tempfile::tempdir().expect("a folder");
        let store = sqlite_store(folder.path()).expect("a store");
        let partitions = Partitions::new(store, Config::default());
        let files = Files::new(FilesOptions::default());
        let catalog = Catalog::new(partitions, files, Limits::default());
        let new = NewCatalog {
            warehouse: Warehouse::parse("lake").expect("a warehouse"),
            location: format!("file://{}/warehouse", folder.path().display()),
            properties: BTreeMap::new(),
        };
        let caller = Caller {
            principal: "test".to_owned(),
            idempotency_key: None,
            fingerprint: String::new(),
            patience: Duration::from_secs(30),
        };
        catalog.ensure_catalog(&caller, &new).await.expect("lake");
        let native = Native {
            catalog: catalog.clone(),
            metrics: PrometheusBuilder::new().build_recorder().handle(),
            catalogs_location: None,
            iceberg_endpoints: &[],
            described: vec![anabranch_rest_paimon::describe()],
            stopping: CancellationToken::new(),
        };
        let iceberg = anabranch_rest_iceberg::Settings::default();
        let routes = anabranch_rest_native::router(native)
            .nest(
                anabranch_rest_iceberg::BASE,
                anabranch_rest_iceberg::router(catalog.clone(), iceberg),
            )
            .merge(anabranch_rest_paimon::router(catalog, "lake"));
        let shapes = Shapes::new(anabranch_rest_native::error_shape)
            .under(anabranch_rest_paimon::BASE, anabranch_rest_paimon::Errors);
        let stack = Stack::new(shapes, RequestLimits::default());
        let server = Server {
            router: stack.around(routes),
            _folder: folder,
        };
        let database = json!({"namespace": ["training"]});
        let namespaces = "/iceberg/v1/lake/namespaces";
        server.post(namespaces, database).await.expect(200);
        server
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).expect("a request");
        let response = self.router.clone().oneshot(request).await;
        let (parts, body) = response.expect("an answer").into_parts();
        let bytes = to_bytes(body, usize::MAX).await.expect("a body");
        assert!(parts.headers.contains_key("x-request-id"));
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: match bytes.is_empty() {
                true => Value::Null,
                false => serde_json::from_slice(&bytes).expect("JSON"),
            },
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], Body::empty()).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, &[], body.to_string()).await
    }

    pub async fn delete(&self, path: &str, body: &str) -> Answer {
        self.send(Method::DELETE, path, &[], body.to_owned()).await
    }

    /// Makes a branch or tag of a branch.
    pub async fn make(&self, kind: &str, name: &str, from: &str) -> Answer {
        let source = json!({"type": "BRANCH", "name": from});
        let body = json!({"type": kind, "name": name, "source": source});
        self.post(TREES, body).await.expect(200)
    }

    pub async fn merge(&self, target: &str, body: Value) -> Answer {
        self.post(&format!("{TREES}/{target}/merge"), body).await
    }

    /// Creates a table on a branch.
    pub async fn table(&self, branch: &str, name: &str) {
        let field = json!({"id": 1, "name": "id", "type": "long", "required": false});
        let schema = json!({"type": "struct", "fields": [field]});
        let path = format!("{}/tables", namespace(branch));
        let body = json!({"name": name, "schema": schema});
        self.post(&path, body).await.expect(200);
    }

    /// Writes a table on a branch.
    pub async fn write(&self, branch: &str, name: &str, value: &str) {
        let path = format!("{}/tables/{name}", namespace(branch));
        let update = json!({"action": "set-properties", "updates": {"written": value}});
        let body = json!({"requirements": [], "updates": [update]});
        self.post(&path, body).await.expect(200);
    }

    /// What was last written to a table on a branch.
    pub async fn read(&self, branch: &str, name: &str) -> Value {
        let path = format!("{}/tables/{name}", namespace(branch));
        let table = self.get(&path).await.expect(200).body;
        table["metadata"]["properties"]["written"].clone()
    }
}

fn namespace(branch: &str) -> String {
    format!("/iceberg/v1/lake/namespaces/training%24branch_{branch}")
}

/// A branch as the source of a merge or creation.
pub fn branch(name: &str) -> Value {
    json!({"type": "BRANCH", "name": name})
}
