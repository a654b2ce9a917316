//! Moments, for people.

use chrono::DateTime;
use serde_json::Value;

/// Milliseconds since 1970 as `2026-05-04 13:02`, in UTC.
pub fn minute(millis: &Value) -> String {
    let moment = millis.as_i64().and_then(DateTime::from_timestamp_millis);
    match moment {
        Some(moment) => moment.format("%Y-%m-%d %H:%M").to_string(),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_moment_is_shown_to_the_minute() {
        assert_eq!(minute(&json!(1_777_899_725_999_i64)), "2026-05-04 13:02");
        assert_eq!(minute(&Value::Null), "-");
    }
}
