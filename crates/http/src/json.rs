//! JSON bodies.

use axum::extract::{FromRequest, OptionalFromRequest, Request};
use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::fault::{Fault, FaultKind};

/// Objects and arrays inside each other, at most. Below the 128 at which the parser gives up, so
/// that whatever is accepted can be wrapped and read again.
const MAX_DEPTH: u32 = 100;
/// A body up to this size is decoded on the spot.
const DECODED_AT_ONCE: usize = 64 << 10;

/// A JSON body. The content type doesn't matter: clients forget it.
#[derive(Clone, Debug)]
pub struct Json<T> {
    /// What it says.
    pub value: T,
    /// As it was sent, for [`crate::RequestContext::fingerprint`].
    pub raw: Bytes,
}

impl<T, S> FromRequest<S> for Json<T>
where
    T: DeserializeOwned + Send + 'static,
    S: Send + Sync,
{
    type Rejection = Fault;

    async fn from_request(request: Request, state: &S) -> Result<Self, Fault> {
        decode(whole(request, state).await?).await
    }
}

/// `None` if there is no body.
impl<T, S> OptionalFromRequest<S> for Json<T>
where
    T: DeserializeOwned + Send + 'static,
    S: Send + Sync,
{
    type Rejection = Fault;

    async fn from_request(request: Request, state: &S) -> Result<Option<Self>, Fault> {
        let raw = whole(request, state).await?;
        if is_blank(&raw) {
            return Ok(None);
        }
        decode(raw).await.map(Some)
    }
}

/// The stack has read it already, within its limits.
async fn whole<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Fault> {
    let raw = Bytes::from_request(request, state).await;
    raw.map_err(|_| Fault::invalid("the body ended before it was complete"))
}

async fn decode<T: DeserializeOwned + Send + 'static>(raw: Bytes) -> Result<Json<T>, Fault> {
    let value = match raw.len() {
        0..=DECODED_AT_ONCE => parse(&raw)?,
        _ => parse_apart(raw.clone()).await?,
    };
    Ok(Json { value, raw })
}

fn is_blank(raw: &[u8]) -> bool {
    raw.iter().all(u8::is_ascii_whitespace)
}

/// Decodes where it keeps no other request waiting.
async fn parse_apart<T: DeserializeOwned + Send + 'static>(raw: Bytes) -> Result<T, Fault> {
    match tokio::task::spawn_blocking(move || parse(&raw)).await {
        Ok(parsed) => parsed,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only a runtime that ends cancels what was begun.
            Err(_) => Err(Fault::new(
                FaultKind::Overloaded,
                "the server is stopping; nothing was done",
            )),
        },
    }
}

fn parse<T: DeserializeOwned>(raw: &[u8]) -> Result<T, Fault> {
    if is_blank(raw) {
        return Err(Fault::invalid(
            "the request has no body; send a JSON object",
        ));
    }
    if is_deeper_than(raw, MAX_DEPTH) {
        return Err(Fault::invalid(format!(
            "the body has more than {MAX_DEPTH} objects and arrays inside each other"
        )));
    }
    // To keep the path for an error is most of the work where much is skipped.
    if let Ok(value) = serde_json::from_slice(raw) {
        return Ok(value);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(raw);
    let is_object = raw.trim_ascii_start().starts_with(b"{");
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let cause = error.into_inner();
        match (cause.classify(), path.as_str()) {
            (serde_json::error::Category::Data, ".") if !is_object => {
                Fault::invalid("the body does not fit: send a JSON object")
            }
            (serde_json::error::Category::Data, ".") => {
                Fault::invalid(format!("the body does not fit: {cause}"))
            }
            (serde_json::error::Category::Data, path) => {
                Fault::invalid(format!("field `{path}` does not fit: {cause}"))
            }
            _ => Fault::invalid(format!("the body is not JSON: {cause}")),
        }
    })?;
    deserializer
        .end()
        .map_err(|cause| Fault::invalid(format!("the body is not one JSON value: {cause}")))?;
    Ok(value)
}

fn is_deeper_than(raw: &[u8], limit: u32) -> bool {
    let (mut depth, mut is_text, mut is_escaped) = (0_u32, false, false);
    for byte in raw {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limit {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::Value;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Outer {
        inner: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    struct Inner {
        count: u32,
    }

    #[test]
    fn a_refusal_names_the_field() {
        let fault = parse::<Outer>(br#"{"inner":[{"count":1},{"count":"two"}]}"#);
        let message = fault.expect_err("a text is no number").message;
        assert!(message.contains("`inner[1].count`"), "{message}");
        for body in ["[]", "7", "null"] {
            let message = parse::<Outer>(body.as_bytes()).expect_err(body).message;
            assert!(message.contains("send a JSON object"), "{message}");
        }
        let outer = parse::<Outer>(br#"{"inner":[{"count":1}]}"#).expect("fits");
        assert_eq!(outer.inner[0].count, 1);
    }

    #[test]
    fn nothing_half_and_too_much_are_refused() {
        for body in ["", " \n", "{", "{} {}", "nonsense"] {
            let fault = parse::<Value>(body.as_bytes()).expect_err(body);
            assert_eq!(fault.kind, FaultKind::InvalidInput, "{body}");
        }
    }

    #[test]
    fn depth_is_bounded_and_brackets_in_texts_do_not_count() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(parse::<Value>(nested(100).as_bytes()).is_ok());
        assert!(parse::<Value>(nested(101).as_bytes()).is_err());
        let text = format!(r#"["{}\"{}"]"#, "[".repeat(200), "{".repeat(200));
        assert!(parse::<Value>(text.as_bytes()).is_ok());
    }
}
