//! Gives a type to the answers that mean "this request is wrong", which the client library would
//! otherwise mix with "try again later": a redirect to another region, a bad request, a feature
//! that the store doesn't have.

use async_trait::async_trait;
use futures::StreamExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};

/// How much of the store's own words is kept for the log.
const MAX_WORDS: usize = 1024;

/// The store refused a request for good, and did nothing.
#[derive(Debug, thiserror::Error)]
#[error("the store refused the request with status {status}: {words}")]
pub(crate) struct RefusedRequest {
    pub(crate) status: u16,
    words: String,
}

/// Connects as usual and looks at each answer.
#[derive(Debug, Default)]
pub(crate) struct RefusalConnector {
    inner: ReqwestConnector,
}

impl HttpConnector for RefusalConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = self.inner.connect(options)?;
        Ok(HttpClient::new(RefusalService { client }))
    }
}

#[derive(Debug)]
struct RefusalService {
    client: HttpClient,
}

#[async_trait]
impl HttpService for RefusalService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = self.client.execute(request).await?;
        let status = response.status().as_u16();
        if !is_refusal(status) {
            return Ok(response);
        }
        let first_chunk = response.into_body().bytes_stream().next().await;
        let words = match first_chunk {
            Some(Ok(chunk)) => String::from_utf8_lossy(&chunk[..chunk.len().min(MAX_WORDS)]).into(),
            _ => String::new(),
        };
        Err(HttpError::new(
            HttpErrorKind::Unknown,
            RefusedRequest { status, words },
        ))
    }
}

/// The other statuses have a meaning of their own in the client library.
fn is_refusal(status: u16) -> bool {
    match status {
        304 | 401 | 403 | 404 | 408 | 409 | 412 | 416 | 429 => false,
        300..=499 | 501 => true,
        _ => false,
    }
}
