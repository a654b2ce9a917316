//! What requests say of references, read and checked.

use anabranch_catalog::SourceReference;
use anabranch_catalog::reference::{ReferenceKind, ReferenceName};
use anabranch_partition::Refusal;
use serde::Deserialize;
use utoipa::ToSchema;

/// Characters of the name of a reference, at most.
const LONGEST_NAME: usize = 128;

/// Which reference, and maybe exactly which state of it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Source {
    /// `BRANCH` or `TAG`.
    r#type: String,
    name: String,
    /// Exactly this state, though the branch may have moved since.
    revision: Option<String>,
}

impl Source {
    pub(crate) fn read(self) -> Result<SourceReference, Refusal> {
        Ok(SourceReference {
            name: ReferenceName {
                kind: kind("source.type", &self.r#type)?,
                name: name("source.name", self.name)?,
            },
            revision: self.revision,
        })
    }
}

pub(crate) fn kind(field: &str, text: &str) -> Result<ReferenceKind, Refusal> {
    match text {
        "BRANCH" => Ok(ReferenceKind::Branch),
        "TAG" => Ok(ReferenceKind::Tag),
        other => Err(Refusal::invalid(format!(
            "`{field}` is {}; it is BRANCH or TAG",
            quoted(other)
        ))),
    }
}

/// A name that is looked up: one that is too long for any reference is refused rather than looked
/// for and repeated in the answer.
pub(crate) fn name(field: &str, text: String) -> Result<String, Refusal> {
    if text.chars().count() > LONGEST_NAME {
        return Err(Refusal::invalid(format!(
            "`{field}` is {}, which is longer than the {LONGEST_NAME} characters that names of \
             references have at most",
            quoted(&text)
        )));
    }
    Ok(text)
}

/// What a client sent, as messages repeat it: not all of it if it is long.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 40;
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_never_repeats_all_of_a_long_text() {
        let long = "x".repeat(1_000_000);
        let refusals = [
            kind("type", &long).map(|_| ()),
            name("source.name", long).map(|_| ()),
        ];
        for refusal in refusals {
            let message = refusal.expect_err("too long").message;
            assert!(message.len() < 200 && message.contains('…'), "{message}");
        }
        assert_eq!(
            name("name", "x".repeat(LONGEST_NAME))
                .as_deref()
                .map(str::len),
            Ok(LONGEST_NAME)
        );
    }
}
