//! Names in paths: form-decoded exactly once, from the bytes that the client sent.
//!
//! Clients differ in how they write a space: PyIceberg and DuckDB send `%20`, the Java clients of
//! Iceberg and Paimon send `+` (`URLEncoder`), and all of them send a plus sign as `%2B`. So a
//! segment is decoded as a form value is: `+` is a space, `%XX` a byte, everything else itself.
//! The router's own decoding leaves `+` alone and can't be used for names.

use axum::extract::{FromRequestParts, MatchedPath, OriginalUri};
use http::header::USER_AGENT;
use http::request::Parts;
use http::{HeaderMap, HeaderValue};

use crate::fault::{Fault, FaultKind};

/// The names that stand for the parameters of the matched route, in their order.
///
/// ```
/// # use anabranch_http::PathNames;
/// // on route "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
/// async fn load(PathNames([prefix, namespace, table]): PathNames<3>) {}
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathNames<const N: usize>(pub [String; N]);

impl<S: Send + Sync, const N: usize> FromRequestParts<S> for PathNames<N> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Fault> {
        let uri = parts.extensions.get::<OriginalUri>();
        let raw_path = uri.map_or(parts.uri.path(), |original| original.0.path());
        let template = parts.extensions.get::<MatchedPath>();
        let template = template.map_or("", MatchedPath::as_str);
        let names = names(template, raw_path, Plus::of(&parts.headers))?;
        let names = <[String; N]>::try_from(names).map_err(|names| {
            tracing::error!(
                template,
                wanted = N,
                found = names.len(),
                "route's parameters"
            );
            let message = "the server has a defect in this route";
            Fault::new(
                FaultKind::Internal {
                    may_be_applied: false,
                },
                message,
            )
        })?;
        Ok(PathNames(names))
    }
}

/// What a plus sign in a path stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plus {
    /// A space, as in a form.
    Space,
    /// Itself. The Rust client of Iceberg doesn't encode names: from it, `a+b` must never reach
    /// the table `a b`.
    Itself,
}

impl Plus {
    fn of(headers: &HeaderMap) -> Plus {
        let agent = headers.get(USER_AGENT).map(HeaderValue::as_bytes);
        match agent {
            Some(agent) if agent.starts_with(b"iceberg-rs/") => Plus::Itself,
            _ => Plus::Space,
        }
    }
}

/// The decoded segments of `raw_path` where `template` has a parameter.
fn names(template: &str, raw_path: &str, plus: Plus) -> Result<Vec<String>, Fault> {
    let is_parameter = |segment: &str| segment.starts_with('{');
    template
        .split('/')
        .zip(raw_path.split('/'))
        .filter(|(segment, _)| is_parameter(segment))
        .map(|(segment, raw)| {
            let name = form_decode(raw, plus)?;
            refuse_nul(segment.trim_matches(['{', '}', '*']), &name)?;
            Ok(name)
        })
        .collect()
}

/// Nothing has a NUL character in its name, and not every store can be asked for one.
pub(crate) fn refuse_nul(field: &str, value: &str) -> Result<(), Fault> {
    if value.contains('\0') {
        let message = format!("`{field}` has a NUL character; leave it out");
        return Err(Fault::invalid(message));
    }
    Ok(())
}

fn form_decode(raw: &str, plus: Plus) -> Result<String, Fault> {
    let mut decoded = Vec::with_capacity(raw.len());
    let mut bytes = raw.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' if plus == Plus::Space => b' ',
            b'%' => {
                let high = bytes.next().and_then(hex_digit);
                let low = bytes.next().and_then(hex_digit);
                match (high, low) {
                    (Some(high), Some(low)) => high << 4 | low,
                    _ => {
                        return Err(Fault::invalid(format!(
                            "`{raw}` in the path is not encoded: write a percent sign as %25"
                        )));
                    }
                }
            }
            other => other,
        });
    }
    String::from_utf8(decoded)
        .map_err(|_| Fault::invalid(format!("`{raw}` in the path is not UTF-8")))
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

/// A name that was encoded once more than the protocol says; `None` if it was not.
pub fn decode_name(encoded: &str) -> Option<String> {
    if !encoded.contains('%') {
        return None;
    }
    form_decode(encoded, Plus::Space).ok()
}

/// A name as a path segment that every server decodes to the same name, form-decoding or not.
pub fn encode_name(name: &str) -> String {
    use std::fmt::Write;

    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            // Writing to a String can't fail.
            other => drop(write!(encoded, "%{other:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "/iceberg/v1/{prefix}/namespaces/{namespace}/tables/{table}";

    fn decoded(path: &str) -> Vec<String> {
        names(TABLE, path, Plus::Space).expect("decodes")
    }

    #[test]
    fn a_name_is_the_same_from_every_client() {
        let name = "a b+c%d.e$f😀";
        // urllib.parse.quote(name, safe="")
        let pyiceberg = "a%20b%2Bc%25d.e%24f%F0%9F%98%80";
        // java.net.URLEncoder.encode(name, UTF_8)
        let java = "a+b%2Bc%25d.e%24f%F0%9F%98%80";
        // StringUtil::URLEncode
        let duckdb = "a%20b%2Bc%25d.e%24f%F0%9F%98%80";
        for segment in [pyiceberg, java, duckdb] {
            let path = format!("/iceberg/v1/lake/namespaces/{segment}/tables/{segment}");
            assert_eq!(decoded(&path), ["lake", name, name], "{segment}");
        }
    }

    #[test]
    fn an_encoded_slash_stays_in_its_name_and_decoding_happens_once() {
        let path = "/iceberg/v1/m%2Elake/namespaces/a%1Fb/tables/x%2Fy%2520z";
        assert_eq!(decoded(path), ["m.lake", "a\u{1f}b", "x/y%20z"]);
    }

    #[test]
    fn what_is_not_encoded_is_refused_rather_than_guessed() {
        for segment in ["100%", "%zz", "%2", "%FF"] {
            let path = format!("/iceberg/v1/lake/namespaces/n/tables/{segment}");
            let fault = names(TABLE, &path, Plus::Space).expect_err(segment);
            assert_eq!(fault.kind, FaultKind::InvalidInput);
        }
    }

    #[test]
    fn a_nul_character_is_refused_and_its_parameter_named() {
        let path = "/iceberg/v1/lake/namespaces/n/tables/a%00b";
        let fault = names(TABLE, path, Plus::Space).expect_err("a NUL");
        assert_eq!(fault.kind, FaultKind::InvalidInput);
        assert!(fault.message.contains("`table`"), "{fault}");
    }

    #[test]
    fn an_encoded_name_comes_back() {
        let name = "a b+c%d.e$f/😀\u{1f}~";
        assert_eq!(
            form_decode(&encode_name(name), Plus::Space).as_deref(),
            Ok(name)
        );
    }
}
