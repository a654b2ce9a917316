//! What may name a branch or tag, and how names of databases select one.

use anabranch_partition::Refusal;
use anabranch_store::BranchState;

use super::body::{MAIN, ReferenceKind, ReferenceName, named_state};

/// Characters of a name, at most.
const LONGEST: usize = 128;
/// What would read as a pin in a selector.
const PIN: &str = "rev-";

/// What a name of a database selects beside `main`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selector {
    /// A branch or tag.
    Reference(ReferenceName),
    /// One state, for ever: `tag_rev-REVISION`.
    Pin(BranchState),
}

/// What stands between a database's name and a branch's or tag's.
const MARKERS: [(&str, ReferenceKind); 2] = [
    ("$branch_", ReferenceKind::Branch),
    ("$tag_", ReferenceKind::Tag),
];

impl ReferenceName {
    /// What selects it, behind the name of a database or warehouse.
    pub fn selector(&self) -> String {
        let marker = MARKERS.iter().find(|(_, kind)| *kind == self.kind);
        format!("{}{}", marker.map_or("", |(marker, _)| marker), self.name)
    }
}

/// Whether a name selects something, also if that is `main`.
pub(crate) fn has_selector(database: &str) -> bool {
    MARKERS.iter().any(|(marker, _)| database.contains(marker))
}

/// The plain name of a database, and what is selected of it. `main` is what is meant without a
/// selector, so selecting it is none.
pub(crate) fn split_selector(database: &str) -> Result<(&str, Option<Selector>), Refusal> {
    let found = MARKERS.iter().filter_map(|(marker, kind)| {
        let place = database.find(marker)?;
        Some((place, &database[place + marker.len()..], *kind))
    });
    let Some((place, name, kind)) = found.min_by_key(|(place, ..)| *place) else {
        return Ok((database, None));
    };
    let plain = &database[..place];
    let refuse = |why: &str| {
        let shown: String = database.chars().take(80).collect();
        Err(Refusal::invalid(format!("{shown:?} {why}")))
    };
    if plain.is_empty() {
        return refuse("selects a reference of no database; name the database before the `$`");
    }
    if let (ReferenceKind::Tag, Some(revision)) = (kind, name.strip_prefix(PIN)) {
        return match named_state(revision) {
            Some(state) => Ok((plain, Some(Selector::Pin(state)))),
            None => refuse("names no revision behind `rev-`; use one that an answer gave out"),
        };
    }
    if !is_reference_name(name) {
        return refuse(
            "selects what can't be the name of a reference: those have 1 to 128 letters, digits, \
             `.`, `_` and `-`, and start with a letter or digit",
        );
    }
    if kind == ReferenceKind::Branch && name == MAIN {
        return Ok((plain, None));
    }
    let name = name.to_owned();
    Ok((
        plain,
        Some(Selector::Reference(ReferenceName { kind, name })),
    ))
}

/// Refuses what can't name a new reference; `main` is one that is there.
pub(crate) fn check_reference_name(name: &str) -> Result<(), Refusal> {
    let refuse = |why: &str| {
        let shown: String = name.chars().take(40).collect();
        Err(Refusal::invalid(format!("`name` is {shown:?}, {why}")))
    };
    if !is_reference_name(name) {
        return refuse(
            "which is no name of a reference: those have 1 to 128 letters, digits, `.`, `_` and \
             `-`, and start with a letter or digit",
        );
    }
    if name.starts_with(PIN) {
        return refuse("which reads as a revision; choose a name that doesn't start with `rev-`");
    }
    Ok(())
}

/// Whether something can name a reference: `[A-Za-z0-9][A-Za-z0-9._-]{0,127}`.
pub(crate) fn is_reference_name(name: &str) -> bool {
    let mut characters = name.bytes();
    let starts = characters
        .next()
        .is_some_and(|first| first.is_ascii_alphanumeric());
    starts
        && name.len() <= LONGEST
        && characters.all(|one| one.is_ascii_alphanumeric() || b"._-".contains(&one))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(name: &str) -> Result<(String, Option<Selector>), Refusal> {
        let (plain, selector) = split_selector(name)?;
        Ok((plain.to_owned(), selector))
    }

    #[test]
    fn selectors() {
        let reference = |kind, name: &str| {
            let name = name.to_owned();
            Some(Selector::Reference(ReferenceName { kind, name }))
        };
        let branch = |name: &str| reference(ReferenceKind::Branch, name);
        let tag = |name: &str| reference(ReferenceKind::Tag, name);
        for (name, plain, selector) in [
            ("db", "db", None),
            ("a$b", "a$b", None),
            ("db$branch_main", "db", None),
            ("db$branch_x", "db", branch("x")),
            ("db$tag_v1.0", "db", tag("v1.0")),
            ("a$b$tag_1", "a$b", tag("1")),
            ("db$tag_main", "db", tag("main")),
        ] {
            let expected = (plain.to_owned(), selector);
            assert_eq!(selected(name).unwrap(), expected, "{name}");
        }
        let pin = selected("db$tag_rev-1a-ff").unwrap().1;
        assert!(matches!(pin, Some(Selector::Pin(_))));
        for name in [
            "$branch_x",
            "db$branch_",
            "db$branch_x$tag_y",
            "db$tag_rev-",
            "db$tag_rev-xyz",
            "db$branch_a b",
        ] {
            assert!(selected(name).is_err(), "{name}");
        }
    }

    #[test]
    fn names() {
        for name in ["a", "1", "42", "train_v1.0", "A-b", &"x".repeat(128)] {
            assert!(check_reference_name(name).is_ok(), "{name}");
        }
        for name in [
            "",
            "-a",
            ".a",
            "_a",
            "a b",
            "a/b",
            "é",
            "rev-1",
            &"x".repeat(129),
        ] {
            assert!(check_reference_name(name).is_err(), "{name}");
        }
    }
}
