//! How verbs reach a server: `/v1` and, for what is in a catalog, Iceberg REST.

mod error;
mod names;
mod warehouse;

use std::time::Duration;

use reqwest::{Method, Response, Url};
use serde_json::Value;

pub use error::ClientError;
pub use names::{CatalogName, DatabaseName, TableName, database_or_catalog};
pub use warehouse::RemoteWarehouse;

use crate::failure::Failure;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than any answer takes: a server's own limit comes first.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);

/// A server.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: String,
}

impl Client {
    /// A client of the server at this address.
    pub fn new(server: &str) -> Result<Client, Failure> {
        let address = Url::parse(server).ok();
        if !address.is_some_and(|url| ["http", "https"].contains(&url.scheme())) {
            return Err(Failure::setup(format!(
                "{server:?} is no server: write --server http://127.0.0.1:8181, or set \
                 ANABRANCH_SERVER"
            )));
        }
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(ANSWER_TIMEOUT)
            .user_agent(concat!("anabranch/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Failure::setup(format!("no HTTP client: {error}")))?;
        Ok(Client {
            http,
            base: server.trim_end_matches('/').to_owned(),
        })
    }

    /// Calls the server; the answer is JSON, or `null` if it has no body.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Value, ClientError> {
        let mut url = Url::parse(&format!("{}{path}", self.base))
            .map_err(|_| ClientError::Address(self.base.clone()))?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self.http.request(method, url);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await;
        let response = response.map_err(|error| ClientError::unreachable(&self.base, &error))?;
        self.read(response).await
    }

    /// Calls without a body and reads the answer.
    pub async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, ClientError> {
        self.call(Method::GET, path, query, None).await
    }

    async fn read(&self, response: Response) -> Result<Value, ClientError> {
        let status = response.status();
        let id = response.headers().get("x-request-id");
        let id = id.and_then(|id| id.to_str().ok()).map(str::to_owned);
        let bytes = response.bytes().await;
        let bytes = bytes.map_err(|error| ClientError::unreachable(&self.base, &error))?;
        let body = match bytes.is_empty() {
            true => Ok(Value::Null),
            false => serde_json::from_slice(&bytes),
        };
        if !status.is_success() {
            return Err(ClientError::refused(status, id, &body.unwrap_or_default()));
        }
        body.map_err(|_| ClientError::NotJson(self.base.clone()))
    }
}
