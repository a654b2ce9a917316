//! What a request says about itself, whatever it asks for.

use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, OriginalUri};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, Method, Uri};

use crate::fault::{Fault, FaultKind};
use crate::fingerprint::{BodyDigest, with_digest};
use crate::request_id::RequestId;

/// Who a request comes from if it doesn't say.
const ANONYMOUS: &str = "anonymous";
const IDEMPOTENCY_KEY: &str = "idempotency-key";
const MAX_KEY_LENGTH: usize = 128;
const MAX_PRINCIPAL_LENGTH: usize = 256;
/// Counts where no [`crate::Stack`] surrounds the router.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Until when a request is answered; set by the [`crate::Stack`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(pub(crate) Instant);

impl Deadline {
    pub(crate) fn of(extensions: &http::Extensions) -> Instant {
        let set = extensions.get::<Deadline>();
        set.map_or_else(|| Instant::now() + DEFAULT_TIMEOUT, |deadline| deadline.0)
    }
}

/// Who asks, under which operation key, until when.
#[derive(Clone, Debug)]
pub struct RequestContext {
    /// The user name of HTTP Basic authentication, else `anonymous`.
    pub principal: String,
    /// The `Idempotency-Key`, at most 128 visible ASCII characters.
    pub idempotency_key: Option<String>,
    /// The id on the answer and in the log.
    pub request_id: RequestId,
    /// When the caller gets a 504 at the latest.
    pub deadline: Instant,
    /// The request's headers.
    pub headers: HeaderMap,
    method: Method,
    uri: Uri,
    body_digest: Option<BodyDigest>,
}

impl RequestContext {
    /// The digest of everything that this request asks for; `body` is the request's own, as it
    /// was sent, or empty if it has none or none that counts.
    pub fn fingerprint(&self, body: &[u8]) -> String {
        let target = self
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str());
        with_digest(&self.method, target, body, || match self.body_digest {
            Some(digest) if !body.is_empty() => digest,
            _ => BodyDigest::of(body),
        })
    }

    /// How long the request may wait for its turn: half of what is left. The other half is for
    /// running it, and for finding out what became of a COMMIT whose answer was lost.
    pub fn patience(&self) -> Duration {
        self.time_left() / 2
    }

    /// How long until the caller gets a 504.
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RequestContext {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Fault> {
        let original = parts.extensions.get::<OriginalUri>();
        Ok(RequestContext {
            principal: principal(&parts.headers)?,
            idempotency_key: idempotency_key(&parts.headers)?,
            request_id: match parts.extensions.get::<RequestId>() {
                Some(id) => id.clone(),
                None => RequestId::of(&parts.headers),
            },
            deadline: Deadline::of(&parts.extensions),
            headers: parts.headers.clone(),
            method: parts.method.clone(),
            uri: original.map_or_else(|| parts.uri.clone(), |original| original.0.clone()),
            body_digest: parts.extensions.get::<BodyDigest>().copied(),
        })
    }
}

/// `Bearer` anything and unknown schemes are anonymous: clients send them unasked (PyIceberg says
/// `Bearer None`). A Basic header that can't be read is refused: whoever sends it believes to act
/// under a name.
fn principal(headers: &HeaderMap) -> Result<String, Fault> {
    let Some(value) = headers.get(AUTHORIZATION) else {
        return Ok(ANONYMOUS.to_owned());
    };
    let unreadable = |what: &str| {
        let message = format!(
            "the Authorization header has {what}; send `Basic` with base64 of `user:password`, or no such header"
        );
        Fault::new(FaultKind::Unauthenticated, message)
    };
    let text = value.to_str().unwrap_or_default();
    let (scheme, credentials) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("basic") {
        return Ok(ANONYMOUS.to_owned());
    }
    let pair = STANDARD
        .decode(credentials.trim())
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| unreadable("credentials that are not base64 of UTF-8"))?;
    let (user, _password) = pair
        .split_once(':')
        .ok_or_else(|| unreadable("credentials without a colon"))?;
    if user.len() > MAX_PRINCIPAL_LENGTH || user.chars().any(char::is_control) {
        return Err(unreadable(
            "a user name that is too long or has control characters",
        ));
    }
    match user {
        "" => Ok(ANONYMOUS.to_owned()),
        user => Ok(user.to_owned()),
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Fault> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).into_iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let is_one = values.next().is_none();
    let bytes = value.as_bytes();
    let fits = (1..=MAX_KEY_LENGTH).contains(&bytes.len());
    match value.to_str() {
        Ok(key) if is_one && fits && bytes.iter().all(u8::is_ascii_graphic) => {
            Ok(Some(key.to_owned()))
        }
        _ => Err(Fault::invalid(format!(
            "the Idempotency-Key header must be one value of 1 to {MAX_KEY_LENGTH} visible ASCII \
             characters; a UUIDv7 does well"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn principal_of(value: &str) -> Result<String, FaultKind> {
        let value = HeaderValue::from_str(value).expect("a header");
        let headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
        principal(&headers).map_err(|fault| fault.kind)
    }

    #[test]
    fn basic_names_the_principal_and_everything_else_is_anonymous() {
        let basic = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
        assert_eq!(principal_of(&basic("ann:secret")), Ok("ann".into()));
        assert_eq!(principal_of(&basic("ann:se:cret")), Ok("ann".into()));
        assert_eq!(principal_of(&basic(":x")), Ok(ANONYMOUS.into()));
        assert_eq!(principal_of("Bearer None"), Ok(ANONYMOUS.into()));
        assert_eq!(principal_of("AWS4-HMAC-SHA256 x"), Ok(ANONYMOUS.into()));
        assert_eq!(principal(&HeaderMap::new()), Ok(ANONYMOUS.into()));
    }

    #[test]
    fn a_name_that_cannot_be_read_is_not_made_anonymous() {
        for value in ["Basic", "Basic ???", "basic YW5u"] {
            assert_eq!(
                principal_of(value),
                Err(FaultKind::Unauthenticated),
                "{value}"
            );
        }
    }

    #[test]
    fn a_key_is_one_short_visible_ascii_value() {
        let key = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                let value = HeaderValue::from_str(value).expect("a header");
                headers.append(IDEMPOTENCY_KEY, value);
            }
            idempotency_key(&headers).map_err(|fault| fault.kind)
        };
        assert_eq!(key(&[]), Ok(None));
        assert_eq!(key(&["k-1"]), Ok(Some("k-1".into())));
        let long = "x".repeat(MAX_KEY_LENGTH + 1);
        for values in [&[""][..], &["two words"], &["ä"], &[&long], &["a", "b"]] {
            assert_eq!(key(values), Err(FaultKind::InvalidInput), "{values:?}");
        }
    }
}
