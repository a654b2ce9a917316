//! Databases of a measurement's own on a PostgreSQL server.

use std::sync::Arc;

use anabranch_store::{OpenOptions, PostgresOptions, Store};
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

use crate::failure::Failure;

/// A fresh database; [`Database::remove`] drops it.
#[derive(Debug)]
pub struct Database {
    server: String,
    name: String,
}

impl Database {
    pub async fn create(server: &str) -> Result<Database, Failure> {
        let name = format!("anabranch_bench_{}", Uuid::new_v4().simple());
        let client = connect(server).await?;
        client
            .batch_execute(&format!("CREATE DATABASE {name}"))
            .await?;
        let server = server.to_owned();
        Ok(Database { server, name })
    }

    /// The database's URL.
    pub fn url(&self) -> String {
        let (base, query) = match self.server.split_once('?') {
            Some((base, query)) => (base, format!("?{query}")),
            None => (self.server.as_str(), String::new()),
        };
        let authority = base.find("://").map_or(0, |place| place + 3);
        let end = base[authority..]
            .find('/')
            .map_or(base.len(), |place| authority + place);
        format!("{}/{}{query}", &base[..end], self.name)
    }

    /// The URL of a store in it that locks in this mode.
    pub fn url_in_mode(&self, mode: &str) -> String {
        let url = self.url();
        let mark = if url.contains('?') { '&' } else { '?' };
        format!("{url}{mark}mode={mode}")
    }

    pub async fn remove(self) -> Result<(), Failure> {
        let client = connect(&self.server).await?;
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        Ok(client.batch_execute(&drop).await?)
    }
}

/// A plain connection.
pub async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    // Ends with the client; what broke it is told by the client's next call.
    tokio::spawn(connection);
    Ok(client)
}

/// A store, made if it isn't there.
pub async fn open(url: &str, connections: usize) -> Result<Arc<dyn Store>, Failure> {
    let options = OpenOptions {
        migrate: true,
        postgres: PostgresOptions {
            pool_size: connections,
            ..PostgresOptions::default()
        },
        ..OpenOptions::default()
    };
    Ok(anabranch_store::open(url, &options).await?)
}
