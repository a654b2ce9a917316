//! What the load consists of. Each operation is one request; what it needs lies ready before.

use std::sync::Arc;

use bytes::Bytes;
use clap::ValueEnum;
use serde_json::{Value, json};

use super::client::{Answer, Client};
use super::target::{self, Stage, TOGETHER, Target};
use crate::failure::Failure;

/// An operation of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    /// The configuration.
    Config,
    /// A table of ten columns without snapshots.
    Load,
    /// A table with 500 snapshots, all of them.
    Load500,
    /// The same with `snapshots=refs`.
    LoadRefs,
    /// The same when it didn't change: `If-None-Match`.
    Load304,
    /// 100 tables.
    List,
    /// Set a property, each client on its own table.
    SetProperties,
    /// Append snapshots 0 → 200, each client on its own table.
    Append,
    /// Set a property, all on one table.
    OneTable,
    /// Create a table.
    CreateTable,
    /// Create a namespace.
    CreateNamespace,
    /// One commit over 5 tables, each client on its own 5.
    MultiTable,
}

impl Operation {
    /// Its name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Config => "config",
            Operation::Load => "load",
            Operation::Load500 => "load500",
            Operation::LoadRefs => "load-refs",
            Operation::Load304 => "load304",
            Operation::List => "list",
            Operation::SetProperties => "set-properties",
            Operation::Append => "append",
            Operation::OneTable => "one-table",
            Operation::CreateTable => "create-table",
            Operation::CreateNamespace => "create-namespace",
            Operation::MultiTable => "multi-table",
        }
    }
}

/// One client that does one operation again and again.
pub struct Worker {
    operation: Operation,
    target: Arc<Target>,
    stage: Arc<Stage>,
    client: Client,
    own: String,
    number: usize,
}

impl Worker {
    /// Makes the tables that this client needs for itself; `round` tells its names from those of
    /// other rounds.
    pub async fn prepare(
        operation: Operation,
        target: &Arc<Target>,
        stage: &Arc<Stage>,
        round: &str,
    ) -> Result<Worker, Failure> {
        let mut client = target.connect().await?;
        let own = format!("{}_{round}", operation.name().replace('-', "_"));
        let tables: Vec<String> = match operation {
            Operation::SetProperties | Operation::Append => vec![own.clone()],
            Operation::MultiTable => (0..TOGETHER)
                .map(|number| format!("{own}_{number}"))
                .collect(),
            _ => Vec::new(),
        };
        for table in &tables {
            target
                .create_table(&mut client, &stage.namespace, table)
                .await?;
        }
        Ok(Worker {
            operation,
            target: target.clone(),
            stage: stage.clone(),
            client,
            own,
            number: 0,
        })
    }

    /// Whether the server can't do this operation at all.
    pub fn is_impossible(&self) -> bool {
        self.operation == Operation::Load304 && self.stage.etag.is_none()
    }

    /// Does it once.
    pub async fn once(&mut self) -> Result<Answer, Failure> {
        self.number += 1;
        let Worker { target, stage, .. } = self;
        let long = || target.table(&stage.namespace, &stage.long);
        let client = &mut self.client;
        match self.operation {
            Operation::Config => client.get(&target.config()).await,
            Operation::Load => {
                client
                    .get(&target.table(&stage.namespace, &stage.plain))
                    .await
            }
            Operation::Load500 => client.get(&long()).await,
            Operation::LoadRefs => client.get(&format!("{}?snapshots=refs", long())).await,
            Operation::Load304 => match &stage.etag {
                Some(etag) => client.get_unless(&long(), etag).await,
                None => client.get(&long()).await,
            },
            Operation::List => client.get(&target.tables(&stage.listed)).await,
            Operation::SetProperties => {
                let path = target.table(&stage.namespace, &self.own);
                client
                    .post(&path, text(&target::set_property(self.number)))
                    .await
            }
            Operation::Append => {
                let parent = (self.number > 1).then_some(self.number as i64 - 1);
                let path = target.table(&stage.namespace, &self.own);
                client.post(&path, target::appends(parent, 1)).await
            }
            Operation::OneTable => {
                let path = target.table(&stage.namespace, &stage.shared);
                client
                    .post(&path, text(&target::set_property(self.number)))
                    .await
            }
            Operation::CreateTable => {
                let name = format!("{}_{}", self.own, self.number);
                client
                    .post(&target.tables(&stage.namespace), target::new_table(&name))
                    .await
            }
            Operation::CreateNamespace => {
                let name = target.name(&format!("{}_{}", self.own, self.number));
                client
                    .post(&target.namespaces(), target::new_namespace(&name))
                    .await
            }
            Operation::MultiTable => {
                let changes = (0..TOGETHER).map(|number| {
                    let mut change = target::set_property(self.number);
                    change["identifier"] = json!({
                        "namespace": [stage.namespace], "name": format!("{}_{number}", self.own)
                    });
                    change
                });
                let body = json!({"table-changes": changes.collect::<Vec<_>>()});
                client.post(&target.transactions(), text(&body)).await
            }
        }
    }
}

fn text(value: &Value) -> Bytes {
    value.to_string().into()
}
