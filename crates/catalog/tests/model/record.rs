//! What happened in a run: who asked what when, and what was answered.

use std::collections::BTreeMap;

use anabranch_catalog::PropertiesChanged;
use anabranch_partition::Reason;
use anabranch_store::{Entry, Key, ObjectId, PartitionId, Revision};
use serde_json::Value as Json;

use crate::words::Step;

/// What a metadata document says, as far as the model knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    pub uuid: String,
    pub location: String,
    pub properties: BTreeMap<String, String>,
    pub snapshots: Vec<i64>,
    pub main: Option<i64>,
    pub last_sequence: i64,
}

impl Content {
    pub fn read(document: &[u8]) -> Content {
        let json: Json = serde_json::from_slice(document).unwrap();
        let text = |field: &str| json[field].as_str().unwrap().to_owned();
        let snapshots = json["snapshots"].as_array().cloned().unwrap_or_default();
        Content {
            uuid: text("table-uuid"),
            location: text("location"),
            properties: serde_json::from_value(json["properties"].clone()).unwrap_or_default(),
            snapshots: snapshots
                .iter()
                .map(|snapshot| snapshot["snapshot-id"].as_i64().unwrap())
                .collect(),
            main: json["refs"]["main"]["snapshot-id"].as_i64(),
            last_sequence: json["last-sequence-number"].as_i64().unwrap_or_default(),
        }
    }
}

/// A table as a client sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenTable {
    pub levels: Vec<String>,
    pub table: String,
    pub object: ObjectId,
    pub version: i64,
    pub revision: Revision,
    pub metadata_location: String,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Nothing,
    Properties(PropertiesChanged),
    /// The tables of a commit that are still there.
    Tables(Vec<SeenTable>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    Names(Vec<String>),
    Namespace(BTreeMap<String, String>),
    Table(SeenTable),
    Pinned(PinnedRead),
    Nothing,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PinnedRead {
    pub partition: PartitionId,
    pub revision: Revision,
    pub rows: Vec<(Key, Entry)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Accepted. The revision is that of the change, or of what stands if it was applied before;
    /// `None` where the answer tells of another thing than what was changed.
    Done {
        revision: Option<Revision>,
        value: Value,
    },
    Seen(Seen),
    Refused(Reason, String),
    /// Busy or out of reach, and known not applied.
    NotApplied(String),
    Unknown,
    /// Nothing that a server may say here.
    Broken(String),
}

/// What one change of a commit required when it was sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asserted {
    pub uuid: Option<String>,
    /// Main's snapshot, also that it has none.
    pub main: Option<Option<i64>>,
    /// The sequence number that the table had.
    pub sequence: i64,
}

/// A request in the words in which it was first sent, and is sent again.
#[derive(Clone, Debug)]
pub struct Request {
    pub step: Step,
    pub asserted: Vec<Asserted>,
}

impl Request {
    /// Names the request in the change log.
    pub fn principal(&self) -> String {
        principal(self.step.id)
    }
}

pub fn principal(step: usize) -> String {
    format!("step {step}")
}

/// One sending of a request. Times are places in the order of all calls and answers.
#[derive(Clone, Debug)]
pub struct Sending {
    pub step: usize,
    pub server: usize,
    pub called: u64,
    pub answered: u64,
    pub answer: Answer,
}

/// Everything that the clients know.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub requests: BTreeMap<usize, Request>,
    pub sendings: Vec<Sending>,
}
