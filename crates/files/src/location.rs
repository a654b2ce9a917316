//! Where a file or folder is: parsed, checked, compared by place.
//!
//! The text after `file://` or `s3://bucket/` is taken **literally**: nothing is percent-decoded.
//! That is how the clients open it (pyarrow's and fsspec's file IO in PyIceberg, DuckDB and Hadoop
//! paths use the text as it stands): `file:///w/a%20b` is the folder `a%20b`, and `file:///w/a b`
//! the folder `a b`. `?` and `#` are refused, because PyIceberg cuts a location off at
//! both, and `*`, because DuckDB reads it as a pattern.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use crate::error::FileError;

/// Longest object key that S3 takes, in bytes.
const MAX_KEY_BYTES: usize = 1024;
/// Longest path that Linux opens, in bytes, with room for a file name of ours.
const MAX_PATH_BYTES: usize = 4000;
/// Longest file name on the common file systems, in bytes.
const MAX_FILE_NAME_BYTES: usize = 255;

/// The kind of store that a location lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// A local folder.
    File,
    /// A bucket of an object store that speaks S3 (`s3://`, `s3a://`, `s3n://`).
    S3,
}

/// The URL of a file or folder.
///
/// Two locations are equal when they name the same place: `s3a://b/k/` equals `s3://b/k`, and
/// `file:/a//b` equals `file:///a/b`. Links in a local file system aren't resolved.
#[derive(Debug, Clone)]
pub struct Location {
    spelling: String,
    scheme: Scheme,
    bucket: String,
    key: String,
}

impl Location {
    /// Parses a location as a client or an operator wrote it.
    ///
    /// Refused: relative paths, unknown schemes, a host in a `file` URL, an empty bucket, `.` and
    /// `..` segments (percent-encoded ones too), `?`, `#`, `*`, control characters, empty segments in
    /// an object key, and what is too long for the store.
    pub fn parse(spelling: &str) -> Result<Self, FileError> {
        let refuse = |why: &str| Err(FileError::invalid_location(spelling, why));
        if spelling.chars().any(char::is_control) {
            return refuse("control characters are not allowed");
        }
        if spelling.contains(['?', '#']) {
            return refuse("'?' and '#' are not allowed, clients would cut the path off there");
        }
        if spelling.contains('*') {
            return refuse("'*' is not allowed, DuckDB would read it as a pattern");
        }
        let Some((scheme_text, rest)) = spelling.split_once(':') else {
            return refuse("write it as file:///folder or s3://bucket/folder");
        };
        match scheme_text {
            "file" => Self::parse_file(spelling, rest),
            "s3" | "s3a" | "s3n" => Self::parse_s3(spelling, rest),
            _ => refuse("unknown scheme, write it as file:///folder or s3://bucket/folder"),
        }
    }

    fn parse_file(spelling: &str, rest: &str) -> Result<Self, FileError> {
        let refuse = |why: &str| Err(FileError::invalid_location(spelling, why));
        let path = match rest.strip_prefix("//") {
            Some(path) if path.starts_with('/') => path,
            Some(_) => return refuse("a host or a relative path is not allowed after file://"),
            None if rest.starts_with('/') => rest,
            None => return refuse("a relative path is not allowed"),
        };
        let segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        if segments.is_empty() {
            return refuse("the root of the file system is not allowed");
        }
        if segments.iter().any(|part| part.len() > MAX_FILE_NAME_BYTES) {
            return refuse("a part of the path is longer than 255 bytes");
        }
        if path.len() > MAX_PATH_BYTES {
            return refuse("the path is longer than 4000 bytes");
        }
        Self::checked(spelling, Scheme::File, "", &segments)
    }

