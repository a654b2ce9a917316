//! Answers: JSON with the state's name on it, and metadata documents as they lie in the store.

use std::collections::BTreeMap;
use std::convert::Infallible;

use anabranch_catalog::{CatalogError, Document, Pointer};
use anabranch_files::StorageSettings;
pub(crate) use anabranch_http::at_revision;
use anabranch_http::{RequestContext, weak_etag};
use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::Problem;

const ACCESS_DELEGATION: HeaderName = HeaderName::from_static("x-iceberg-access-delegation");
const VENDED_CREDENTIALS: &str = "vended-credentials";
/// What an answer with metadata depends on besides its path.
const VARIES_BY: &str = "authorization, x-iceberg-access-delegation";

/// An answer, or an error in the protocol's shape.
pub(crate) type Answered = Result<Response, Problem>;

/// 200 with a JSON body.
pub(crate) fn json<T: Serialize>(value: T) -> Response {
    Json(value).into_response()
}

/// 204.
pub(crate) fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// Snapshots in the answer to a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Snapshots {
    /// All that the metadata has.
    #[default]
    All,
    /// Those that branches and tags point at.
    Refs,
}

/// How a client reaches a table's files (specification: `LoadTableResult`).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Access {
    pub(crate) config: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) storage_credentials: Vec<StorageCredential>,
}

/// Credentials for everything below a prefix (specification: `StorageCredential`).
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StorageCredential {
    pub(crate) prefix: String,
    pub(crate) config: BTreeMap<String, String>,
}

impl Access {
    /// What a request is told: credentials only if it asks for them and the catalog gives them.
    pub(crate) fn of(context: &RequestContext, settings: &StorageSettings, location: &str) -> Self {
        let storage_credentials = if asks_for_credentials(&context.headers) {
            credentials(settings, location)
        } else {
            Vec::new()
        };
        Access {
            config: settings.client_config(),
            storage_credentials,
        }
    }

    /// Names the answer that shows this metadata with this access.
    pub(crate) fn etag(&self, table: &Pointer, snapshots: Snapshots) -> HeaderValue {
        let mut digest = Sha256::new();
        digest.update(&table.metadata_location);
        digest.update(if table.is_shared { "\nshared" } else { "\nown" });
        digest.update(match snapshots {
            Snapshots::All => "\nall\n",
            Snapshots::Refs => "\nrefs\n",
        });
        // Maps of texts always have a JSON form.
        digest.update(serde_json::to_vec(self).unwrap_or_default());
        let digest = hex::encode(digest.finalize());
        weak_etag(&digest[..32])
    }
}

/// What the catalog gives to whoever asks; nothing unless its settings say so. They are the
/// catalog's own keys, so they reach as far as the store that the table lies in.
pub(crate) fn credentials(settings: &StorageSettings, location: &str) -> Vec<StorageCredential> {
    let Some(keys) = settings.credentials() else {
        return Vec::new();
    };
    let mut config = settings.client_config();
    config.extend(keys);
    vec![StorageCredential {
        prefix: store_of(location).to_owned(),
        config,
    }]
}

/// Scheme and bucket of a location.
fn store_of(location: &str) -> &str {
    let Some((scheme, rest)) = location.split_once("://") else {
        return location;
    };
    let bucket = rest.find('/').unwrap_or(rest.len());
    &location[..scheme.len() + "://".len() + bucket]
}

fn asks_for_credentials(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCESS_DELEGATION).into_iter();
    let mut mechanisms = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','));
    mechanisms.any(|mechanism| mechanism.trim().eq_ignore_ascii_case(VENDED_CREDENTIALS))
}

/// The metadata of a table as clients get it: it says that files which others may need are no
/// client's to delete.
pub(crate) fn metadata_of(
    table: &Pointer,
    document: &Document,
    snapshots: Snapshots,
) -> Result<Bytes, CatalogError> {
    document.shown(table.is_shared, snapshots == Snapshots::Refs)
}

/// A metadata document with what surrounds it. The document's bytes go out as they are.
pub(crate) fn with_metadata<T: Serialize>(
    metadata_location: Option<&str>,
    metadata: Bytes,
    rest: &T,
) -> Response {
    // Texts and maps of texts always have a JSON form.
    let location = metadata_location.map(|location| {
        let location = serde_json::to_string(location).unwrap_or_default();
        format!("\"metadata-location\":{location},")
    });
    let head = format!("{{{}\"metadata\":", location.unwrap_or_default());
    let rest = serde_json::to_string(rest).unwrap_or_default();
    let tail = match rest.trim_start_matches('{') {
        "}" => "}".to_owned(),
        members => format!(",{members}"),
    };
    let parts = [Bytes::from(head), metadata, Bytes::from(tail)];
    let length: usize = parts.iter().map(Bytes::len).sum();
    let body = Body::from_stream(stream::iter(parts.map(Ok::<_, Infallible>)));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CONTENT_LENGTH, HeaderValue::from(length)),
    ];
    (headers, body).into_response()
}

