//! Names of objects as people write them.

use std::fmt;

/// Parts between dots: `catalog.database.table`. A part with a dot, a slash or a quotation mark in
/// it stands in double quotes (`lake."my.db"`, a quotation mark is doubled). Levels of a nested
/// namespace are separated by slashes: `lake.sales/eu.orders`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    parts: Vec<Vec<String>>,
}

impl ObjectName {
    /// Reads a name; the error is one sentence.
    pub fn parse(text: &str) -> Result<ObjectName, String> {
        let mut parts = vec![Vec::new()];
        let mut rest = text;
        loop {
            let (level, behind) = level(rest).ok_or_else(|| {
                format!(
                    "{text:?} is not a name: write catalog.database.table, and a part with a dot, \
                     slash or quotation mark in double quotes"
                )
            })?;
            if let Some(part) = parts.last_mut() {
                part.push(level);
            }
            match behind.split_at_checked(1) {
                Some((".", behind)) => {
                    parts.push(Vec::new());
                    rest = behind;
                }
                Some((_, behind)) => rest = behind,
                None => return Ok(ObjectName { parts }),
            }
        }
    }

    /// The parts, each with its levels.
    pub fn parts(&self) -> &[Vec<String>] {
        &self.parts
    }
}

/// The next level, and what is behind it: nothing, or a `.` or `/` and more.
fn level(text: &str) -> Option<(String, &str)> {
    let (level, behind) = match text.strip_prefix('"') {
        Some(quoted) => quoted_level(quoted)?,
        None => {
            let end = text.find(['.', '/', '"']).unwrap_or(text.len());
            let (level, behind) = text.split_at(end);
            (level.to_owned(), behind)
        }
    };
    let is_end = behind.is_empty() || behind.starts_with(['.', '/']);
    (is_end && !level.is_empty()).then_some((level, behind))
}

fn quoted_level(mut text: &str) -> Option<(String, &str)> {
    let mut level = String::new();
    loop {
        let (before, behind) = text.split_once('"')?;
        level.push_str(before);
        match behind.strip_prefix('"') {
            Some(more) => {
                level.push('"');
                text = more;
            }
            None => return Some((level, behind)),
        }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                formatter.write_str(".")?;
            }
            for (index, level) in part.iter().enumerate() {
                if index > 0 {
                    formatter.write_str("/")?;
                }
                if level.contains(['.', '/', '"']) {
                    write!(formatter, "\"{}\"", level.replace('"', "\"\""))?;
                } else {
                    formatter.write_str(level)?;
                }
            }
        }
        Ok(())
    }
}

impl From<Vec<Vec<String>>> for ObjectName {
    fn from(parts: Vec<Vec<String>>) -> ObjectName {
        ObjectName { parts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_and_written_alike() {
        for (text, parts) in [
            ("lake", vec![vec!["lake"]]),
            (
                "lake.sales.orders",
                vec![vec!["lake"], vec!["sales"], vec!["orders"]],
            ),
            ("lake.\"my.db\"", vec![vec!["lake"], vec!["my.db"]]),
            (
                "lake.sales/eu.a b",
                vec![vec!["lake"], vec!["sales", "eu"], vec!["a b"]],
            ),
            ("\"say \"\"a\"\"\".x", vec![vec!["say \"a\""], vec!["x"]]),
        ] {
            let name = ObjectName::parse(text).expect(text);
            assert_eq!(name.parts(), parts, "{text}");
            assert_eq!(name.to_string(), text);
        }
    }

    #[test]
    fn what_is_half_written_is_no_name() {
        for text in ["", ".", "a.", ".a", "a//b", "\"a", "\"a\"b", "a\"b\""] {
            assert!(ObjectName::parse(text).is_err(), "{text}");
        }
    }
}
