//! The wire between a server and PostgreSQL, and where it is cut.
//!
//! It reads the server's side of the protocol message by message. On order it cuts the server off
//! from its next transaction that writes, and keeps what PostgreSQL hasn't got yet, until the test
//! says whether that arrives late or never.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// From where on nothing of the transaction arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// From its BEGIN on.
    Begin,
    /// From the middle of the statement that writes.
    Write,
    /// From its COMMIT on.
    Commit,
    /// All of it arrives; the answer to COMMIT doesn't.
    Answer,
}

/// A way to PostgreSQL.
pub struct Wire {
    pub url: String,
    next: NextCut,
}

type NextCut = Arc<Mutex<Option<Order>>>;

/// What the server sent and PostgreSQL hasn't got.
pub struct Withheld {
    was_cut: oneshot::Receiver<()>,
    arrives: oneshot::Sender<bool>,
    ended: oneshot::Receiver<Vec<u8>>,
}

struct Order {
    cut: Cut,
    was_cut: oneshot::Sender<()>,
    arrives: oneshot::Receiver<bool>,
    ended: oneshot::Sender<Vec<u8>>,
}

impl Wire {
    pub async fn to(url: &str) -> Wire {
        let host = url.split("://").nth(1).unwrap().split('/').next().unwrap();
        let host = host.rsplit('@').next().unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().to_string();
        let url = url.replacen(&host, &own, 1);
        let next = NextCut::default();
        let orders = Arc::clone(&next);
        tokio::spawn(async move {
            while let Ok((server, _)) = listener.accept().await {
                let database = TcpStream::connect(&host).await.unwrap();
                tokio::spawn(Line::between(server, database).carry(Arc::clone(&orders)));
            }
        });
        Wire { url, next }
    }

    /// The next transaction that writes is cut there; with [`Cut::Begin`], the next that could.
    pub fn cut_next(&self, cut: Cut) -> Withheld {
        let (tell_cut, was_cut) = oneshot::channel();
        let (arrives, is_told) = oneshot::channel();
        let (tell_end, ended) = oneshot::channel();
        *self.next.lock().unwrap() = Some(Order {
            cut,
            was_cut: tell_cut,
            arrives: is_told,
            ended: tell_end,
        });
        Withheld {
            was_cut,
            arrives,
            ended,
        }
    }
}

impl Withheld {
    /// Returns when the server has been cut off.
    pub async fn is_cut(&mut self) {
        (&mut self.was_cut).await.expect("a cut");
    }

    /// The rest arrives, and the session ends. Returns whether PostgreSQL committed.
    pub async fn arrive(self) -> bool {
        self.arrives.send(true).expect("a wire");
        let said = self.ended.await.expect("an end");
        contains(&said, b"COMMIT\0")
    }

    /// The rest never arrives: the session just ends.
    pub async fn vanish(self) {
        self.arrives.send(false).expect("a wire");
        self.ended.await.expect("an end");
    }
}

/// One connection of the server, and its other end.
struct Line {
    server: End,
    database: End,
    /// How often PostgreSQL has yet to say that it has done all that it was sent.
    unanswered: usize,
    /// The prepared statements that leave something in the change log.
    writing: HashSet<Vec<u8>>,
    has_written: bool,
}

/// A stream of messages: a type, the length of the rest, the rest.
struct End {
    stream: TcpStream,
    /// What came of a message that isn't complete.
    began: Vec<u8>,
    /// The first message of a server has no type.
    is_typed: bool,
}

impl End {
    fn of(stream: TcpStream, is_typed: bool) -> End {
        stream.set_nodelay(true).unwrap();
        End {
            stream,
            began: Vec::new(),
            is_typed,
        }
    }

    /// The next message; `None` if there will be none. Nothing is lost if it is given up.
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(message) = self.complete() {
                return Some(message);
            }
            let read = self.stream.read_buf(&mut self.began).await;
            read.ok().filter(|length| *length > 0)?;
        }
    }

    fn complete(&mut self) -> Option<Vec<u8>> {
        let head = usize::from(self.is_typed);
        let length: [u8; 4] = self.began.get(head..head + 4)?.try_into().unwrap();
        let size = head + u32::from_be_bytes(length) as usize;
        if self.began.len() < size {
            return None;
        }
        self.is_typed = true;
        Some(self.began.drain(..size).collect())
    }

    async fn send(&mut self, bytes: &[u8]) -> Option<()> {
        self.stream.write_all(bytes).await.ok()
    }
}

/// Where in a transaction a message stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Begin,
    Write,
    Commit,
}

const PARSE: u8 = b'P';
const BIND: u8 = b'B';
const SYNC: u8 = b'S';
const QUERY: u8 = b'Q';
const READY: u8 = b'Z';
const TERMINATE: &[u8] = b"X\0\0\0\x04";