    fn parse_s3(spelling: &str, rest: &str) -> Result<Self, FileError> {
        let refuse = |why: &str| Err(FileError::invalid_location(spelling, why));
        let Some(rest) = rest.strip_prefix("//") else {
            return refuse("write it as s3://bucket/folder");
        };
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return refuse("the bucket is missing");
        }
        let bucket_is_plain = bucket
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        if !bucket_is_plain || bucket.len() > 255 {
            return refuse("the bucket may have letters, digits, '-', '.' and '_' only");
        }
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.len() > MAX_KEY_BYTES {
            return refuse("the key is longer than 1024 bytes");
        }
        let segments: Vec<&str> = match path {
            "" => Vec::new(),
            path => path.split('/').collect(),
        };
        if segments.iter().any(|part| part.is_empty()) {
            return refuse("empty parts ('//') are not allowed in an object key");
        }
        Self::checked(spelling, Scheme::S3, bucket, &segments)
    }

    fn checked(
        spelling: &str,
        scheme: Scheme,
        bucket: &str,
        segments: &[&str],
    ) -> Result<Self, FileError> {
        if segments.iter().any(|part| is_dot_segment(part)) {
            let why = "'.' and '..' are not allowed as parts of the path";
            return Err(FileError::invalid_location(spelling, why));
        }
        Ok(Self {
            spelling: spelling.to_owned(),
            scheme,
            bucket: bucket.to_owned(),
            key: segments.join("/"),
        })
    }

    /// The location as the caller wrote it. This is what goes into metadata and to clients.
    pub fn as_str(&self) -> &str {
        &self.spelling
    }

    /// The one spelling that all equal locations share: `file:///…` or `s3://…`, no slash at the
    /// end. The keys for sets of locations.
    pub fn canonical(&self) -> String {
        match self.scheme {
            Scheme::File => format!("file:///{}", self.key),
            Scheme::S3 if self.key.is_empty() => format!("s3://{}", self.bucket),
            Scheme::S3 => format!("s3://{}/{}", self.bucket, self.key),
        }
    }

    /// The kind of store.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The bucket; empty for `file`.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The path in its store without a slash at either end; empty for a whole bucket.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The last part of the path; empty for a whole bucket.
    pub fn file_name(&self) -> &str {
        self.key.rsplit('/').next().unwrap_or_default()
    }

    /// The location `relative` below this one, in this one's spelling. The same rules as in
    /// [`Location::parse`] hold for the result; a `relative` that is empty or starts or ends with
    /// a slash is refused.
    pub fn join(&self, relative: &str) -> Result<Self, FileError> {
        let is_relative =
            !relative.is_empty() && !relative.starts_with('/') && !relative.ends_with('/');
        if !is_relative {
            return Err(FileError::invalid_location(
                relative,
                "not a path below a folder",
            ));
        }
        Self::parse(&self.spelling_below(relative))
    }

    /// Whether this is `other` or lies below it, by whole parts of the path. Says nothing of links.
    pub fn is_within(&self, other: &Self) -> bool {
        if self.scheme != other.scheme || self.bucket != other.bucket {
            return false;
        }
        match self.key.strip_prefix(&other.key) {
            Some(rest) => rest.is_empty() || other.key.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }

    /// Whether one of the two lies within the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.is_within(other) || other.is_within(self)
    }

    /// A file that the store itself listed: its name is taken as it is, even if a client could
    /// not have asked for it.
    pub(crate) fn listed(&self, key: &str) -> Self {
        let relative = key.strip_prefix(&self.key).unwrap_or(key);
        Self {
            spelling: self.spelling_below(relative.trim_start_matches('/')),
            scheme: self.scheme,
            bucket: self.bucket.clone(),
            key: key.to_owned(),
        }
    }

    pub(crate) fn local_path(&self) -> PathBuf {
        PathBuf::from(format!("/{}", self.key))
    }

    fn spelling_below(&self, relative: &str) -> String {
        format!("{}/{relative}", self.spelling.trim_end_matches('/'))
    }

    fn place(&self) -> (Scheme, &str, &str) {
        (self.scheme, &self.bucket, &self.key)
    }
}

fn is_dot_segment(segment: &str) -> bool {
    let decoded = percent_decode_str(segment).decode_utf8_lossy();
    decoded.split('/').any(|part| part == "." || part == "..")
}

impl PartialEq for Location {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Location {}

impl Hash for Location {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.place().hash(state);
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelling)
    }
}

impl std::str::FromStr for Location {
    type Err = FileError;

