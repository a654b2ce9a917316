//! Entity tags. All are weak: one tag names the plain and the compressed form of an answer.

use http::header::IF_NONE_MATCH;
use http::{HeaderMap, HeaderValue};

/// The tag of a content id. Characters that can't stand in a tag are replaced.
pub fn weak_etag(content: &str) -> HeaderValue {
    let opaque: String = content
        .chars()
        .map(|char| {
            if char.is_ascii_graphic() && char != '"' {
                char
            } else {
                '_'
            }
        })
        .collect();
    HeaderValue::from_str(&format!("W/\"{opaque}\""))
        .unwrap_or_else(|_| HeaderValue::from_static("W/\"\""))
}

/// Whether the caller already holds this content: its `If-None-Match` names the tag (by weak
/// comparison) or is `*`.
pub fn is_unchanged(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let Ok(current) = etag.to_str().map(opaque) else {
        return false;
    };
    let lines = headers.get_all(IF_NONE_MATCH).into_iter();
    let mut tags = lines.filter_map(|line| line.to_str().ok()).flat_map(tags);
    tags.any(|tag| tag == "*" || opaque(tag) == current)
}

/// Splits at commas outside quotation marks.
fn tags(line: &str) -> Vec<&str> {
    let mut inside = false;
    line.split(|char| {
        if char == '"' {
            inside = !inside;
        }
        char == ',' && !inside
    })
    .map(str::trim)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_weak_or_strong_and_in_a_list() {
        let etag = weak_etag("lake/7,all");
        let unchanged = |value: &'static str| {
            let value = HeaderValue::from_static(value);
            is_unchanged(&HeaderMap::from_iter([(IF_NONE_MATCH, value)]), &etag)
        };
        assert!(unchanged("W/\"lake/7,all\""));
        assert!(unchanged("\"other\", \"lake/7,all\""));
        assert!(unchanged("*"));
        assert!(!unchanged("W/\"lake/8,all\""));
        assert!(!is_unchanged(&HeaderMap::new(), &etag));
    }
}
