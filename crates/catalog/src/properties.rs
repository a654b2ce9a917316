//! Limits on what a container may carry: its properties are read and logged with every change.

use std::collections::BTreeMap;

use anabranch_partition::Refusal;

/// Properties of one container, at most.
const MOST: usize = 1000;
/// Bytes of one property, key and value, at most.
const MOST_BYTES: usize = 64 << 10;
/// Bytes of all properties of one container, at most.
const MOST_BYTES_TOGETHER: usize = 1 << 20;

/// Refuses properties that are too many, too long or without a name.
pub(crate) fn check(properties: &BTreeMap<String, String>) -> Result<(), Refusal> {
    if properties.len() > MOST {
        return Err(Refusal::invalid(format!(
            "there are at most {MOST} properties, not {}; keep the rest in a file and its address \
             here",
            properties.len()
        )));
    }
    let mut together = 0;
    for (key, value) in properties {
        let bytes = key.len() + value.len();
        together += bytes;
        let shown: String = key.chars().take(80).collect();
        if key.is_empty() {
            return Err(Refusal::invalid(
                "a property has an empty name; give it one",
            ));
        }
        if bytes > MOST_BYTES {
            return Err(Refusal::invalid(format!(
                "property {shown:?} is longer than {MOST_BYTES} bytes; keep it in a file and its \
                 address here"
            )));
        }
    }
    if together > MOST_BYTES_TOGETHER {
        return Err(Refusal::invalid(format!(
            "the properties have {together} bytes together, and may have {MOST_BYTES_TOGETHER}; \
             keep the long ones in a file and its address here"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_length_and_sum_are_bounded() {
        let many = |count: usize, bytes: usize| -> BTreeMap<String, String> {
            (0..count)
                .map(|number| (format!("{number:04}"), "x".repeat(bytes)))
                .collect()
        };
        assert!(check(&many(1000, 100)).is_ok());
        for refused in [many(1001, 1), many(1, 70_000), many(100, 20_000)] {
            assert!(check(&refused).is_err());
        }
        assert!(check(&BTreeMap::from([(String::new(), String::new())])).is_err());
    }
}
