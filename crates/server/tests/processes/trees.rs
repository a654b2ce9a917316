//! What clients ask of branches and tags.

use reqwest::Method;
use serde_json::{Value, json};

use crate::requests::Request;

fn trees(database: &str) -> String {
    format!("/v1/catalogs/lake/databases/{database}/trees")
}

/// A branch as the source of something.
pub fn branch(name: &str) -> Value {
    json!({ "type": "BRANCH", "name": name })
}

/// The database's name with a branch selected.
pub fn on(database: &str, branch: &str) -> String {
    format!("{database}$branch_{branch}")
}

/// The database's name with a tag selected; `rev-…` for a state.
pub fn at(database: &str, tag: &str) -> String {
    format!("{database}$tag_{tag}")
}

pub fn create_branch(database: &str, name: &str, source: &str) -> Request {
    let body = json!({ "type": "BRANCH", "name": name, "source": branch(source) });
    Request::post(trees(database), body)
}

pub fn create_tag(database: &str, name: &str, source: &str) -> Request {
    let body = json!({ "type": "TAG", "name": name, "source": branch(source) });
    Request::post(trees(database), body)
}

pub fn show_reference(database: &str, name: &str) -> Request {
    Request::get(format!("{}/{name}", trees(database)))
}

pub fn delete_reference(database: &str, name: &str) -> Request {
    Request::new(
        Method::DELETE,
        format!("{}/{name}", trees(database)),
        Some(json!({})),
    )
}

/// Merges a branch.
pub fn merge(database: &str, source: &str, target: &str) -> Request {
    merge_with(database, target, json!({ "source": branch(source) }))
}

/// Merges as a body says.
pub fn merge_with(database: &str, target: &str, body: Value) -> Request {
    Request::post(format!("{}/{target}/merge", trees(database)), body)
}

/// Keeps a reference from being deleted.
pub fn protect_reference(database: &str, name: &str) -> Request {
    let path = format!("{}/{name}", trees(database));
    Request::new(Method::PATCH, path, Some(json!({ "protected": true })))
}
