//! Named points at which a test stops this server or makes it fail. Only in builds for tests.
//!
//! A server that is started with [`CONTROL`] connects to the test that listens there, and takes
//! orders from it, a line of JSON each. Points are those of the store's decorator
//! (`anabranch_store::fault`), and `file.put_new`, `file.get` and so on before and after each call
//! of the file layer. A crash is a pause at the point, and SIGKILL.
//!
//! ```text
//! {"id":1,"do":"pause","call":"commit","when":"before","nth":1}   →  {"ok":1}  …  {"reached":1}
//! {"id":2,"do":"resume","pause":1}                                →  {"ok":2}
//! {"id":3,"do":"fail","call":"begin","when":"before","nth":1}     →  {"ok":3}
//! {"id":4,"do":"lose","call":"commit","when":"after","nth":1}     →  {"ok":4}
//! {"id":5,"do":"shift","micros":3600000000}                       →  {"ok":5}
//! {"id":6,"do":"hits"}                 →  {"ok":6,"hits":[["commit","before",3], …]}
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anabranch_files::{
    Fault as FileFault, FaultCall, FaultGate, Faults as FileFaults, FileErrorKind, Files,
};
use anabranch_store::fault::{CALLS, Fault, FaultStore, Faults, Pause, When};
use anabranch_store::{Store, StoreError};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

/// The environment variable with the address of the test.
const CONTROL: &str = "ANABRANCH_TEST_CONTROL";

const FILE_CALLS: [(&str, FaultCall); 6] = [
    ("file.put_new", FaultCall::PutNew),
    ("file.get", FaultCall::Get),
    ("file.delete", FaultCall::Delete),
    ("file.list", FaultCall::List),
    ("file.delete_under", FaultCall::DeleteUnder),
    ("file.ensure_folders", FaultCall::EnsureFolders),
];

static POINTS: OnceLock<Points> = OnceLock::new();

#[derive(Clone, Default)]
struct Points {
    store: Faults,
    files: FileFaults,
    held: Arc<Mutex<HashMap<u64, Held>>>,
}

#[derive(Clone)]
enum Held {
    Store(Arc<Pause>),
    File(FaultGate),
}

/// The store, with the points of a test if there is one.
pub async fn around_store(store: Arc<dyn Store>) -> Arc<dyn Store> {
    let Ok(address) = std::env::var(CONTROL) else {
        return store;
    };
    let points = POINTS.get_or_init(Points::default);
    match TcpStream::connect(&address).await {
        Ok(stream) => tokio::spawn(points.clone().obey(stream)),
        Err(error) => panic!("{CONTROL}={address}: {error}"),
    };
    Arc::new(FaultStore::new(store, points.store.clone()))
}

/// The files, with the points of a test if there is one.
pub fn around_files(files: Files) -> Files {
    match POINTS.get() {
        Some(points) => files.with_faults(points.files.clone()),
        None => files,
    }
}

impl Points {
    async fn obey(self, stream: TcpStream) {
        let (orders, mut words) = stream.into_split();
        let (say, mut said) = mpsc::unbounded_channel::<Value>();
        tokio::spawn(async move {
            while let Some(word) = said.recv().await {
                // A test that went away hears nothing more.
                let _ = words.write_all(format!("{word}\n").as_bytes()).await;
            }
        });
        let mut orders = BufReader::new(orders).lines();
        while let Ok(Some(line)) = orders.next_line().await {
            let answer = match serde_json::from_str::<Value>(&line) {
                Ok(order) => self.follow(&order, &say),
                Err(error) => Err(error.to_string()),
            };
            // Same.
            let _ = say.send(answer.unwrap_or_else(|reason| json!({ "error": reason })));
        }
    }

