//! Metrics reports (specification: `ReportMetricsRequest`), as far as they are looked at.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct MetricsReport {
    pub(crate) report_type: String,
}
