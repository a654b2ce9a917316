//! What a server or the way to it answers instead of a result.

use std::error::Error;
use std::fmt;

use reqwest::StatusCode;
use serde_json::Value;

use crate::failure::Failure;

/// Why a call has no result.
#[derive(Debug)]
pub enum ClientError {
    /// The address can't be called.
    Address(String),
    /// The server can't be reached, or the connection broke.
    Unreachable {
        /// The server.
        server: String,
        /// Why.
        cause: String,
        /// Whether the call may have arrived.
        may_have_arrived: bool,
    },
    /// The answer isn't JSON: something else answers there.
    NotJson(String),
    /// The server refused.
    Refused {
        /// The HTTP status.
        status: StatusCode,
        /// In its words.
        message: String,
        /// What programs may want to know.
        details: Value,
        /// Under which id its log has more.
        request_id: Option<String>,
    },
}

impl ClientError {
    pub(super) fn unreachable(server: &str, error: &reqwest::Error) -> ClientError {
        // The innermost cause says what happened; the outer ones repeat the address.
        let mut cause: &dyn Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        ClientError::Unreachable {
            server: server.to_owned(),
            cause: cause.to_string(),
            may_have_arrived: !error.is_connect() && !error.is_builder(),
        }
    }

    pub(super) fn refused(status: StatusCode, id: Option<String>, body: &Value) -> ClientError {
        let message = body["error"]["message"].as_str();
        ClientError::Refused {
            status,
            message: message.unwrap_or("the server gives no reason").to_owned(),
            details: body["error"]["details"].clone(),
            request_id: id,
        }
    }

    /// Whether the call may have been carried out, though its answer doesn't say so.
    pub fn is_unsure(&self) -> bool {
        match self {
            ClientError::Unreachable {
                may_have_arrived, ..
            } => *may_have_arrived,
            ClientError::Refused { status, .. } => *status == StatusCode::GATEWAY_TIMEOUT,
            ClientError::Address(_) | ClientError::NotJson(_) => false,
        }
    }

    /// Whether the same call may succeed in a moment.
    pub fn is_passing(&self) -> bool {
        match self {
            ClientError::Unreachable { .. } => true,
            ClientError::Refused { status, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            ClientError::Address(_) | ClientError::NotJson(_) => false,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Address(server) => write!(formatter, "{server} is no server's address"),
            ClientError::Unreachable { server, cause, .. } => write!(
                formatter,
                "{server} can't be reached ({cause}); start it with `anabranch serve`, or name \
                 another with --server"
            ),
            ClientError::NotJson(server) => write!(
                formatter,
                "{server} does not answer as an Anabranch server does; name one with --server"
            ),
            ClientError::Refused {
                status,
                message,
                request_id,
                ..
            } => {
                write!(formatter, "{message} ({}", status.as_u16())?;
                match request_id {
                    Some(id) => write!(formatter, ", request {id})"),
                    None => formatter.write_str(")"),
                }
            }
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        match error {
            ClientError::Address(_) => Failure::setup(error.to_string()),
            _ => Failure::work(error.to_string()),
        }
    }
}
