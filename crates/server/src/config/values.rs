//! Texts as values, and values as they may be shown.

use std::time::Duration;

/// A time such as `90s`, `5m`, `24h`, `7d` or `250ms`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let problem = || "write a time such as 250ms, 90s, 5m, 24h or 7d".to_owned();
    let (number, unit) = number_and_unit(text).ok_or_else(problem)?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60 * 1000,
        "h" => 3600 * 1000,
        "d" => 24 * 3600 * 1000,
        _ => return Err(problem()),
    };
    let total = number.checked_mul(millis).filter(|total| *total > 0);
    total.map(Duration::from_millis).ok_or_else(problem)
}

/// A size such as `4096`, `512KiB`, `32MiB` or `1GiB`.
pub fn bytes(text: &str) -> Result<usize, String> {
    let problem = || "write a size such as 4096, 512KiB, 32MiB or 1GiB".to_owned();
    let (number, unit) = number_and_unit(text).ok_or_else(problem)?;
    let factor = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(problem()),
    };
    let total = number.checked_mul(factor).filter(|total| *total > 0);
    total
        .and_then(|total| usize::try_from(total).ok())
        .ok_or_else(problem)
}

/// A number of at least 1.
pub fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=1_000_000).contains(&number) => Ok(number),
        _ => Err("write a number from 1 to 1000000".to_owned()),
    }
}

/// A number of at least 0.
pub fn count_or_none(text: &str) -> Result<usize, String> {
    let problem = |_| "write a number from 0 on".to_owned();
    text.parse().map_err(problem)
}

/// `true` or `false`.
pub fn boolean(text: &str) -> Result<bool, String> {
    let problem = |_| "write true or false".to_owned();
    text.parse().map_err(problem)
}

fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|char: char| !char.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

/// A URL with its password masked, and any other text as it is.
pub fn without_password(text: &str) -> String {
    let masked = || {
        let mut url = reqwest::Url::parse(text).ok()?;
        let in_query = |url: &reqwest::Url| url.query_pairs().any(|(key, _)| key == "password");
        if url.password().is_none() && !in_query(&url) {
            return None;
        }
        if url.password().is_some() {
            url.set_password(Some("******")).ok()?;
        }
        if in_query(&url) {
            let pairs: Vec<(String, String)> = url
                .query_pairs()
                .map(|(key, value)| match key.as_ref() {
                    "password" => (key.into_owned(), "******".to_owned()),
                    _ => (key.into_owned(), value.into_owned()),
                })
                .collect();
            url.query_pairs_mut().clear().extend_pairs(pairs);
        }
        Some(url.to_string())
    };
    masked().unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_units() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("7 d"), Ok(Duration::from_secs(7 * 86400)));
        assert_eq!(bytes("32MiB"), Ok(32 << 20));
        assert_eq!(bytes("4096"), Ok(4096));
        for text in ["", "90", "0s", "-1s", "1y", "99999999999999999999d"] {
            assert!(duration(text).is_err(), "{text}");
        }
        for text in ["", "MiB", "0", "32MB", "1.5GiB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let shown = without_password("postgres://ann:hush@db/catalog");
        assert_eq!(shown, "postgres://ann:******@db/catalog");
        let shown = without_password("postgres://db/catalog?password=hush&mode=optimistic");
        assert!(!shown.contains("hush") && shown.contains("mode=optimistic"));
        assert_eq!(without_password("sqlite:./a b.db"), "sqlite:./a b.db");
    }
}
