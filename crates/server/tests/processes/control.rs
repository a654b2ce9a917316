//! The test's end of the line to a server with named points (`crates/server/src/points.rs`).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::{Mutex, watch};

use super::point::{Point, When};

/// Clones speak to the same server.
#[derive(Clone)]
pub struct Control {
    orders: Arc<Mutex<OwnedWriteHalf>>,
    last: Arc<AtomicU64>,
    heard: watch::Receiver<Heard>,
}

#[derive(Default)]
struct Heard {
    followed: HashMap<u64, Value>,
    reached: HashSet<u64>,
    /// The server is gone.
    ended: bool,
}

/// A call that stops at its point until it is resumed.
pub struct Pause {
    control: Control,
    id: u64,
}

impl Control {
    pub fn over(stream: TcpStream) -> Control {
        let (words, orders) = stream.into_split();
        let (tell, heard) = watch::channel(Heard::default());
        tokio::spawn(async move {
            let mut words = BufReader::new(words).lines();
            while let Ok(Some(line)) = words.next_line().await {
                let word: Value = serde_json::from_str(&line).expect("a word of the server");
                tell.send_modify(|heard| {
                    if let Some(id) = word["reached"].as_u64() {
                        heard.reached.insert(id);
                    } else {
                        let id = word["ok"].as_u64();
                        let id = id.unwrap_or_else(|| panic!("an order was refused: {word}"));
                        heard.followed.insert(id, word);
                    }
                });
            }
            tell.send_modify(|heard| heard.ended = true);
        });
        Control {
            orders: Arc::new(Mutex::new(orders)),
            last: Arc::default(),
            heard,
        }
    }

    /// Gives an order and returns when the server has understood it.
    async fn order(&self, mut order: Value) -> (u64, Value) {
        let id = self.last.fetch_add(1, Ordering::SeqCst) + 1;
        order["id"] = json!(id);
        let line = format!("{order}\n");
        let sent = self.orders.lock().await.write_all(line.as_bytes()).await;
        sent.expect("a server that listens");
        let mut heard = self.heard.clone();
        let heard = heard
            .wait_for(|heard| heard.ended || heard.followed.contains_key(&id))
            .await
            .expect("a server that listens");
        let word = heard.followed.get(&id).cloned();
        (id, word.expect("the server ended before it took an order"))
    }

    pub async fn pause(&self, point: &Point) -> Pause {
        let (id, _) = self.order(point.order("pause")).await;
        let control = self.clone();
        Pause { control, id }
    }

    /// The call fails there: known not applied if before it.
    pub async fn fail(&self, point: &Point) {
        self.order(point.order("fail")).await;
    }

    /// The request (before) or its answer (after) is lost.
    pub async fn lose(&self, point: &Point) {
        self.order(point.order("lose")).await;
    }

    /// Moves the store's time as this server sees it.
    pub async fn shift_clock(&self, micros: i64) {
        self.order(json!({ "do": "shift", "micros": micros })).await;
    }

    /// How often each call came to each side since the start.
    pub async fn hits(&self) -> BTreeMap<(String, When), u64> {
        let (_, word) = self.order(json!({ "do": "hits" })).await;
        let hits = word["hits"].as_array().cloned().unwrap_or_default();
        let one = |hit: &Value| {
            let when = match hit[1].as_str() {
                Some("before") => When::Before,
                _ => When::After,
            };
            let call = hit[0].as_str().expect("a name").to_owned();
            ((call, when), hit[2].as_u64().expect("a count"))
        };
        hits.iter().map(one).collect()
    }
}

impl Pause {
    /// Returns `true` when the call has come to the point, `false` if the server ended first.
    pub async fn reached(&self) -> bool {
        let mut heard = self.control.heard.clone();
        let heard = heard
            .wait_for(|heard| heard.ended || heard.reached.contains(&self.id))
            .await;
        heard.is_ok_and(|heard| heard.reached.contains(&self.id))
    }

    pub async fn resume(&self) {
        let order = json!({ "do": "resume", "pause": self.id });
        self.control.order(order).await;
    }
}
