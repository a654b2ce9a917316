//! What clients ask for, and what they are told.

use reqwest::header::HeaderMap;
use reqwest::{Client, Method};
use serde_json::{Value, json};

/// One request of a client.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    pub path: String,
    pub body: Option<Value>,
    /// `Idempotency-Key`
    pub key: Option<String>,
    /// `If-None-Match`
    pub tag: Option<String>,
}

/// Where requests go.
#[derive(Clone, Debug)]
pub struct Address {
    pub client: Client,
    pub url: String,
    /// The URL of the world's warehouse.
    pub warehouse: String,
}

/// What the server answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Request {
    pub fn new(method: Method, path: impl Into<String>, body: Option<Value>) -> Request {
        Request {
            method,
            path: path.into(),
            body,
            key: None,
            tag: None,
        }
    }

    pub fn get(path: impl Into<String>) -> Request {
        Request::new(Method::GET, path, None)
    }

    pub fn post(path: impl Into<String>, body: Value) -> Request {
        Request::new(Method::POST, path, Some(body))
    }

    pub fn delete(path: impl Into<String>) -> Request {
        Request::new(Method::DELETE, path, None)
    }

    /// The same with a fresh idempotency key.
    pub fn keyed(self) -> Request {
        let key = Some(uuid::Uuid::now_v7().to_string());
        Request { key, ..self }
    }

    /// The same, to be answered only if what is asked for has another tag.
    pub fn unless(self, tag: &str) -> Request {
        let tag = Some(tag.to_owned());
        Request { tag, ..self }
    }

    /// The same with a text of its body replaced.
    pub fn filled(mut self, mark: &str, text: &str) -> Request {
        fn fill(value: &mut Value, mark: &str, text: &str) {
            match value {
                Value::String(found) if found == mark => text.clone_into(found),
                Value::Array(values) => values.iter_mut().for_each(|one| fill(one, mark, text)),
                Value::Object(members) => {
                    members.values_mut().for_each(|one| fill(one, mark, text));
                }
                _ => {}
            }
        }
        if let Some(body) = &mut self.body {
            fill(body, mark, text);
        }
        self
    }

    /// The same in another catalog than `lake`.
    pub fn of(self, catalog: &str) -> Request {
        let path = self
            .path
            .replacen(LAKE, &format!("/iceberg/v1/{catalog}"), 1);
        Request { path, ..self }
    }

    /// Sends it; `None` if there was no answer.
    pub async fn send(&self, to: &Address) -> Option<Answer> {
        let (answer, _) = self.send_for_headers(to).await?;
        Some(answer)
    }

    /// The same with the headers of the answer.
    pub async fn send_for_headers(&self, to: &Address) -> Option<(Answer, HeaderMap)> {
        let url = format!("{}{}", to.url, self.path);
        let mut request = to.client.request(self.method.clone(), url);
        if let Some(body) = &self.body {
            let body = body.to_string().replace(WAREHOUSE, &to.warehouse);
            request = request
                .header("content-type", "application/json")
                .body(body);
        }
        if let Some(key) = &self.key {
            request = request.header("idempotency-key", key);
        }
        if let Some(tag) = &self.tag {
            request = request.header("if-none-match", tag);
        }
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let bytes = response.bytes().await.ok()?;
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Some((Answer { status, body }, headers))
    }
}

const LAKE: &str = "/iceberg/v1/lake";
/// Stands in a request for the URL of the world's warehouse.
const WAREHOUSE: &str = "WAREHOUSE";

/// `a.b` as it stands in a path.
fn levels(namespace: &str) -> String {
    namespace.replace('.', "%1F")
}

/// `{"namespace": ["a", "b"], "name": "t"}`
fn identifier(namespace: &str, name: &str) -> Value {
    json!({ "namespace": namespace.split('.').collect::<Vec<_>>(), "name": name })
}

pub fn create_namespace(namespace: &str) -> Request {
    let levels: Vec<_> = namespace.split('.').collect();
    Request::post(format!("{LAKE}/namespaces"), json!({ "namespace": levels }))
}

pub fn drop_namespace(namespace: &str) -> Request {
    Request::delete(format!("{LAKE}/namespaces/{}", levels(namespace)))
}

