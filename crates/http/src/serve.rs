//! The accept loop: bounded connections, a time limit on silent peers, a graceful end.
//!
//! Only HTTP/1.1 is spoken: every client of the protocols speaks it, and none HTTP/2 without TLS.
//! That a connection's version needn't be found out first also means that its time runs from its
//! very beginning.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::patient::Patient;

/// How long to wait before accepting again when the process has no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Limits on connections.
#[derive(Clone, Copy, Debug)]
pub struct ServeLimits {
    /// Open connections; further ones wait in the kernel's queue.
    pub connections: usize,
    /// How long a connection may be idle, take to send a request's head, or take nothing of an
    /// answer.
    pub idle_timeout: Duration,
    /// How long requests may take to end after the stop was asked for.
    pub grace: Duration,
}

impl Default for ServeLimits {
    fn default() -> ServeLimits {
        ServeLimits {
            connections: 4096,
            idle_timeout: Duration::from_secs(75),
            grace: Duration::from_secs(65),
        }
    }
}

/// Serves a router until `stop` resolves; then accepts nothing more, lets running requests end,
/// and returns. Answers whether all of them did in time.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ServeLimits,
    stop: impl Future<Output = ()>,
) -> bool {
    let graceful = GracefulShutdown::new();
    let seats = Arc::new(Semaphore::new(limits.connections));
    let mut builder = Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle_timeout);
    let service = TowerToHyperService::new(router);

    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &seats) => accepted,
            () = &mut stop => break,
        };
        let Some((stream, seat)) = accepted else {
            continue;
        };
        let stream = TokioIo::new(Patient::new(stream, limits.idle_timeout));
        let connection = graceful.watch(builder.serve_connection(stream, service.clone()));
        tokio::spawn(async move {
            let _seat = seat;
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended");
            }
        });
    }
    drop(listener);
    tokio::time::timeout(limits.grace, graceful.shutdown())
        .await
        .is_ok()
}

async fn accept(
    listener: &TcpListener,
    seats: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let seat = seats.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _peer)) => {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY");
            }
            Some((stream, seat))
        }
        Err(error) => {
            let is_the_peers = matches!(
                error.kind(),
                io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionRefused
            );
            if !is_the_peers {
                tracing::warn!(%error, "can't accept connections");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
            None
        }
    }
}