    fn follow(&self, order: &Value, say: &mpsc::UnboundedSender<Value>) -> Result<Value, String> {
        let id = order["id"].as_u64().ok_or("an order needs an id")?;
        let word = order["do"].as_str().unwrap_or_default();
        match word {
            "pause" => self.pause(id, order, say)?,
            "resume" => {
                let pause = order["pause"].as_u64().unwrap_or_default();
                let held = self.lock().get(&pause).cloned();
                match held.ok_or("no such pause")? {
                    Held::Store(pause) => pause.resume(),
                    Held::File(gate) => gate.open(),
                }
            }
            "fail" | "lose" => self.spoil(word, order)?,
            "shift" => {
                let micros = order["micros"].as_i64().ok_or("micros is a number")?;
                self.store.shift_clock(micros);
            }
            "hits" => return Ok(json!({ "ok": id, "hits": self.hits() })),
            other => return Err(format!("no order is called {other}")),
        }
        Ok(json!({ "ok": id }))
    }

    fn pause(
        &self,
        id: u64,
        order: &Value,
        say: &mpsc::UnboundedSender<Value>,
    ) -> Result<(), String> {
        let (place, when, nth) = place(order)?;
        let held = match place {
            Place::Store(call) => Held::Store(Arc::new(self.store.pause(call, when, nth))),
            Place::File(call) => {
                let gate = FaultGate::default();
                let fault = match when {
                    When::Before => FileFault::HoldBefore(gate.clone()),
                    When::After => FileFault::HoldAfter(gate.clone()),
                };
                self.on_file(call, nth, fault);
                Held::File(gate)
            }
        };
        self.lock().insert(id, held.clone());
        let say = say.clone();
        tokio::spawn(async move {
            match held {
                Held::Store(pause) => pause.arrived().await,
                Held::File(gate) => gate.arrived().await,
            }
            // A test that went away hears nothing more.
            let _ = say.send(json!({ "reached": id }));
        });
        Ok(())
    }

    fn spoil(&self, word: &str, order: &Value) -> Result<(), String> {
        let (place, when, nth) = place(order)?;
        match place {
            Place::Store(call) => {
                let fault = match word {
                    "lose" => Fault::LostAnswer,
                    _ => Fault::Error(StoreError::Unavailable {
                        detail: "injected".to_owned(),
                    }),
                };
                self.store.at(call, when, nth, fault);
            }
            Place::File(call) => {
                let kind = FileErrorKind::Unavailable;
                let fault = match when {
                    When::Before => FileFault::FailBefore(kind),
                    When::After => FileFault::FailAfter(kind),
                };
                self.on_file(call, nth, fault);
            }
        }
        Ok(())
    }

    fn on_file(&self, call: FaultCall, nth: usize, fault: FileFault) {
        let nth = self.files.calls(call) + u64::try_from(nth).unwrap_or(u64::MAX);
        self.files.on_nth(call, nth, fault);
    }

    fn hits(&self) -> Vec<(&'static str, &'static str, u64)> {
        let mut hits = Vec::new();
        for call in CALLS {
            for (name, when) in [("before", When::Before), ("after", When::After)] {
                hits.push((call, name, self.store.hits(call, when) as u64));
            }
        }
        for (call, kind) in FILE_CALLS {
            // A call of the file layer always comes to both of its points.
            hits.push((call, "before", self.files.calls(kind)));
            hits.push((call, "after", self.files.calls(kind)));
        }
        hits.retain(|(_, _, count)| *count > 0);
        hits
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Place {
    Store(&'static str),
    File(FaultCall),
}

fn place(order: &Value) -> Result<(Place, When, usize), String> {
    let name = order["call"].as_str().unwrap_or_default();
    let of_store = CALLS.iter().find(|call| **call == name).copied();
    let of_files = FILE_CALLS.iter().find(|(call, _)| *call == name);
    let place = match (of_store, of_files) {
        (Some(call), _) => Place::Store(call),
        (None, Some((_, call))) => Place::File(*call),
        (None, None) => return Err(format!("no call is called {name}")),
    };
    let when = match order["when"].as_str() {
        Some("before") => When::Before,
        Some("after") => When::After,
        _ => return Err("when is before or after".to_owned()),
    };
    let nth = order["nth"]
        .as_u64()
        .and_then(|nth| usize::try_from(nth).ok());
    Ok((place, when, nth.unwrap_or(1)))
}
