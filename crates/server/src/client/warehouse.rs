//! One catalog of a server, through Iceberg REST.

use anabranch_http::encode_name;
use reqwest::Method;
use serde_json::Value;

use super::{CatalogName, Client, ClientError};

const BASE: &str = "/iceberg/v1";
const LEVEL_SEPARATOR: &str = "\u{1f}";

/// A catalog, by the prefix that its server gave it.
#[derive(Debug)]
pub struct RemoteWarehouse {
    client: Client,
    prefix: String,
}

impl RemoteWarehouse {
    /// Asks the server for the catalog's prefix.
    pub async fn find(client: Client, name: &CatalogName) -> Result<RemoteWarehouse, ClientError> {
        let query = [("warehouse", name.full())];
        let query = query.each_ref().map(|(key, value)| (*key, value.as_str()));
        let config = client.get(&format!("{BASE}/config"), &query).await?;
        let prefix = ["overrides", "defaults"]
            .iter()
            .find_map(|part| config[part]["prefix"].as_str());
        Ok(RemoteWarehouse {
            prefix: prefix.unwrap_or_default().to_owned(),
            client,
        })
    }

    /// The path of a namespace, and of what is below it.
    pub fn namespace(&self, levels: &[String], below: &[&str]) -> String {
        let joined = levels.join(LEVEL_SEPARATOR);
        let mut segments = vec!["namespaces", joined.as_str()];
        segments.extend(below);
        self.path(&segments)
    }

    /// A path below the catalog's prefix.
    pub fn path(&self, segments: &[&str]) -> String {
        let mut path = format!("{BASE}/{}", encode_name(&self.prefix));
        for segment in segments {
            path.push('/');
            path.push_str(&encode_name(segment));
        }
        path
    }

    /// Calls the server.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Value, ClientError> {
        self.client.call(method, path, query, body).await
    }

    /// All of a listing, page by page.
    pub async fn list(
        &self,
        path: &str,
        query: &[(&str, &str)],
        field: &str,
    ) -> Result<Vec<Value>, ClientError> {
        let mut items = Vec::new();
        let mut token = String::new();
        loop {
            let mut query = query.to_vec();
            query.push(("pageToken", &token));
            let page = self.client.get(path, &query).await?;
            items.extend(page[field].as_array().into_iter().flatten().cloned());
            match page["next-page-token"].as_str() {
                Some(next) => token = next.to_owned(),
                None => return Ok(items),
            }
        }
    }
}
