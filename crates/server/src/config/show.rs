//! `config show`.

use serde_json::{Value, json};

use super::{Config, values};
use crate::table::Table;

/// What is in force, for people.
pub fn as_table(config: &Config) -> Table {
    // The value is last: it is shown in full, and may be long.
    let mut table = Table::new(&["setting", "from", "value"]);
    for found in &config.found {
        let value = found.value.as_deref().map(values::without_password);
        table.row([
            found.setting.name.to_owned(),
            found.origin.to_string(),
            value.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table
}

/// What is in force, for machines.
pub fn as_json(config: &Config) -> Value {
    let settings = config.found.iter().map(|found| {
        let value = found.value.as_deref().map(values::without_password);
        let shown = json!({"value": value, "from": found.origin.to_string()});
        (found.setting.name.to_owned(), shown)
    });
    Value::Object(settings.collect())
}
