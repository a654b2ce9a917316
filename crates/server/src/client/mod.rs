//! How verbs reach a server: `/v1` and, for what is in a catalog, Iceberg REST.

mod error;
mod names;
mod trees;
mod warehouse;

use std::fmt;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response, Url};
use serde_json::Value;
use uuid::Uuid;

pub use error::ClientError;
pub use names::{CatalogName, DatabaseName, TableName, database_or_catalog};
pub use trees::RemoteTrees;
pub use warehouse::RemoteWarehouse;

use crate::failure::Failure;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than any answer takes: a server's own limit comes first.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);

/// A server.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    /// The server as messages name it.
    shown: String,
}

impl Client {
    /// A client of the server at this address.
    pub fn new(server: &str) -> Result<Client, Failure> {
        let address = Url::parse(server).ok();
        if !address.is_some_and(|url| ["http", "https"].contains(&url.scheme())) {
            return Err(Failure::setup(format!(
                "{:?} is no server: write --server http://127.0.0.1:8181, or set \
                 ANABRANCH_SERVER",
                without_credentials(server)
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
            shown: without_credentials(server),
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
            .map_err(|_| ClientError::Address(self.shown.clone()))?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self.http.request(method, url);
        if let Some(body) = body {
            request = request.json(body);
        }
        self.send(request).await
    }

    /// Calls for a change. If the answer is lost the call is sent once more under the same key:
    /// what was done already isn't done again, and the first answer is given.
    pub async fn change(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Value, ClientError> {
        let url = Url::parse(&format!("{}{path}", self.base))
            .map_err(|_| ClientError::Address(self.shown.clone()))?;
        let key = Uuid::new_v4().to_string();
        let send = || {
            let request = self.http.request(method.clone(), url.clone());
            self.send(request.header("idempotency-key", &key).json(body))
        };
        match send().await {
            Err(error) if error.is_unsure() => send().await,
            answered => answered,
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Value, ClientError> {
        let response = request.send().await;
        let response = response.map_err(|error| ClientError::unreachable(&self.shown, &error))?;
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
        let bytes = bytes.map_err(|error| ClientError::unreachable(&self.shown, &error))?;
        let body = match bytes.is_empty() {
            true => Ok(Value::Null),
            false => serde_json::from_slice(&bytes),
        };
        if !status.is_success() {
            return Err(ClientError::refused(status, id, &body.unwrap_or_default()));
        }
        body.map_err(|_| ClientError::NotJson(self.shown.clone()))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Client").field(&self.shown).finish()
    }
}

/// An address without the user and password that may stand in it. It may be no address at all, so
/// whatever stands in front of an at sign is left out.
fn without_credentials(server: &str) -> String {
    let server = server.trim_end_matches('/');
    let Some((before, behind)) = server.rsplit_once('@') else {
        return server.to_owned();
    };
    match before.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://{behind}"),
        None => behind.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_left_out_however_they_are_written() {
        for (server, shown) in [
            ("http://127.0.0.1:1/", "http://127.0.0.1:1"),
            ("http://user:secret@127.0.0.1:1", "http://127.0.0.1:1"),
            ("https://token@lake.example/x", "https://lake.example/x"),
            ("http://user:se/c@ret@host", "http://host"),
            ("user:secret@host", "host"),
        ] {
            assert_eq!(without_credentials(server), shown);
            let client = Client::new(server).map(|client| format!("{client:?}"));
            let said = client.unwrap_or_else(|failure| failure.to_string());
            assert!(!said.contains("secret") && !said.contains("se/c"), "{said}");
        }
    }
}