    fn from_str(spelling: &str) -> Result<Self, FileError> {
        Self::parse(spelling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(spelling: &str) -> Location {
        Location::parse(spelling).unwrap()
    }

    #[test]
    fn refuses_what_clients_would_read_differently() {
        for spelling in [
            "",
            "a/b",
            "/a/b",
            "file:a",
            "file://host/a",
            "file://a",
            "file://",
            "file:///",
            "file:///a/../b",
            "file:///a/./b",
            "file:///a/%2e%2E/b",
            "file:///a/%2E./b",
            "file:///a/x%2f..%2fy",
            "file:///a?b",
            "file:///a#b",
            "file:///a*b",
            "file:///a\nb",
            "s3://",
            "s3:///key",
            "s3:bucket/key",
            "s3://user:secret@bucket/key",
            "s3://bucket/a//b",
            "s3://bucket//a",
            "S3://bucket/a",
            "gs://bucket/a",
            "spark-warehouse/x",
        ] {
            assert!(Location::parse(spelling).is_err(), "{spelling:?}");
        }
        assert!(Location::parse(&format!("file:///{}", "x".repeat(256))).is_err());
        assert!(Location::parse(&format!("s3://b/{}", "x".repeat(1025))).is_err());
    }

    #[test]
    fn equal_by_place_and_printed_as_written() {
        assert_eq!(parse("s3a://b/k/"), parse("s3://b/k"));
        assert_eq!(parse("s3n://b"), parse("s3://b/"));
        assert_eq!(parse("file:/a//b/"), parse("file:///a/b"));
        assert_ne!(parse("file:///a%20b"), parse("file:///a b"));
        assert_eq!(parse("s3a://b/k/").as_str(), "s3a://b/k/");
        assert_eq!(parse("s3a://b/k/").canonical(), "s3://b/k");
        assert_eq!(
            parse("s3a://b/k/").join("m/x").unwrap().as_str(),
            "s3a://b/k/m/x"
        );
    }

    #[test]
    fn within_counts_whole_parts() {
        assert!(parse("file:///w/a/b").is_within(&parse("file:///w/a")));
        assert!(parse("file:///w/a").is_within(&parse("file:/w/a/")));
        assert!(!parse("file:///w/ab").is_within(&parse("file:///w/a")));
        assert!(!parse("s3://b1/a").is_within(&parse("s3://b2")));
        assert!(parse("s3://b/a").is_within(&parse("s3://b")));
        assert!(parse("s3://b").overlaps(&parse("s3a://b/x/y")));
        assert!(!parse("s3://b/w").overlaps(&parse("file:///b/w")));
    }

    #[test]
    fn joining_leaves_no_way_up_or_out() {
        let base = parse("file:///w/t");
        for relative in ["", "/x", "x/", "../x", "x/../../y", "x?y"] {
            assert!(base.join(relative).is_err(), "{relative:?}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in ".{0,80}") {
            let _ = Location::parse(&text);
            let _ = Location::parse(&format!("file:///{text}"));
            let _ = Location::parse(&format!("s3://{text}"));
        }

        #[test]
        fn canonical_spelling_is_a_fixed_point(text in "[a-zA-Z0-9 %+&;=@äß日🦀._/-]{0,60}") {
            for spelling in [format!("file:///{text}"), format!("s3a://bucket/{text}")] {
                if let Ok(location) = Location::parse(&spelling) {
                    prop_assert_eq!(location.as_str(), spelling.as_str());
                    let again = Location::parse(&location.canonical()).unwrap();
                    prop_assert_eq!(again.canonical(), location.canonical());
                    prop_assert_eq!(again, location);
                }
            }
        }

        #[test]
        fn joined_lies_within(part in "[a-z %äß🦀._-]{1,20}", rest in "[a-z0-9]{1,8}") {
            let base = parse("s3://bucket/w");
            if let Ok(child) = base.join(&format!("{part}/{rest}")) {
                prop_assert!(child.is_within(&base));
                prop_assert!(!base.is_within(&child));
                prop_assert_eq!(child.file_name(), rest);
            }
        }
    }
}
