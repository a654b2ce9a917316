//! Request bodies: read in full before anything is begun, within bounds of time and memory.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::fault::{Fault, FaultKind};
use crate::fingerprint::{BodyDigest, BodyHasher};

/// How large and how slow a body may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimits {
    /// The largest.
    pub(crate) bytes: usize,
    /// The longest wait for its next piece.
    pub(crate) stall: Duration,
    /// The longest wait for all of it.
    pub(crate) total: Duration,
}

/// A body that is here.
pub(crate) struct Received {
    pub(crate) bytes: Bytes,
    pub(crate) digest: BodyDigest,
    /// Its share of the memory for bodies.
    pub(crate) memory: OwnedSemaphorePermit,
}

/// Reads a body. Whatever fails here, nothing was begun, and the fault says so.
pub(crate) async fn receive(
    headers: &HeaderMap,
    body: Body,
    limits: BodyLimits,
    memory: &Arc<Semaphore>,
) -> Result<Received, Fault> {
    let announced = headers.get(CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let is_too_large = |length: u64| usize::try_from(length).map_or(true, |it| it > limits.bytes);
    if announced.is_some_and(is_too_large) {
        return Err(too_large());
    }
    let deadline = Instant::now() + limits.total;
    let mut pieces = body.into_data_stream();
    let mut whole = BytesMut::new();
    let mut hasher = BodyHasher::default();
    let acquire = |size| memory.clone().try_acquire_many_owned(size);
    let mut share = acquire(0).map_err(|_| out_of_memory())?;
    loop {
        let until = deadline.min(Instant::now() + limits.stall);
        let piece = timeout_at(until, pieces.next()).await;
        let piece = match piece.map_err(|_| too_slow())? {
            None => break,
            Some(piece) => piece.map_err(|_| cut_off())?,
        };
        if whole.len() + piece.len() > limits.bytes {
            return Err(too_large());
        }
        let size = u32::try_from(piece.len()).map_err(|_| too_large())?;
        share.merge(acquire(size).map_err(|_| out_of_memory())?);
        hasher.update(&piece);
        whole.extend_from_slice(&piece);
    }
    Ok(Received {
        bytes: whole.freeze(),
        digest: hasher.finish(),
        memory: share,
    })
}

fn too_large() -> Fault {
    let message = "the body is larger than this server takes; see the setting `body-limit`";
    Fault::new(FaultKind::BodyTooLarge, message)
}

fn too_slow() -> Fault {
    let message = "the body did not arrive in time; nothing was changed";
    Fault::new(FaultKind::BodyTimeout, message)
}

fn cut_off() -> Fault {
    Fault::invalid("the body ended before it was complete; nothing was changed")
}

fn out_of_memory() -> Fault {
    metrics::counter!("http_requests_refused_total").increment(1);
    let message = "the server holds as many bodies as it can; nothing was done, try again";
    Fault::new(FaultKind::Overloaded, message)
}
