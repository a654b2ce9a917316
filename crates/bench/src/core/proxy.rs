//! A proxy in front of PostgreSQL that counts round trips: what a client sends before it has the
//! answer to what it sent last belongs to the same one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::failure::Failure;

/// How long answers are under way: long enough to be no race.
const LATENCY: Duration = Duration::from_millis(20);

/// Ends with the program.
pub struct Proxy {
    pub url: String,
    trips: Arc<AtomicU64>,
}

impl Proxy {
    /// In front of the server of this URL.
    pub async fn start(url: &str) -> Result<Proxy, Failure> {
        let no_host = || Failure::told("the PostgreSQL URL names no host and port");
        let authority = url
            .split("://")
            .nth(1)
            .and_then(|rest| rest.split('/').next());
        let server = authority.and_then(|authority| authority.rsplit('@').next());
        let server = server
            .filter(|server| server.contains(':'))
            .ok_or_else(no_host)?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = url.replacen(server, &listener.local_addr()?.to_string(), 1);
        let trips = Arc::new(AtomicU64::new(0));
        let (counted, target) = (trips.clone(), server.to_owned());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(&target).await else {
                    return;
                };
                tokio::spawn(relay(client, server, counted.clone()));
            }
        });
        Ok(Proxy { url, trips })
    }

    pub fn round_trips(&self) -> u64 {
        self.trips.load(Ordering::SeqCst)
    }
}

async fn relay(client: TcpStream, server: TcpStream, trips: Arc<AtomicU64>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let has_answered = AtomicBool::new(true);
    let questions = async {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from_client.read(&mut buffer).await {
            if has_answered.swap(false, Ordering::SeqCst) {
                trips.fetch_add(1, Ordering::SeqCst);
            }
            if to_server.write_all(&buffer[..length]).await.is_err() {
                break;
            }
        }
        // Whichever side ends, the other one ends with it.
        drop(to_server);
    };
    let answers = async {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from_server.read(&mut buffer).await {
            tokio::time::sleep(LATENCY).await;
            has_answered.store(true, Ordering::SeqCst);
            if to_client.write_all(&buffer[..length]).await.is_err() {
                break;
            }
        }
    };
    tokio::join!(questions, answers);
}
