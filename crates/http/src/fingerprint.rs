//! A digest of everything that a request asks for.

use http::Method;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Up to this size a JSON body counts by its content.
const CANONICAL_UP_TO: usize = 64 << 10;

/// The SHA-256 of a body's bytes, made while they arrive: what is large is never hashed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyDigest([u8; 32]);

/// Makes a [`BodyDigest`].
#[derive(Default)]
pub(crate) struct BodyHasher(Sha256);

impl BodyHasher {
    pub(crate) fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    pub(crate) fn finish(self) -> BodyDigest {
        BodyDigest(self.0.finalize().into())
    }
}

impl BodyDigest {
    pub(crate) fn of(body: &[u8]) -> BodyDigest {
        let mut hasher = BodyHasher::default();
        hasher.update(body);
        hasher.finish()
    }
}

/// The SHA-256, in hexadecimal, of a request's method, path with query, and body.
///
/// A JSON body of up to 64 KiB counts by its content: white space and the order of members make
/// no difference, because a client that was started again may write a map in another order. A
/// larger one counts by its bytes: a value of a few dozen bytes for each `{}` of a huge body is
/// more than a digest is worth. Clients that repeat a request under its key send the same bytes
/// (DuckDB, Java) or write the same structure in the same order (PyIceberg); one that doesn't is
/// refused (422), and nothing is applied twice.
pub fn fingerprint(method: &Method, path_and_query: &str, body: &[u8]) -> String {
    with_digest(method, path_and_query, body, || BodyDigest::of(body))
}

/// The same for a body whose digest is known, or is taken only if it is needed.
pub(crate) fn with_digest(
    method: &Method,
    path_and_query: &str,
    body: &[u8],
    body_digest: impl FnOnce() -> BodyDigest,
) -> String {
    let mut digest = Sha256::new();
    for part in [method.as_str(), path_and_query] {
        digest.update(part.len().to_be_bytes());
        digest.update(part);
    }
    let is_small = body.len() <= CANONICAL_UP_TO;
    let content = is_small.then(|| serde_json::from_slice::<Value>(body).ok());
    match content.flatten() {
        Some(content) => digest.update(canonical(content).to_string()),
        None => digest.update(body_digest().0),
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
    fn a_large_body_counts_by_its_bytes_which_were_hashed_before() {
        let large = format!(
            r#"{{"a":1,"junk":[{}{{}}]}}"#,
            "{},".repeat(CANONICAL_UP_TO)
        );
        let with = |digest: BodyDigest| {
            let path = "/v1/catalogs";
            with_digest(&Method::POST, path, large.as_bytes(), || digest)
        };
        assert_eq!(with(BodyDigest::of(large.as_bytes())), of(&large));
        assert_ne!(of(&large), of(&format!("{large} ")));
        // Whatever the digest is of: the body itself is not looked at again.
        assert_eq!(
            with(BodyDigest::of(b"another")),
            with(BodyDigest::of(b"another"))
        );
        assert_ne!(with(BodyDigest::of(b"another")), of(&large));
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
