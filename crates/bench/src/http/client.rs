//! One HTTP/1.1 connection, as cheap as can be: the load generator shares the machine with what it
//! measures.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::failure::Failure;

/// A header that goes with every request.
pub type Header = (HeaderName, HeaderValue);

/// An answer, read to its end.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub etag: Option<HeaderValue>,
    pub body: Bytes,
}

impl Answer {
    /// The body of a success.
    pub fn json(&self) -> Result<Value, Failure> {
        if !self.status.is_success() {
            let body = String::from_utf8_lossy(&self.body);
            return Err(Failure::told(format!("answered {}: {body}", self.status)));
        }
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::told(format!("an answer is no JSON: {error}")))
    }
}

/// A connection to one server.
pub struct Client {
    authority: String,
    base: String,
    headers: Vec<Header>,
    sender: SendRequest<Full<Bytes>>,
}

impl Client {
    /// Connects; `base` is `http://host:port` and what all paths begin with.
    pub async fn new(base: &str, headers: &[Header]) -> Result<Client, Failure> {
        let base = base.trim_end_matches('/');
        let wrong = |why: &str| Failure::told(format!("{base}: {why}"));
        let uri: Uri = base.parse().map_err(|_| wrong("it is no URL"))?;
        if uri.scheme_str() != Some("http") {
            return Err(wrong(
                "only http:// is spoken; put a proxy in front for TLS",
            ));
        }
        let host = uri
            .authority()
            .ok_or_else(|| wrong("it names no host"))?
            .as_str();
        let authority = match uri.port_u16() {
            Some(_) => host.to_owned(),
            None => format!("{host}:80"),
        };
        let sender = connect(&authority).await?;
        Ok(Client {
            authority,
            base: uri.path().trim_end_matches('/').to_owned(),
            headers: headers.to_vec(),
            sender,
        })
    }

    pub async fn get(&mut self, path: &str) -> Result<Answer, Failure> {
        self.send(Method::GET, path, &[], Bytes::new()).await
    }

    pub async fn get_unless(&mut self, path: &str, etag: &HeaderValue) -> Result<Answer, Failure> {
        let condition = (header::IF_NONE_MATCH, etag.clone());
        self.send(Method::GET, path, &[condition], Bytes::new())
            .await
    }

    pub async fn post(&mut self, path: &str, body: Bytes) -> Result<Answer, Failure> {
        let kind = HeaderValue::from_static("application/json");
        self.send(Method::POST, path, &[(header::CONTENT_TYPE, kind)], body)
            .await
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        more: &[Header],
        body: Bytes,
    ) -> Result<Answer, Failure> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(header::HOST, &self.authority)
            .body(Full::new(body))
            .map_err(|error| Failure::told(error.to_string()))?;
        for (name, value) in self.headers.iter().chain(more) {
            request.headers_mut().insert(name, value.clone());
        }
        if self.sender.is_closed() {
            self.sender = connect(&self.authority).await?;
        }
        self.sender.ready().await?;
        let answer: Response<Incoming> = self.sender.send_request(request).await?;
        let status = answer.status();
        let etag = answer.headers().get(header::ETAG).cloned();
        let body = answer.into_body().collect().await?.to_bytes();
        Ok(Answer { status, etag, body })
    }
}

async fn connect(authority: &str) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let stream = TcpStream::connect(authority).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    // Ends with its sender; what broke it is told by the sender's next call.
    tokio::spawn(connection);
    Ok(sender)
}
