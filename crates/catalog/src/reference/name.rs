//! What may name a branch or tag, and how names of databases select one.

use anabranch_partition::Refusal;

use super::body::MAIN;

/// Characters of a name, at most.
const LONGEST: usize = 128;
/// What would read as a pin in a selector.
const PIN: &str = "rev-";

/// Refuses what can't name a new reference.
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
    if name == MAIN {
        return refuse("which every database has already");
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
            "main",
            "rev-1",
            &"x".repeat(129),
        ] {
            assert!(check_reference_name(name).is_err(), "{name}");
        }
    }
}
