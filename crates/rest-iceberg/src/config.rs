//! `/v1/config`: where a client begins.

use std::collections::BTreeMap;
use std::time::Duration;

use anabranch_catalog::Warehouse;
use anabranch_http::Query;
use axum::extract::State;

use crate::App;
use crate::answer::{Answered, json};
use crate::wire::config::{CatalogConfig, ConfigQuery};

/// What is served, in the specification's spelling. Scan planning, functions, remote signing and
/// tokens are not.
const ENDPOINTS: [&str; 26] = [
    "GET /v1/{prefix}/namespaces",
    "POST /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}",
    "HEAD /v1/{prefix}/namespaces/{namespace}",
    "DELETE /v1/{prefix}/namespaces/{namespace}",
    "POST /v1/{prefix}/namespaces/{namespace}/properties",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    "POST /v1/{prefix}/namespaces/{namespace}/tables",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/register",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics",
    "POST /v1/{prefix}/tables/rename",
    "POST /v1/{prefix}/transactions/commit",
    "GET /v1/{prefix}/namespaces/{namespace}/views",
    "POST /v1/{prefix}/namespaces/{namespace}/views",
    "GET /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "POST /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "POST /v1/{prefix}/namespaces/{namespace}/register-view",
    "POST /v1/{prefix}/views/rename",
];

/// What is served, as `/v1/config` lists it.
pub fn endpoints() -> &'static [&'static str] {
    &ENDPOINTS
}

/// Answers the prefix of a warehouse. Without one, or with an empty one, it is the server's
/// default; one that isn't there is a 404 `NoSuchWarehouseException`.
pub(crate) async fn show(State(app): State<App>, Query(query): Query<ConfigQuery>) -> Answered {
    let named = query.warehouse.filter(|warehouse| !warehouse.is_empty());
    let name = named.as_deref().unwrap_or(&app.settings.default_warehouse);
    let warehouse = Warehouse::parse_selected(name)?;
    let catalog = app.catalog.load_catalog(&warehouse).await?;
    Ok(json(CatalogConfig {
        overrides: BTreeMap::from([("prefix", catalog.warehouse.prefix())]),
        defaults: BTreeMap::new(),
        endpoints: ENDPOINTS.to_vec(),
        idempotency_key_lifetime: iso_duration(app.settings.idempotency_key_lifetime),
    }))
}

/// ISO-8601 in hours, minutes and seconds: Java's `Duration.parse` refuses weeks, and with them
/// the whole answer.
fn iso_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let parts = [
        (seconds / 3600, 'H'),
        (seconds % 3600 / 60, 'M'),
        (seconds % 60, 'S'),
    ];
    let written: String = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, unit)| format!("{number}{unit}"))
        .collect();
    match written.as_str() {
        "" => "PT0S".to_owned(),
        written => format!("PT{written}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_written_without_days_and_weeks() {
        let written = |seconds| iso_duration(Duration::from_secs(seconds));
        assert_eq!(written(24 * 3600), "PT24H");
        assert_eq!(written(14 * 24 * 3600), "PT336H");
        assert_eq!(written(1800), "PT30M");
        assert_eq!(written(3661), "PT1H1M1S");
        assert_eq!(written(0), "PT0S");
    }
}