/// The answer, with its tag and the word that it belongs to this caller alone.
pub(crate) fn tagged(etag: HeaderValue, mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(ETAG, etag);
    let revalidate = HeaderValue::from_static("private, no-cache");
    headers.insert(CACHE_CONTROL, revalidate);
    headers.insert(VARY, HeaderValue::from_static(VARIES_BY));
    response
}

/// The answer, which nobody may keep.
pub(crate) fn not_stored(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// 304.
pub(crate) fn not_modified() -> Response {
    StatusCode::NOT_MODIFIED.into_response()
}

/// Nothing besides the metadata.
#[derive(Serialize)]
pub(crate) struct Nothing {}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anabranch_catalog::{Identifier, Namespace, PointerKind};
    use anabranch_store::ObjectId;
    use axum::body::to_bytes;
    use serde_json::Value;

    use super::*;

    fn vending() -> StorageSettings {
        StorageSettings::from_properties(&BTreeMap::from([
            ("s3.endpoint", "http://127.0.0.1:9000"),
            ("s3.access-key-id", "key"),
            ("s3.secret-access-key", "secret"),
            ("vend-credentials", "true"),
        ]))
        .expect("settings")
    }

    fn pointer(metadata_location: &str, is_shared: bool) -> Pointer {
        let namespace = Namespace::new(vec!["db".to_owned()]).expect("a namespace");
        Pointer {
            identifier: Identifier::new(namespace, "t".to_owned()).expect("a name"),
            kind: PointerKind::Table,
            object: ObjectId(1),
            version: 1,
            metadata_location: metadata_location.to_owned(),
            location: "file:///t".to_owned(),
            settings: Arc::default(),
            is_shared,
            revision: String::new(),
        }
    }

    async fn body_of(response: Response) -> (String, String) {
        let length = response.headers()[CONTENT_LENGTH]
            .to_str()
            .map(str::to_owned);
        let bytes = to_bytes(response.into_body(), usize::MAX).await;
        let text = String::from_utf8(bytes.expect("a body").to_vec());
        (length.expect("text"), text.expect("text"))
    }

    #[tokio::test]
    async fn metadata_is_embedded_byte_for_byte() {
        let raw = Bytes::from_static(b"{ \"format-version\" : 2, \"x\":1.0 }");
        let access = Access {
            config: BTreeMap::new(),
            storage_credentials: Vec::new(),
        };
        let response = with_metadata(Some("file:///a \"b\".json"), raw.clone(), &access);
        let (length, text) = body_of(response).await;
        assert_eq!(
            text,
            "{\"metadata-location\":\"file:///a \\\"b\\\".json\",\
             \"metadata\":{ \"format-version\" : 2, \"x\":1.0 },\"config\":{}}"
        );
        assert_eq!(length, text.len().to_string());
        let (_, bare) = body_of(with_metadata(None, raw, &Nothing {})).await;
        assert!(serde_json::from_str::<Value>(&bare).is_ok(), "{bare}");
    }

    #[test]
    fn the_tag_changes_with_everything_that_changes_the_body() {
        let plain = Access {
            config: BTreeMap::new(),
            storage_credentials: Vec::new(),
        };
        let vended = Access {
            storage_credentials: credentials(&vending(), "s3://bucket/x"),
            ..plain.clone()
        };
        let configured = Access {
            config: vending().client_config(),
            ..plain.clone()
        };
        let at = |location: &str, is_shared| pointer(location, is_shared);
        let (first, second) = (at("file:///1", false), at("file:///2", false));
        let tags = [
            plain.etag(&first, Snapshots::All),
            plain.etag(&first, Snapshots::Refs),
            plain.etag(&second, Snapshots::All),
            plain.etag(&at("file:///1", true), Snapshots::All),
            vended.etag(&first, Snapshots::All),
            configured.etag(&first, Snapshots::All),
        ];
        for (index, tag) in tags.iter().enumerate() {
            assert!(!tags[index + 1..].contains(tag), "{tag:?}");
        }
        assert_eq!(tags[0], plain.clone().etag(&first, Snapshots::All));
    }

    #[test]
    fn credentials_reach_as_far_as_the_store_and_only_if_the_settings_vend() {
        let given = credentials(&vending(), "s3://bucket/db/t-1");
        assert_eq!(given[0].prefix, "s3://bucket");
        assert_eq!(given[0].config["s3.secret-access-key"], "secret");
        assert_eq!(given[0].config["s3.endpoint"], "http://127.0.0.1:9000");
        assert!(credentials(&StorageSettings::default(), "s3://bucket/x").is_empty());
    }

    #[test]
    fn delegation_is_asked_for_in_a_list() {
        let asks = |value: &'static str| {
            let value = HeaderValue::from_static(value);
            asks_for_credentials(&HeaderMap::from_iter([(ACCESS_DELEGATION, value)]))
        };
        assert!(asks("vended-credentials"));
        assert!(asks("remote-signing, Vended-Credentials"));
        assert!(!asks("remote-signing"));
        assert!(!asks_for_credentials(&HeaderMap::new()));
    }
}
