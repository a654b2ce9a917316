//! A server under load: where its routes are, and the tables made there for the measurement.

use bytes::Bytes;
use http::HeaderValue;
use serde_json::{Value, json};
use uuid::Uuid;

use super::client::{Client, Header};
use crate::failure::Failure;

/// Of the long table.
pub const SNAPSHOTS: i64 = 500;
const LISTED: usize = 100;
/// Tables of a multi-table commit.
pub const TOGETHER: usize = 5;

/// One server.
pub struct Target {
    base: String,
    headers: Vec<Header>,
    prefix: String,
    warehouse: String,
    run: String,
    /// The process, if it is known.
    pub pid: Option<u32>,
}

/// What lies ready on a server.
pub struct Stage {
    pub namespace: String,
    pub listed: String,
    pub plain: String,
    pub long: String,
    pub etag: Option<HeaderValue>,
    pub shared: String,
}

impl Target {
    /// Finds the routes of a warehouse.
    pub async fn find(
        base: &str,
        headers: &[Header],
        warehouse: &str,
        pid: Option<u32>,
    ) -> Result<Target, Failure> {
        let mut client = Client::new(base, headers).await?;
        let config = client
            .get(&format!("/v1/config?warehouse={warehouse}"))
            .await?
            .json()?;
        let said = |part: &str| config[part]["prefix"].as_str().map(str::to_owned);
        let prefix = said("overrides").or_else(|| said("defaults"));
        let run = Uuid::new_v4().simple().to_string();
        Ok(Target {
            base: base.to_owned(),
            headers: headers.to_vec(),
            prefix: prefix
                .map(|prefix| format!("/{prefix}"))
                .unwrap_or_default(),
            warehouse: warehouse.to_owned(),
            run: run[..8].to_owned(),
            pid,
        })
    }

    pub async fn connect(&self) -> Result<Client, Failure> {
        Client::new(&self.base, &self.headers).await
    }

    pub fn config(&self) -> String {
        format!("/v1/config?warehouse={}", self.warehouse)
    }

    pub fn namespaces(&self) -> String {
        format!("/v1{}/namespaces", self.prefix)
    }

    pub fn tables(&self, namespace: &str) -> String {
        format!("{}/{namespace}/tables", self.namespaces())
    }

    pub fn table(&self, namespace: &str, table: &str) -> String {
        format!("{}/{table}", self.tables(namespace))
    }

    pub fn transactions(&self) -> String {
        format!("/v1{}/transactions/commit", self.prefix)
    }

    /// A name that no other run uses.
    pub fn name(&self, what: &str) -> String {
        format!("bench_{}_{what}", self.run)
    }

    /// Makes what the measurements need.
    pub async fn prepare(&self) -> Result<Stage, Failure> {
        let mut client = self.connect().await?;
        let stage = Stage {
            namespace: self.name("ns"),
            listed: self.name("listed"),
            plain: "plain".to_owned(),
            long: "long".to_owned(),
            etag: None,
            shared: "shared".to_owned(),
        };
        for namespace in [&stage.namespace, &stage.listed] {
            self.create_namespace(&mut client, namespace).await?;
        }
        for number in 0..LISTED {
            let name = format!("table_{number:03}");
            self.create_table(&mut client, &stage.listed, &name).await?;
        }
        for name in [&stage.plain, &stage.long, &stage.shared] {
            self.create_table(&mut client, &stage.namespace, name)
                .await?;
        }
        let path = self.table(&stage.namespace, &stage.long);
        client.post(&path, appends(None, SNAPSHOTS)).await?.json()?;
        let loaded = client.get(&path).await?;
        loaded.json()?;
        Ok(Stage {
            etag: loaded.etag,
            ..stage
        })
    }

    pub async fn create_namespace(&self, client: &mut Client, name: &str) -> Result<(), Failure> {
        client
            .post(&self.namespaces(), new_namespace(name))
            .await?
            .json()?;
        Ok(())
    }

    pub async fn create_table(
        &self,
        client: &mut Client,
        namespace: &str,
        name: &str,
    ) -> Result<(), Failure> {
        client
            .post(&self.tables(namespace), new_table(name))
            .await?
            .json()?;
        Ok(())
    }
}

pub fn new_namespace(name: &str) -> Bytes {
    json!({"namespace": [name], "properties": {}})
        .to_string()
        .into()
}

/// A table with ten columns.
pub fn new_table(name: &str) -> Bytes {
    let field = |id: usize| {
        let kind = ["long", "string", "double", "timestamp", "boolean"][id % 5];
        json!({"id": id, "name": format!("column_{id}"), "required": false, "type": kind})
    };
    let fields: Vec<Value> = (1..=10).map(field).collect();
    let schema = json!({"type": "struct", "schema-id": 0, "fields": fields});
    json!({"name": name, "schema": schema, "properties": {}})
        .to_string()
        .into()
}

pub fn set_property(value: usize) -> Value {
    json!({
        "requirements": [],
        "updates": [{"action": "set-properties", "updates": {"touched": value.to_string()}}]
    })
}

/// Adds so many snapshots, one behind the other, in one commit; their ids count from 1.
pub fn appends(parent: Option<i64>, count: i64) -> Bytes {
    let first = parent.unwrap_or(0) + 1;
    let chain: Vec<(i64, Option<i64>)> = (first..first + count)
        .map(|id| (id, (id > 1).then_some(id - 1)))
        .collect();
    commit_of(&chain, parent)
}

fn commit_of(chain: &[(i64, Option<i64>)], parent: Option<i64>) -> Bytes {
    let now = std::time::SystemTime::now();
    let now = now
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis() as i64;
    let mut updates: Vec<Value> = chain
        .iter()
        .map(|(id, parent)| add(*id, *parent, now))
        .collect();
    let last = chain.last().map_or(0, |(id, _)| *id);
    updates.push(json!({
        "action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": last
    }));
    let requirement = json!({
        "type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent
    });
    json!({"requirements": [requirement], "updates": updates})
        .to_string()
        .into()
}

fn add(id: i64, parent: Option<i64>, now: i64) -> Value {
    let mut snapshot = json!({
        "snapshot-id": id,
        "sequence-number": id,
        "timestamp-ms": now,
        "manifest-list": format!(
            "s3://warehouse/lake/bench/table/metadata/snap-{id}-1-0190a6e8-7d3b-7c44.avro"
        ),
        "summary": {
            "operation": "append", "added-data-files": "1", "added-records": "1000",
            "added-files-size": "123456", "changed-partition-count": "1",
            "total-records": (1000 * id).to_string(), "total-files-size": "123456",
            "total-data-files": id.to_string(), "total-delete-files": "0",
            "total-position-deletes": "0", "total-equality-deletes": "0"
        },
        "schema-id": 0
    });
    if let Some(parent) = parent {
        snapshot["parent-snapshot-id"] = json!(parent);
    }
    json!({"action": "add-snapshot", "snapshot": snapshot})
}
