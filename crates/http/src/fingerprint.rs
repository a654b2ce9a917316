//! A digest of everything that a request asks for.

use http::Method;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The SHA-256, in hexadecimal, of a request's method, path with query, and body. A JSON body
/// counts by its content: white space and the order of members make no difference.
pub fn fingerprint(method: &Method, path_and_query: &str, body: &[u8]) -> String {
    let mut digest = Sha256::new();
    for part in [method.as_str(), path_and_query] {
        digest.update(part.len().to_be_bytes());
        digest.update(part);
    }
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => digest.update(canonical(value).to_string()),
        Err(_) => digest.update(body),
    }
    hex::encode(digest.finalize())
}

fn canonical(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.into_iter().collect();
            sorted.sort_by(|(left, _), (right, _)| left.cmp(right));
            let members = sorted.into_iter();
            Value::Object(
                members
                    .map(|(name, value)| (name, canonical(value)))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.into_iter().map(canonical).collect()),
        scalar => scalar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> String {
        fingerprint(&Method::POST, "/v1/catalogs", body.as_bytes())
    }

    #[test]
    fn the_same_content_has_the_same_fingerprint() {
        let one = r#"{"a":1,"b":{"c":[1,{"x":1,"y":2}],"d":null}}"#;
        let two = r#" { "b": {"d":null, "c":[1,{"y":2,"x":1}]}, "a":1 }"#;
        assert_eq!(of(one), of(two));
    }

    #[test]
    fn other_content_order_of_items_path_or_method_has_another() {
        assert_ne!(of("[1,2]"), of("[2,1]"));
        assert_ne!(of(r#"{"a":1}"#), of(r#"{"a":2}"#));
        let there = fingerprint(&Method::POST, "/v1/catalogs?x=1", b"[1,2]");
        assert_ne!(of("[1,2]"), there);
        let otherwise = fingerprint(&Method::PUT, "/v1/catalogs", b"[1,2]");
        assert_ne!(of("[1,2]"), otherwise);
    }
}
