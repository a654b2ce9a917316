//! Names that the server makes: metadata files that can't collide, and folder names that every
//! client opens.

use uuid::Uuid;

const SUFFIX: &str = ".metadata.json";
const MAX_SEGMENT: usize = 64;

/// The name of a metadata file: `{version:05}-{uuid}.metadata.json`. The version is for people who
/// look into the folder and for the clients that sort by it; the uuid is what makes it unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MetadataName {
    /// Counts up by one from the document that this one replaces; 0 for the first.
    pub version: u64,
    /// Fresh for every attempt to write a document.
    pub uuid: Uuid,
}

impl MetadataName {
    /// The name after `previous` (a metadata location or its file name, also one that another
    /// writer made, gzip ones too). A name without a readable version is followed by version 0.
    pub fn next(previous: Option<&str>, uuid: Uuid) -> Self {
        let version = previous
            .map(|location| location.rsplit('/').next().unwrap_or(location))
            .and_then(foreign_version)
            .map_or(0, |version| version.saturating_add(1));
        Self { version, uuid }
    }

    /// Reads a file name that [`MetadataName`] wrote. Takes the exact form only.
    pub fn parse(file_name: &str) -> Option<Self> {
        let (version, uuid) = file_name.strip_suffix(SUFFIX)?.split_once('-')?;
        let name = Self {
            version: digits(version)?,
            uuid: Uuid::try_parse(uuid).ok()?,
        };
        (name.to_string() == file_name).then_some(name)
    }

    /// Whether `file_name` has exactly the form of the names made here.
    pub fn is_ours(file_name: &str) -> bool {
        Self::parse(file_name).is_some()
    }
}

impl std::fmt::Display for MetadataName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:05}-{}{SUFFIX}",
            self.version,
            self.uuid.as_hyphenated()
        )
    }
}

/// The version in the names of other writers: `00003-<anything>`, and Hadoop's `v3.metadata.json`.
fn foreign_version(file_name: &str) -> Option<u64> {
    if let Some((version, _)) = file_name.split_once('-') {
        return digits(version);
    }
    let (version, _) = file_name.strip_prefix('v')?.split_once('.')?;
    digits(version)
}

fn digits(text: &str) -> Option<u64> {
    let only_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    only_digits.then(|| text.parse().ok()).flatten()
}

/// Maps any name to `[A-Za-z0-9._-]{1,64}`, for people who look into the warehouse. Different
/// names may give the same text: what makes a default location unique is the id beside it.
/// Never `.` or `..`, never a leading dot, underscore or dash (engines hide the first two).
pub fn sanitize_segment(name: &str) -> String {
    let mapped: String = name
        .chars()
        .map(|character| match character {
            'A'..='Z' | 'a'..='z' | '0'..='9' | '.' | '_' | '-' => character,
            _ => '_',
        })
        .collect();
    let shortened: String = mapped
        .trim_start_matches(['.', '_', '-'])
        .chars()
        .take(MAX_SEGMENT)
        .collect();
    let visible = shortened.trim_end_matches(['.', '_']);
    match visible {
        "" => "x".to_owned(),
        visible => visible.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn follows_the_names_of_other_writers() {
        let uuid = Uuid::from_u128(7);
        let version = |previous| MetadataName::next(previous, uuid).version;
        assert_eq!(version(None), 0);
        assert_eq!(
            version(Some("s3://b/t/metadata/00004-abc.gz.metadata.json")),
            5
        );
        assert_eq!(version(Some("00000-x.metadata.json")), 1);
        assert_eq!(version(Some("file:///t/metadata/v12.metadata.json")), 13);
        assert_eq!(version(Some("file:///00004-t/metadata/whatever.json")), 0);
        assert_eq!(version(Some("99999999999999999999999-x.metadata.json")), 0);
        assert_eq!(
            MetadataName::next(None, uuid).to_string(),
            "00000-00000000-0000-0000-0000-000000000007.metadata.json"
        );
    }

    #[test]
    fn only_the_exact_form_is_ours() {
        for foreign in [
            "0-00000000-0000-0000-0000-000000000007.metadata.json",
            "000000-00000000-0000-0000-0000-000000000007.metadata.json",
            "00000-00000000-0000-0000-0000-00000000000A.metadata.json",
            "00000-00000000000000000000000000000007.metadata.json",
            "00000-00000000-0000-0000-0000-000000000007.gz.metadata.json",
            "+0001-00000000-0000-0000-0000-000000000007.metadata.json",
            "v1.metadata.json",
        ] {
            assert!(!MetadataName::is_ours(foreign), "{foreign}");
        }
    }

    proptest! {
        #[test]
        fn names_come_back(version: u64, uuid: u128) {
            let name = MetadataName { version, uuid: Uuid::from_u128(uuid) };
            prop_assert_eq!(MetadataName::parse(&name.to_string()), Some(name));
        }

        #[test]
        fn any_text_is_parsed_without_panic(text in ".{0,90}") {
            if let Some(name) = MetadataName::parse(&text) {
                prop_assert_eq!(name.to_string(), text);
            }
        }

        #[test]
        fn any_name_becomes_a_plain_segment(name in "\\PC{0,100}") {
            let segment = sanitize_segment(&name);
            prop_assert!((1..=64).contains(&segment.len()));
            prop_assert!(segment.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)));
            prop_assert!(segment != "." && segment != "..");
            let location = crate::Location::parse("file:///w").unwrap().join(&segment);
            prop_assert!(location.is_ok());
        }
    }
}