pub fn load_namespace(namespace: &str) -> Request {
    Request::get(format!("{LAKE}/namespaces/{}", levels(namespace)))
}

pub fn set_namespace_property(namespace: &str, key: &str, value: &str) -> Request {
    let path = format!("{LAKE}/namespaces/{}/properties", levels(namespace));
    Request::post(path, json!({ "removals": [], "updates": { key: value } }))
}

fn tables(namespace: &str) -> String {
    format!("{LAKE}/namespaces/{}/tables", levels(namespace))
}

pub fn create_table(namespace: &str, name: &str) -> Request {
    let schema = json!({
        "type": "struct",
        "fields": [{ "id": 1, "name": "id", "required": true, "type": "long" }],
    });
    Request::post(tables(namespace), json!({ "name": name, "schema": schema }))
}

pub fn load_table(namespace: &str, name: &str) -> Request {
    Request::get(format!("{}/{name}", tables(namespace)))
}

pub fn list_tables(namespace: &str) -> Request {
    Request::get(tables(namespace))
}

pub fn drop_table(namespace: &str, name: &str) -> Request {
    Request::delete(format!("{}/{name}", tables(namespace)))
}

pub fn rename_table(from: (&str, &str), to: (&str, &str)) -> Request {
    let names = json!({
        "source": identifier(from.0, from.1),
        "destination": identifier(to.0, to.1),
    });
    Request::post(format!("{LAKE}/tables/rename"), names)
}

/// A commit to one table.
pub fn commit(namespace: &str, name: &str, requirements: Value, updates: Value) -> Request {
    let body = json!({ "requirements": requirements, "updates": updates });
    Request::post(format!("{}/{name}", tables(namespace)), body)
}

/// One change of a commit of several tables.
pub fn change(namespace: &str, name: &str, requirements: Value, updates: Value) -> Value {
    json!({
        "identifier": identifier(namespace, name),
        "requirements": requirements,
        "updates": updates,
    })
}

pub fn commit_many(changes: &[Value]) -> Request {
    let path = format!("{LAKE}/transactions/commit");
    Request::post(path, json!({ "table-changes": changes }))
}

/// The update that sets one property.
pub fn set_property(key: &str, value: &str) -> Value {
    json!([{ "action": "set-properties", "updates": { key: value } }])
}

/// The updates that append a snapshot to `main`.
pub fn append(id: i64, parent: Option<i64>, sequence: i64) -> Value {
    let mut snapshot = json!({
        "snapshot-id": id,
        "sequence-number": sequence,
        "timestamp-ms": 1_800_000_000_000_i64 + sequence,
        "manifest-list": format!("file:///nowhere/{id}.avro"),
        "summary": { "operation": "append" },
        "schema-id": 0,
    });
    if let Some(parent) = parent {
        snapshot["parent-snapshot-id"] = json!(parent);
    }
    json!([
        { "action": "add-snapshot", "snapshot": snapshot },
        { "action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": id },
    ])
}

/// The requirement that `main` stands there; on nothing if `None`.
pub fn main_at(snapshot: Option<i64>) -> Value {
    json!([{ "type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": snapshot }])
}

pub fn create_view(namespace: &str, name: &str) -> Request {
    let schema = json!({
        "type": "struct",
        "schema-id": 0,
        "fields": [{ "id": 1, "name": "id", "required": true, "type": "long" }],
    });
    let version = json!({
        "version-id": 1,
        "timestamp-ms": 1_800_000_000_000_i64,
        "schema-id": 0,
        "summary": {},
        "representations": [{ "type": "sql", "sql": "SELECT 1 AS id", "dialect": "duckdb" }],
        "default-namespace": [],
    });
    let body = json!({
        "name": name, "schema": schema, "view-version": version, "properties": {},
    });
    Request::post(
        format!("{LAKE}/namespaces/{}/views", levels(namespace)),
        body,
    )
}

pub fn create_catalog(name: &str) -> Request {
    let location = format!("{WAREHOUSE}/{name}");
    Request::post(
        "/v1/catalogs",
        json!({ "name": name, "location": location }),
    )
}

