//! Metrics reports. They are taken and not kept; nothing here waits for the store, so that no
//! commit waits behind a report.

use anabranch_http::Json;

use crate::answer::{Answered, no_content};
use crate::path::At;
use crate::wire::metrics::MetricsReport;

pub(crate) async fn report(_: At, Json { value, .. }: Json<MetricsReport>) -> Answered {
    tracing::debug!(report_type = value.report_type, "metrics report");
    Ok(no_content())
}
