//! The branches and tags of a database, through `/v1`.

use anabranch_http::encode_name;
use reqwest::Method;
use serde_json::Value;

use super::{Client, ClientError, DatabaseName};
use crate::failure::Failure;

/// The references of one database.
#[derive(Debug)]
pub struct RemoteTrees {
    client: Client,
    base: String,
}

impl RemoteTrees {
    /// Those of the database of this name: `catalog.database` or `metalake.catalog.database`.
    pub fn of(client: Client, database: &str) -> Result<RemoteTrees, Failure> {
        let name = DatabaseName::parse(database)?;
        let [level] = name.levels.as_slice() else {
            return Err(Failure::setup(format!(
                "{database:?} is a namespace in a database; branches and tags are of a whole \
                 database: write catalog.database"
            )));
        };
        let catalog = encode_name(&name.catalog.full());
        let base = format!(
            "/v1/catalogs/{catalog}/databases/{}/trees",
            encode_name(level)
        );
        Ok(RemoteTrees { client, base })
    }

    /// Reads what is below the references.
    pub async fn get(
        &self,
        segments: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Value, ClientError> {
        self.client.get(&self.path(segments), query).await
    }

    /// All of a listing, page by page.
    pub async fn list(
        &self,
        segments: &[&str],
        query: &[(&str, &str)],
        field: &str,
    ) -> Result<Vec<Value>, ClientError> {
        let mut items = Vec::new();
        let mut token = String::new();
        loop {
            let mut query = query.to_vec();
            query.push(("pageToken", &token));
            let page = self.get(segments, &query).await?;
            items.extend(page[field].as_array().into_iter().flatten().cloned());
            match page["nextPageToken"].as_str() {
                Some(next) => token = next.to_owned(),
                None => return Ok(items),
            }
        }
    }

    /// Asks for a change; a lost answer is asked for again.
    pub async fn change(
        &self,
        method: Method,
        segments: &[&str],
        body: &Value,
    ) -> Result<Value, ClientError> {
        self.client.change(method, &self.path(segments), body).await
    }

    /// A reference as the source of something: its type is looked up.
    pub async fn source(&self, name: &str, revision: Option<&str>) -> Result<Value, ClientError> {
        let found = self.get(&[name], &[]).await?;
        let mut source = serde_json::json!({"type": found["reference"]["type"], "name": name});
        if let Some(revision) = revision {
            source["revision"] = revision.into();
        }
        Ok(source)
    }

    fn path(&self, segments: &[&str]) -> String {
        let mut path = self.base.clone();
        for segment in segments {
            path.push('/');
            path.push_str(&encode_name(segment));
        }
        path
    }
}
