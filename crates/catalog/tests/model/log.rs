//! What the store holds when a run is over: the change log, command by command, and the rows.

use std::collections::BTreeMap;

use anabranch_partition::Partitions;
use anabranch_store::{
    Action, Answer, At, Change, Entry, Key, Kind, ObjectId, PartitionId, Revision, Store,
};

use crate::client::everything_in;
use crate::record::Content;

/// What one version of a thing says.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Catalog,
    Namespace(BTreeMap<String, String>),
    Table {
        metadata_location: String,
        content: Content,
    },
}

impl Body {
    pub fn read(kind: Kind, text: &str) -> Body {
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        match kind {
            Kind::Namespace => {
                Body::Namespace(serde_json::from_value(json["properties"].clone()).unwrap())
            }
            Kind::IcebergTable => {
                let location = json["metadataLocation"].as_str().unwrap();
                let path = location.strip_prefix("file://").unwrap();
                let document = std::fs::read(path)
                    .unwrap_or_else(|error| panic!("{location} is committed, but {error}"));
                let content = Content::read(&document);
                assert_eq!(json["uuid"], content.uuid.as_str(), "uuid of {location}");
                assert_eq!(json["location"], content.location.as_str());
                Body::Table {
                    metadata_location: location.to_owned(),
                    content,
                }
            }
            _ => Body::Catalog,
        }
    }
}

/// One line of the change log.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub key: Key,
    pub action: Action,
    pub object: ObjectId,
    pub kind: Kind,
    pub before: Option<Body>,
    pub after: Option<Body>,
}

/// What one command did: everything of one revision.
#[derive(Clone, Debug)]
pub struct Done {
    pub revision: Revision,
    pub principal: String,
    pub lines: Vec<Line>,
}

/// What is left in the store of a run.
pub struct Log {
    /// In the order of revisions.
    pub done: Vec<Done>,
    /// Of each partition, as it is written down.
    pub raw: BTreeMap<PartitionId, Vec<Change>>,
    /// Current rows.
    pub rows: BTreeMap<Key, Entry>,
}

impl Log {
    /// Reads partition by partition, and not through the feed.
    pub async fn read(store: &dyn Store, metalake: PartitionId) -> Log {
        let mut log = Log {
            done: Vec::new(),
            raw: BTreeMap::new(),
            rows: BTreeMap::new(),
        };
        for row in store.feed_partitions(Some(metalake)).await.unwrap() {
            let changes = store
                .changes_between(row.id, Revision::ZERO, Revision::MAX, None, 100_000)
                .await
                .unwrap();
            log.raw.insert(row.id, changes);
            for (key, entry) in rows_of(store, row.id, At::Latest).await {
                log.rows.insert(key, entry);
            }
        }
        log.done = by_command(log.raw.values().flatten());
        log
    }
}

pub async fn rows_of(store: &dyn Store, partition: PartitionId, at: At) -> Vec<(Key, Entry)> {
    match store.read(at, &[everything_in(partition)]).await {
        Ok(answers) => match answers.into_iter().next() {
            Some(Answer::Entries(rows)) => rows,
            other => panic!("no rows but {other:?}"),
        },
        Err(error) => panic!("{error}"),
    }
}

/// The same read as a client made, once more.
pub async fn read_again(
    partitions: &Partitions,
    partition: PartitionId,
    revision: Revision,
) -> Vec<(Key, Entry)> {
    let reads = [everything_in(partition)];
    let mut answers = partitions
        .read_at(partition, revision, &reads)
        .await
        .unwrap();
    match answers.pop() {
        Some(Answer::Entries(rows)) => rows,
        other => panic!("no rows but {other:?}"),
    }
}

fn by_command<'a>(changes: impl Iterator<Item = &'a Change>) -> Vec<Done> {
    let mut bodies: BTreeMap<String, Body> = BTreeMap::new();
    let mut done: BTreeMap<(Revision, uuid::Uuid), Done> = BTreeMap::new();
    for change in changes {
        let mut body = |text: &Option<std::sync::Arc<str>>| {
            let text = text.as_ref()?;
            let kept = bodies.entry(format!("{:?}{text}", change.kind));
            Some(
                kept.or_insert_with(|| Body::read(change.kind, text))
                    .clone(),
            )
        };
        let line = Line {
            key: change.key.clone(),
            action: change.action,
            object: change.object,
            kind: change.kind,
            before: body(&change.before),
            after: body(&change.after),
        };
        let command = done
            .entry((change.revision, change.commit.0))
            .or_insert_with(|| Done {
                revision: change.revision,
                principal: change.principal.clone(),
                lines: Vec::new(),
            });
        command.lines.push(line);
    }
    done.into_values().collect()
}
