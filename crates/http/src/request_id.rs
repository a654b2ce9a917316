//! The id under which a request is found in the log.

use http::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

/// The header that carries it, in requests and on every answer.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const MAX_LENGTH: usize = 128;

/// The caller's id if it is sane, else one of our own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(String);

impl RequestId {
    /// A fresh one.
    pub fn fresh() -> RequestId {
        RequestId(Uuid::new_v4().to_string())
    }

    /// The id that a request brings, or a fresh one.
    pub fn of(headers: &HeaderMap) -> RequestId {
        let is_sane = |text: &&str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
            (1..=MAX_LENGTH).contains(&text.len()) && text.bytes().all(allowed)
        };
        let brought = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
        match brought.filter(is_sane) {
            Some(id) => RequestId(id.to_owned()),
            None => RequestId::fresh(),
        }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As a header value; `None` can't happen, since every id is sane.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.0).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &'static str) -> RequestId {
        RequestId::of(&HeaderMap::from_iter([(
            REQUEST_ID,
            HeaderValue::from_static(value),
        )]))
    }

    #[test]
    fn a_sane_id_is_kept_and_any_other_replaced() {
        assert_eq!(of("job-7:step.2").as_str(), "job-7:step.2");
        assert_ne!(of("two words").as_str(), "two words");
        assert_ne!(of("").as_str(), "");
    }
}
