//! Listings as stretches of the key order: how `Range` and `Under` become index scans.

use crate::entry::Class;

/// The levels of a scope are joined by this.
pub(crate) const LEVEL_SEPARATOR: char = '\u{1f}';
/// The character behind the separator: the end of everything below a scope.
const BEHIND_SEPARATOR: char = '\u{20}';

/// A place in the order (scope, class, name). Classes start at 1: number 0 lies before a scope.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub scope: String,
    pub class: i16,
    pub name: String,
}

impl Place {
    fn new(scope: &str, class: i16, name: &str) -> Place {
        Place {
            scope: scope.to_owned(),
            class,
            name: name.to_owned(),
        }
    }
}

/// A stretch of keys within one partition and branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub from: Place,
    /// Whether `from` itself belongs to it.
    pub inclusive: bool,
    /// The first place that no longer belongs to it; to the end if `None`.
    pub to: Option<Place>,
}

impl Segment {
    /// Names of one scope and class behind `after`.
    pub fn range(scope: &str, class: Class, after: Option<&str>) -> Segment {
        let number = class as i16;
        Segment {
            from: Place::new(scope, number, after.unwrap_or_default()),
            inclusive: after.is_none(),
            to: Some(Place::new(scope, number + 1, "")),
        }
    }

    /// Everything in a scope and below it behind `after`: the scope itself and its descendants
    /// needn't be neighbours in the byte order, so these are up to two stretches.
    pub fn under(scope: &str, after: Option<&(String, Class, String)>) -> Vec<Segment> {
        let stretches = if scope.is_empty() {
            vec![(Place::new("", 0, ""), None)]
        } else {
            let below = format!("{scope}{LEVEL_SEPARATOR}");
            let behind = format!("{scope}{BEHIND_SEPARATOR}");
            vec![
                (
                    Place::new(scope, 0, ""),
                    Some(Place::new(scope, i16::MAX, "")),
                ),
                (Place::new(&below, 0, ""), Some(Place::new(&behind, 0, ""))),
            ]
        };
        let after = after.map(|(scope, class, name)| Place::new(scope, *class as i16, name));
        stretches
            .into_iter()
            .filter_map(|(start, to)| match &after {
                Some(after) if to.as_ref().is_some_and(|to| after >= to) => None,
                Some(after) if *after >= start => Some(Segment {
                    from: after.clone(),
                    inclusive: false,
                    to,
                }),
                _ => Some(Segment {
                    from: start,
                    inclusive: true,
                    to,
                }),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(segments: &[Segment], scope: &str) -> bool {
        let place = Place::new(scope, 2, "t");
        segments.iter().any(|segment| {
            (place > segment.from || segment.inclusive && place == segment.from)
                && segment.to.as_ref().is_none_or(|to| place < *to)
        })
    }

    #[test]
    fn under_covers_the_scope_and_what_is_below_it_only() {
        let segments = Segment::under("a", None);
        for inside in ["a", "a\u{1f}b", "a\u{1f}b\u{1f}c", "a\u{1f}\u{10ffff}"] {
            assert!(covers(&segments, inside), "{inside:?}");
        }
        for outside in ["", "A", "a\u{1}", "a\u{1e}x", "a b", "ab", "b"] {
            assert!(!covers(&segments, outside), "{outside:?}");
        }
    }

    #[test]
    fn under_goes_on_behind_the_last_key() {
        let after = ("a\u{1f}b".to_owned(), Class::Table, "t".to_owned());
        let segments = Segment::under("a", Some(&after));
        assert_eq!(segments.len(), 1);
        assert!(!covers(&segments, "a"));
        assert!(!covers(&segments, "a\u{1f}b"));
        assert!(covers(&segments, "a\u{1f}c"));
    }
}
