//! A server in this process.

use std::collections::BTreeMap;

use anabranch_catalog::{Caller, Catalog, Limits, NewCatalog, Warehouse};
use anabranch_files::{Faults, Files, FilesOptions};
use anabranch_http::{RequestLimits, Shapes, Stack};
use anabranch_partition::{Config, Partitions};
use anabranch_rest_iceberg::{BASE, Errors, Settings, router};
use anabranch_store::testing::sqlite_store;
use axum::Router;
use axum::body::{Body, to_bytes};
use http::{HeaderMap, Method, Request};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

/// A server on a store and a warehouse in a folder that goes away with it.
pub struct Server {
    pub catalog: Catalog,
    pub faults: Faults,
    router: Router,
    folder: TempDir,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    /// The body; `null` if there is none.
    pub fn json(&self) -> Value {
        if self.text.is_empty() {
            return Value::Null;
        }
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub fn revision(&self) -> &str {
        let revision = self.header("anabranch-revision");
        let revision = revision.unwrap_or_else(|| panic!("no revision: {self:?}"));
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        assert!((1..=40).contains(&revision.len()) && revision.bytes().all(allowed));
        revision
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }

    /// It is an error in the protocol's shape, of this status and type.
    #[track_caller]
    pub fn refused(self, status: u16, kind: &str) -> Answer {
        assert_eq!(self.status, status, "{}", self.text);
        let body = self.json();
        assert_eq!(body["error"]["type"], kind, "{}", self.text);
        assert_eq!(body["error"]["code"], status, "{}", self.text);
        assert!(body["error"]["message"].is_string(), "{}", self.text);
        self
    }
}

impl Server {
    pub async fn start() -> Server {
        Server::with_properties(&[]).await
    }

    /// The catalog `lake` has these properties.
    pub async fn with_properties(properties: &[(&str, &str)]) -> Server {
        let folder = tempfile::tempdir().expect("a folder");
        let store = sqlite_store(folder.path()).expect("a store");
        let partitions = Partitions::new(store, Config::default());
        let faults = Faults::new();
        let files = Files::new(FilesOptions::default()).with_faults(faults.clone());
        let catalog = Catalog::new(partitions, files, Limits::default());
        let properties = properties
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let new = NewCatalog {
            warehouse: Warehouse::parse("lake").expect("a warehouse"),
            location: format!("file://{}/warehouse", folder.path().display()),
            properties: properties.collect::<BTreeMap<_, _>>(),
        };
        let caller = Caller {
            principal: "test".to_owned(),
            idempotency_key: None,
            fingerprint: String::new(),
            patience: std::time::Duration::from_secs(30),
        };
        catalog.ensure_catalog(&caller, &new).await.expect("lake");
        let shapes = Shapes::new(Errors).under(BASE, Errors);
        let routes = router(catalog.clone(), Settings::default());
        let stack = Stack::new(shapes, RequestLimits::default());
        Server {
            router: stack.around(Router::new().nest(BASE, routes)),
            catalog,
            faults,
            folder,
        }
    }

    /// Where the tables of `lake` go.
    pub fn warehouse(&self) -> String {
        format!("file://{}/warehouse", self.folder.path().display())
    }

    /// Sends a request below `/iceberg`.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{BASE}{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).expect("a request");
        let response = self.router.clone().oneshot(request).await;
        let response = response.expect("an answer");
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        assert!(headers.contains_key("x-request-id"));
        let bytes = to_bytes(response.into_body(), usize::MAX).await;
        let text = String::from_utf8(bytes.expect("a body").to_vec()).expect("text");
        if status >= 400 && !text.is_empty() {
            let content_type = headers.get("content-type").expect("a type");
            assert_eq!(content_type, "application/json");
        }
        Answer {
            status,
            headers,
            text,
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], Body::empty()).await
    }

    pub async fn head(&self, path: &str) -> Answer {
        self.send(Method::HEAD, path, &[], Body::empty()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, &[], Body::empty()).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, &[], body.to_string()).await
    }

    pub async fn post_with_key(&self, path: &str, key: &str, body: &Value) -> Answer {
        let headers = [("idempotency-key", key)];
        self.send(Method::POST, path, &headers, body.to_string())
            .await
    }

    /// Creates a namespace in `lake`.
    pub async fn namespace(&self, levels: &[&str]) {
        let body = json!({"namespace": levels});
        self.post("/v1/lake/namespaces", body).await.expect(200);
    }

    /// Creates a table in `lake` and answers what the client is shown.
    pub async fn table(&self, namespace: &str, name: &str) -> Value {
        let path = format!("/v1/lake/namespaces/{namespace}/tables");
        let body = json!({"name": name, "schema": schema()});
        self.post(&path, body).await.expect(200).json()
    }

    pub async fn load(&self, namespace: &str, name: &str) -> Value {
        let path = format!("/v1/lake/namespaces/{namespace}/tables/{name}");
        self.get(&path).await.expect(200).json()
    }

    /// The store breaks none of its invariants, and no file is missing.
    pub async fn audited(self) {
        let violations = self.catalog.doctor(true).await.expect("an audit");
        assert!(violations.is_empty(), "{violations:?}");
    }
}

pub fn schema() -> Value {
    json!({
        "type": "struct",
        "schema-id": 0,
        "fields": [
            {"id": 1, "name": "id", "required": true, "type": "long"},
            {"id": 2, "name": "text", "required": false, "type": "string"},
        ],
    })
}

/// Requirements and updates that add a snapshot to `main`, as engines send them.
pub fn append(table: &Value, snapshot: i64, parent: Option<i64>, sequence: i64) -> Value {
    let metadata = &table["metadata"];
    let location = metadata["location"].as_str().expect("a location");
    let mut added = json!({
        "snapshot-id": snapshot,
        "sequence-number": sequence,
        "timestamp-ms": 1_900_000_000_000_i64 + sequence,
        "manifest-list": format!("{location}/metadata/snap-{snapshot}.avro"),
        "summary": {"operation": "append"},
        "schema-id": 0,
    });
    if let Some(parent) = parent {
        added["parent-snapshot-id"] = json!(parent);
    }
    json!({
        "requirements": [
            {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent},
        ],
        "updates": [
            {"action": "add-snapshot", "snapshot": added},
            {
                "action": "set-snapshot-ref",
                "ref-name": "main",
                "type": "branch",
                "snapshot-id": snapshot,
            },
        ],
    })
}

/// The same as one change of a transaction.
pub fn change(namespace: &str, name: &str, mut commit: Value) -> Value {
    commit["identifier"] = json!({"namespace": [namespace], "name": name});
    commit
}
