//! Ids that are counted on from those that are there.

use crate::error::UpdateError;

/// The id after the highest one, but at least `first`.
pub(crate) fn next_id(
    what: &str,
    ids: impl Iterator<Item = i32>,
    first: i32,
) -> Result<i32, UpdateError> {
    match ids.max() {
        Some(highest) => Ok(id_after(what, highest)?.max(first)),
        None => Ok(first),
    }
}

/// The id after another one; refused where there is none any more.
pub(crate) fn id_after(what: &str, last: i32) -> Result<i32, UpdateError> {
    last.checked_add(1).ok_or_else(|| {
        UpdateError::invalid(format!(
            "the id {last} leaves none for another {what}; give it a smaller id"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_count_on_from_the_highest_and_end_in_a_refusal() {
        assert_eq!(next_id("schema", [].into_iter(), 0), Ok(0));
        assert_eq!(next_id("schema", [4, 2].into_iter(), 0), Ok(5));
        assert_eq!(next_id("sort order", [-3].into_iter(), 1), Ok(1));
        assert!(next_id("schema", [i32::MAX].into_iter(), 0).is_err());
    }
}