impl Line {
    fn between(server: TcpStream, database: TcpStream) -> Line {
        Line {
            server: End::of(server, false),
            database: End::of(database, true),
            // The start of the session.
            unanswered: 1,
            writing: HashSet::new(),
            has_written: false,
        }
    }

    /// Carries messages until one side is gone, or the server is cut off.
    async fn carry(mut self, orders: NextCut) {
        while self.carry_one(&orders).await.is_some() {}
    }

    async fn carry_one(&mut self, orders: &NextCut) -> Option<()> {
        let message = tokio::select! {
            message = self.server.next() => message?,
            answer = self.database.next() => {
                let answer = answer?;
                self.note_answer(&answer);
                return self.server.send(&answer).await;
            }
        };
        let place = self.note(&message);
        let is_meant = |order: &mut Order| place == Some(order.cut.place());
        let order = orders.lock().unwrap().take_if(is_meant);
        match order {
            Some(order) => {
                self.cut(message, order).await;
                None
            }
            None => {
                let ends_a_step = [SYNC, QUERY].contains(&message[0]);
                self.unanswered += usize::from(ends_a_step);
                self.database.send(&message).await
            }
        }
    }

    fn note_answer(&mut self, answer: &[u8]) {
        self.unanswered -= usize::from(answer[0] == READY);
    }

    /// Notes what the server sends, and says which place of a transaction it comes to.
    fn note(&mut self, message: &[u8]) -> Option<Place> {
        let text = message.get(5..)?;
        let mut words = text.split(|byte| *byte == 0).map(<[u8]>::to_vec);
        match message[0] {
            PARSE => {
                let (name, sql) = (words.next()?, words.next()?);
                if contains(&sql, b"INSERT INTO change ") {
                    self.writing.insert(name);
                }
                None
            }
            BIND => {
                let (_portal, name) = (words.next()?, words.next()?);
                let writes = self.writing.contains(&name);
                self.has_written |= writes;
                writes.then_some(Place::Write)
            }
            QUERY => {
                let sql = words.next()?;
                if sql.starts_with(b"BEGIN") && !sql.ends_with(b"READ ONLY") {
                    self.has_written = false;
                    return Some(Place::Begin);
                }
                let is_end = sql == b"COMMIT" && std::mem::take(&mut self.has_written);
                is_end.then_some(Place::Commit)
            }
            _ => None,
        }
    }

    /// Cuts the server off at this message, and lets the rest arrive or not, as the test says.
    async fn cut(&mut self, message: Vec<u8>, order: Order) {
        let rest = self.rest_from(message, order.cut).await;
        let mut said = None;
        if order.cut == Cut::Answer {
            said = Some(self.end_session(&rest).await);
        }
        self.server.stream.shutdown().await.unwrap();
        // A test that doesn't ask isn't told.
        let _ = order.was_cut.send(());
        let arrives = order.arrives.await.unwrap_or(false);
        let said = match said {
            Some(said) => said,
            None if arrives => self.end_session(&rest).await,
            None => self.end_session(&[]).await,
        };
        // Same.
        let _ = order.ended.send(said);
    }

    /// What hasn't arrived of the transaction if it is cut at this message.
    async fn rest_from(&mut self, mut message: Vec<u8>, cut: Cut) -> Vec<u8> {
        match cut {
            Cut::Begin => self.and_up_to(message, SYNC).await,
            Cut::Write => {
                let second_half = message.split_off(message.len() / 2);
                self.database.send(&message).await.expect("PostgreSQL");
                self.and_up_to(second_half, QUERY).await
            }
            Cut::Commit | Cut::Answer => {
                // What went before has been done, not only sent.
                while self.unanswered > 0 {
                    let answer = self.database.next().await.expect("PostgreSQL");
                    self.note_answer(&answer);
                }
                message
            }
        }
    }

    /// These bytes and what the server sends behind them, up to a message of this type.
    async fn and_up_to(&mut self, mut bytes: Vec<u8>, last: u8) -> Vec<u8> {
        loop {
            let message = self.server.next().await.expect("the rest");
            bytes.extend_from_slice(&message);
            if message[0] == last {
                return bytes;
            }
        }
    }

    /// Sends the rest, if there is one, and returns what PostgreSQL said until the session had
    /// ended.
    async fn end_session(&mut self, rest: &[u8]) -> Vec<u8> {
        let database = &mut self.database.stream;
        let mut said = Vec::new();
        if !rest.is_empty() {
            // PostgreSQL may have ended the session by itself.
            let _ = database.write_all(&[rest, TERMINATE].concat()).await;
        }
        let _ = database.shutdown().await;
        let _ = database.read_to_end(&mut said).await;
        said
    }
}

impl Cut {
    fn place(self) -> Place {
        match self {
            Cut::Begin => Place::Begin,
            Cut::Write => Place::Write,
            Cut::Commit | Cut::Answer => Place::Commit,
        }
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
