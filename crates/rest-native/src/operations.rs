//! What became of a request: `/v1/operations/{key}`.

use anabranch_http::{PathNames, RequestContext};
use anabranch_partition::{RecordedAnswer, RecordedOperation};
use anabranch_store::StoreTime;
use axum::extract::State;
use chrono::{DateTime, SecondsFormat};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::Shared;
use crate::error::ApiError;

/// The record of a request that carried an `Idempotency-Key`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OperationAnswer {
    key: String,
    /// `STARTED` or `DONE`.
    state: &'static str,
    /// 200 if it was applied, else the status of its error on `/v1`; absent while it isn't done.
    status: Option<u16>,
    /// Its outcome, or the error.
    #[schema(value_type = Option<Object>)]
    answer: Value,
    /// RFC 3339, by the store's clock.
    at: String,
}

/// Shows what became of a request. Only its own principal finds it.
#[utoipa::path(get, path = "/v1/operations/{key}", tag = "operations",
    params(("key" = String, Path, description = "The request's `Idempotency-Key`")),
    responses((status = 200, body = OperationAnswer), (status = "default", body = crate::openapi::ErrorAnswer)))]
pub(crate) async fn show(
    State(native): State<Shared>,
    context: RequestContext,
    PathNames([key]): PathNames<1>,
) -> Result<axum::Json<OperationAnswer>, ApiError> {
    match native.catalog.operation(&key).await? {
        Some(record) if record.principal == context.principal => Ok(axum::Json(shown(key, record))),
        _ => Err(ApiError::not_found(format!(
            "no operation of yours is recorded under {key:?}: it was not applied, runs still, or \
             was longer ago than operations are kept"
        ))),
    }
}

fn shown(key: String, record: RecordedOperation) -> OperationAnswer {
    let (status, answer) = match record.answer {
        RecordedAnswer::Outcome(outcome) => (200, outcome),
        RecordedAnswer::Refused(refusal) => {
            let error = ApiError::from(&refusal);
            (error.status.as_u16(), error.body())
        }
    };
    OperationAnswer {
        key,
        state: "DONE",
        status: Some(status),
        answer,
        at: instant(record.at),
    }
}

/// RFC 3339 with microseconds, in UTC.
pub(crate) fn instant(time: StoreTime) -> String {
    DateTime::from_timestamp_micros(time.0)
        .map(|instant| instant.to_rfc3339_opts(SecondsFormat::Micros, true))
        .unwrap_or_else(|| time.0.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_written_in_utc() {
        let time = StoreTime(1_800_000_000_123_456);
        assert_eq!(instant(time), "2027-01-15T08:00:00.123456Z");
    }
}
