//! A proxy between a store and PostgreSQL that counts round trips and can hold COMMIT back, and
//! ways to see who waits for whom.
#![allow(dead_code)] // Each test program uses a part.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anabranch_store::testing::TestDatabase;
use anabranch_store::{LockMode, PostgresOptions, PostgresStore, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_postgres::Client;

pub async fn open(database: &TestDatabase, mode: LockMode) -> Arc<dyn Store> {
    open_with(&database.url(), mode, |_| {}).await
}

pub async fn open_with(
    url: &str,
    mode: LockMode,
    adapt: impl FnOnce(&mut PostgresOptions),
) -> Arc<dyn Store> {
    let mut options = PostgresOptions {
        migrate: true,
        mode,
        ..PostgresOptions::default()
    };
    adapt(&mut options);
    Arc::new(PostgresStore::connect(url, &options).await.unwrap())
}

/// Waits until PostgreSQL itself says that so many sessions are blocked by others.
pub async fn wait_until_blocked(client: &Client, sessions: i64) {
    let is_blocked = "cardinality(pg_blocking_pids(pid)) > 0";
    wait_until_sessions(client, is_blocked, sessions).await;
}

/// Waits until a session has executed the writes of a commit, and not its COMMIT.
pub async fn wait_until_written(client: &Client) {
    let has_written = "state = 'idle in transaction' AND query LIKE 'WITH held AS (UPDATE%'";
    wait_until_sessions(client, has_written, 1).await;
}

async fn wait_until_sessions(client: &Client, condition: &str, sessions: i64) {
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND {condition}"
    );
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let row = client.query_one(&sql, &[]).await.unwrap();
        if row.get::<_, i64>(0) >= sessions {
            return;
        }
        assert!(Instant::now() < deadline, "no session where {condition}");
    }
}

/// What a [`Proxy`] is told and tells.
pub struct Control {
    pub round_trips: AtomicUsize,
    hold_commit: AtomicBool,
    hold_second_read: AtomicBool,
    no_snapshots: AtomicBool,
    held: Semaphore,
    released: Semaphore,
}

impl Control {
    /// The next COMMIT is held back, and its client cut off.
    pub fn hold_commit(&self) {
        self.hold_commit.store(true, Ordering::SeqCst);
    }

    /// The second statement of the next snapshot is held back.
    pub fn hold_second_read(&self) {
        self.hold_second_read.store(true, Ordering::SeqCst);
    }

    /// Each statement of a snapshot sees what stands when it begins.
    pub fn allow_no_snapshots(&self) {
        self.no_snapshots.store(true, Ordering::SeqCst);
    }

    pub async fn something_is_held(&self) {
        self.held.acquire().await.unwrap().forget();
    }

    pub fn release(&self) {
        self.released.add_permits(1);
    }

    async fn hold(&self) {
        self.held.add_permits(1);
        self.released.acquire().await.unwrap().forget();
    }
}

pub struct Proxy {
    pub url: String,
    pub control: Arc<Control>,
}

impl Proxy {
    /// In front of the server of this URL; lives in a thread and runtime of its own.
    pub fn start(url: &str) -> Proxy {
        let authority = url.split("://").nth(1).unwrap().split('/').next().unwrap();
        let server = authority.rsplit('@').next().unwrap().to_owned();
        let control = Arc::new(Control {
            round_trips: AtomicUsize::new(0),
            hold_commit: AtomicBool::new(false),
            hold_second_read: AtomicBool::new(false),
            no_snapshots: AtomicBool::new(false),
            held: Semaphore::new(0),
            released: Semaphore::new(0),
        });
        let (port_sender, port) = std::sync::mpsc::channel();
        let shared = Arc::clone(&control);
        let target = server.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                port_sender
                    .send(listener.local_addr().unwrap().port())
                    .unwrap();
                loop {
                    let (client, _) = listener.accept().await.unwrap();
                    let server = TcpStream::connect(&target).await.unwrap();
                    tokio::spawn(relay(client, server, Arc::clone(&shared)));
                }
            });
        });
        let proxy = format!("127.0.0.1:{}", port.recv().unwrap());
        Proxy {
            url: url.replacen(&server, &proxy, 1),
            control,
        }
    }
}

/// How long the proxy's answers are under way.
const LATENCY: Duration = Duration::from_millis(20);

async fn relay(client: TcpStream, server: TcpStream, control: Arc<Control>) {
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let answered = Arc::new(AtomicBool::new(true));
    let has_answered = Arc::clone(&answered);
    let answers = tokio::spawn(async move {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from_server.read(&mut buffer).await {
            // As far away as another city: what a client sends meanwhile didn't wait for this.
            tokio::time::sleep(LATENCY).await;
            has_answered.store(true, Ordering::SeqCst);
            if to_client.write_all(&buffer[..length]).await.is_err() {
                break;
            }
        }
        from_server
    });
    let commit = forward(&mut from_client, &mut to_server, &answered, &control).await;
    if let Some(commit) = commit {
        // Cut the client off: its answers go nowhere, its COMMIT is still on its way.
        answers.abort();
        let _ = answers.await;
        drop(from_client);
        control.hold().await;
        to_server.write_all(&commit).await.unwrap();
    }
}

/// Forwards messages until the client goes, or returns the COMMIT to hold back.
async fn forward(
    client: &mut OwnedReadHalf,
    server: &mut OwnedWriteHalf,
    answered: &AtomicBool,
    control: &Control,
) -> Option<Vec<u8>> {
    const COMMIT: &[u8] = b"COMMIT\0";
    const SNAPSHOT: &[u8] = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY\0";
    const NO_SNAPSHOT: &[u8] = b"BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY\0";
    let mut reads = None;
    let mut pending: Vec<u8> = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    let mut is_started = false;
    loop {
        let length = match client.read(&mut buffer).await {
            Ok(length @ 1..) => length,
            _ => return None,
        };
        if answered.swap(false, Ordering::SeqCst) {
            control.round_trips.fetch_add(1, Ordering::SeqCst);
        }
        pending.extend_from_slice(&buffer[..length]);
        loop {
            // The first message has no type byte.
            let header = usize::from(is_started);
            if pending.len() < header + 4 {
                break;
            }
            let size: [u8; 4] = pending[header..header + 4].try_into().unwrap();
            let size = header + u32::from_be_bytes(size) as usize;
            if pending.len() < size {
                break;
            }
            let mut message: Vec<u8> = pending.drain(..size).collect();
            let is_commit = is_started && message[0] == b'Q' && message.ends_with(COMMIT);
            if is_commit && control.hold_commit.swap(false, Ordering::SeqCst) {
                return Some(message);
            }
            if is_started && message[0] == b'Q' {
                reads = message.ends_with(SNAPSHOT).then_some(0);
                if reads.is_some() && control.no_snapshots.load(Ordering::SeqCst) {
                    message = [&b"Q\0\0\0\0"[..], NO_SNAPSHOT].concat();
                    message[4] = (4 + NO_SNAPSHOT.len()) as u8;
                }
            }
            if let Some(reads) = reads.as_mut().filter(|_| message[0] == b'B') {
                *reads += 1;
                if *reads == 2 && control.hold_second_read.swap(false, Ordering::SeqCst) {
                    control.hold().await;
                }
            }
            is_started = true;
            if server.write_all(&message).await.is_err() {
                return None;
            }
        }
    }
}