pub fn rename_catalog(name: &str, to: &str) -> Request {
    let path = format!("/v1/catalogs/{name}");
    Request::new(Method::PATCH, path, Some(json!({ "name": to })))
}

/// Drops a catalog and all that is in it.
pub fn drop_catalog(name: &str) -> Request {
    Request::delete(format!("/v1/catalogs/{name}?cascade=true"))
}

/// Makes a new table's metadata; creates nothing.
pub fn stage_table(namespace: &str, name: &str) -> Request {
    let mut request = create_table(namespace, name);
    if let Some(body) = &mut request.body {
        body["stage-create"] = json!(true);
    }
    request
}

/// Creates a table of the client's own making, as the end of a staged creation.
pub fn finish_table(namespace: &str, name: &str, uuid: uuid::Uuid) -> Request {
    let schema = json!({
        "type": "struct",
        "schema-id": 0,
        "fields": [{ "id": 1, "name": "id", "required": true, "type": "long" }],
    });
    let updates = json!([
        { "action": "assign-uuid", "uuid": uuid },
        { "action": "upgrade-format-version", "format-version": 2 },
        { "action": "add-schema", "schema": schema, "last-column-id": 1 },
        { "action": "set-current-schema", "schema-id": -1 },
        { "action": "add-spec", "spec": { "spec-id": 0, "fields": [] } },
        { "action": "set-default-spec", "spec-id": -1 },
        { "action": "add-sort-order", "sort-order": { "order-id": 0, "fields": [] } },
        { "action": "set-default-sort-order", "sort-order-id": -1 },
        { "action": "set-location", "location": format!("{WAREHOUSE}/{namespace}/{uuid}") },
    ]);
    let requirements = json!([{ "type": "assert-create" }]);
    commit(namespace, name, requirements, updates)
}

pub fn purge_table(namespace: &str, name: &str) -> Request {
    let path = format!("{}/{name}?purgeRequested=true", tables(namespace));
    Request::delete(path)
}

/// Drops a table and answers the metadata that it had last.
pub fn unregister_table(namespace: &str, name: &str) -> Request {
    let path = format!("{}/{name}/unregister", tables(namespace));
    Request::new(Method::POST, path, None)
}

pub fn register_table(namespace: &str, name: &str, metadata: &str, overwrite: bool) -> Request {
    let path = format!("{LAKE}/namespaces/{}/register", levels(namespace));
    let body = json!({ "name": name, "metadata-location": metadata, "overwrite": overwrite });
    Request::post(path, body)
}

pub fn register_view(namespace: &str, name: &str, metadata: &str) -> Request {
    let path = format!("{LAKE}/namespaces/{}/register-view", levels(namespace));
    Request::post(path, json!({ "name": name, "metadata-location": metadata }))
}

fn view(namespace: &str, name: &str) -> String {
    format!("{LAKE}/namespaces/{}/views/{name}", levels(namespace))
}

pub fn load_view(namespace: &str, name: &str) -> Request {
    Request::get(view(namespace, name))
}

pub fn drop_view(namespace: &str, name: &str) -> Request {
    Request::delete(view(namespace, name))
}

/// Gives a view another text.
pub fn replace_view(namespace: &str, name: &str, sql: &str) -> Request {
    let version = json!({
        "version-id": 2,
        "timestamp-ms": 1_800_000_000_001_i64,
        "schema-id": 0,
        "summary": {},
        "representations": [{ "type": "sql", "sql": sql, "dialect": "duckdb" }],
        "default-namespace": [],
    });
    let updates = json!([
        { "action": "add-view-version", "view-version": version },
        { "action": "set-current-view-version", "view-version-id": -1 },
    ]);
    let body = json!({ "requirements": [], "updates": updates });
    Request::post(view(namespace, name), body)
}

pub fn rename_view(from: (&str, &str), to: (&str, &str)) -> Request {
    let tables = rename_table(from, to);
    let path = format!("{LAKE}/views/rename");
    Request { path, ..tables }
}

pub fn load_catalog(name: &str) -> Request {
    Request::get(format!("/v1/catalogs/{name}"))
}
