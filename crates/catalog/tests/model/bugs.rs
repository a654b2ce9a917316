//! Planted bugs: a store that betrays the server above it, one way each. A checker that lets one
//! of them pass is worth nothing.

use std::collections::{BTreeMap, HashMap};
use std::path::Path as FilePath;
use std::sync::{Arc, Mutex};

use anabranch_store::{
    Action, Answer, At, Change, Class, CommitId, Entry, Feed, FeedPosition, Key, Kind, ObjectId,
    PartitionId, PartitionRow, Path, Read, Resolved, Revision, Store, StoreError, StoreTime, Task,
    TaskId, Transaction, Violation, WriteSet,
};
use async_trait::async_trait;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A commit to a table is acknowledged and never written.
    LostCommit,
    /// What is compared under the lock is what was read before it: the commit in between is lost.
    StaleSwap,
    /// A property update writes what it read too early: somebody else's key is lost.
    LostProperty,
    /// Whoever puts a table into a nested namespace isn't told that it was dropped meanwhile.
    PhantomNamespace,
    /// The feed leaves out a change.
    FeedGap,
    /// An ended version is not kept.
    HistoryGap,
    /// The answers of keyed requests are not kept.
    ForgottenKey,
    /// A server isn't told what others changed of what it has cached.
    StaleCache,
}

/// What one server read before it held anything.
#[derive(Default)]
struct Memory {
    tables: HashMap<ObjectId, Entry>,
    namespaces: HashMap<(PartitionId, String, String), Entry>,
}

pub struct BuggyStore {
    inner: Arc<dyn Store>,
    bug: Bug,
    memory: Arc<Mutex<Memory>>,
}

impl BuggyStore {
    pub fn new(inner: Arc<dyn Store>, bug: Bug) -> BuggyStore {
        BuggyStore {
            inner,
            bug,
            memory: Arc::default(),
        }
    }
}

struct BuggyTransaction {
    inner: Box<dyn Transaction>,
    bug: Bug,
    memory: Arc<Mutex<Memory>>,
    /// What really stands where something else was shown.
    truth: BTreeMap<Key, Entry>,
}

#[async_trait]
impl Transaction for BuggyTransaction {
    fn now(&self) -> StoreTime {
        self.inner.now()
    }

    fn partitions(&self) -> &[PartitionRow] {
        self.inner.partitions()
    }

    async fn lock(&mut self, more: &[PartitionId]) -> Result<(), StoreError> {
        self.inner.lock(more).await
    }

    async fn read(&mut self, at: At, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
        let mut answers = self.inner.read(at, reads).await?;
        let is_about_a_table = |read: &Read| match read {
            Read::Point(key) => key.class == Class::Table,
            _ => false,
        };
        let puts_a_table = reads.iter().any(is_about_a_table);
        let memory = self.memory.lock().unwrap();
        for (read, answer) in reads.iter().zip(&mut answers) {
            let (Read::Point(key), Answer::Entry(entry)) = (read, answer) else {
                continue;
            };
            let remembered = match (self.bug, entry.as_ref()) {
                (Bug::StaleSwap, Some(entry)) if key.class == Class::Table => {
                    memory.tables.get(&entry.object)
                }
                (Bug::PhantomNamespace, None) if key.class == Class::Container && puts_a_table => {
                    let place = (key.partition, key.scope.clone(), key.name.clone());
                    memory.namespaces.get(&place)
                }
                _ => None,
            };
            if let Some(remembered) = remembered
                && let Some(truth) = entry.replace(remembered.clone())
            {
                self.truth.insert(key.clone(), truth);
            }
        }
        Ok(answers)
    }

    async fn changed_since(
        &mut self,
        partition: PartitionId,
        revision: Revision,
        commit: CommitId,
    ) -> Result<Option<Vec<Key>>, StoreError> {
        let changed = self
            .inner
            .changed_since(partition, revision, commit)
            .await?;
        match self.bug {
            Bug::StaleCache => Ok(changed.map(|_| Vec::new())),
            _ => Ok(changed),
        }
    }

    async fn holds_commit(
        &mut self,
        partition: PartitionId,
        revision: Revision,
        commit: CommitId,
    ) -> Result<bool, StoreError> {
        self.inner.holds_commit(partition, revision, commit).await
    }

    async fn commit(self: Box<Self>, writes: &WriteSet) -> Result<(), StoreError> {
        let mut writes = writes.clone();
        let is_table_update =
            |change: &Change| change.kind == Kind::IcebergTable && change.action == Action::Update;
        match self.bug {
            Bug::LostCommit if writes.changes.iter().any(is_table_update) => {
                self.inner.rollback().await;
                return Ok(());
            }
            Bug::StaleSwap => {
                for (key, entry, _) in &mut writes.history {
                    if let Some(truth) = self.truth.get(key) {
                        *entry = truth.clone();
                    }
                }
            }
            Bug::LostProperty => forget_properties(&mut writes),
            Bug::HistoryGap => {
                writes.history.pop();
            }
            Bug::ForgottenKey => writes.operations.clear(),
            _ => {}
        }
        self.inner.commit(&writes).await
    }

    async fn rollback(self: Box<Self>) {
        self.inner.rollback().await;
    }
}

/// Leaves of the properties of a namespace only those that the update names.
fn forget_properties(writes: &mut WriteSet) {
    for change in &mut writes.changes {
        let (Kind::Namespace, Some(before), Some(after)) =
            (change.kind, &change.before, &change.after)
        else {
            continue;
        };
        let properties = |body: &str| {
            let json: serde_json::Value = serde_json::from_str(body).unwrap();
            let properties: BTreeMap<String, String> =
                serde_json::from_value(json["properties"].clone()).unwrap();
            properties
        };
        let before = properties(before);
        let mut left = properties(after);
        left.retain(|key, value| before.get(key) != Some(value));
        let body: Arc<str> = serde_json::json!({ "properties": left }).to_string().into();
        for (key, entry) in &mut writes.upserts {
            if *key == change.key {
                entry.body = body.clone();
            }
        }
        change.after = Some(body);
    }
}

#[async_trait]
impl Store for BuggyStore {
    fn engine(&self) -> &'static str {
        self.inner.engine()
    }

    fn is_serial(&self) -> bool {
        self.inner.is_serial()
    }

    async fn begin_reading(
        &self,
        partitions: &[PartitionId],
        reads: &[Read],
    ) -> Result<(Box<dyn Transaction>, Vec<Answer>), StoreError> {
        let mut transaction = BuggyTransaction {
            inner: self.inner.begin(partitions).await?,
            bug: self.bug,
            memory: self.memory.clone(),
            truth: BTreeMap::new(),
        };
        let answers = transaction.read(At::Latest, reads).await?;
        Ok((Box::new(transaction), answers))
    }

    async fn resolve(&self, paths: &[Path]) -> Result<Vec<Resolved>, StoreError> {
        let resolved = self.inner.resolve(paths).await?;
        let mut memory = self.memory.lock().unwrap();
        for (path, found) in paths.iter().zip(&resolved) {
            let (Some(leaf), Some(entry), Some(database)) =
                (&path.leaf, &found.leaf, &found.partition)
            else {
                continue;
            };
            match leaf.class {
                Class::Table => {
                    memory.tables.insert(entry.object, entry.clone());
                }
                _ => {
                    let place = (database.id, leaf.scope.clone(), leaf.name.clone());
                    memory.namespaces.insert(place, entry.clone());
                }
            }
        }
        Ok(resolved)
    }

    async fn read(&self, at: At, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
        self.inner.read(at, reads).await
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        self.inner.now().await
    }

    async fn feed(&self, after: &[FeedPosition], limit: u32) -> Result<Feed, StoreError> {
        let mut feed = self.inner.feed(after, limit).await?;
        if self.bug == Bug::FeedGap && feed.changes.len() > 2 {
            feed.changes.remove(1);
        }
        Ok(feed)
    }

    async fn feed_partitions(
        &self,
        below: Option<PartitionId>,
    ) -> Result<Vec<PartitionRow>, StoreError> {
        self.inner.feed_partitions(below).await
    }

    async fn changes_between(
        &self,
        partition: PartitionId,
        from: Revision,
        to: Revision,
        after: Option<(Revision, i32)>,
        limit: u32,
    ) -> Result<Vec<Change>, StoreError> {
        let changes = self
            .inner
            .changes_between(partition, from, to, after, limit);
        changes.await
    }

    async fn prune(&self, partition: PartitionId, limit: u32) -> Result<u64, StoreError> {
        self.inner.prune(partition, limit).await
    }

    async fn retire(&self, partition: PartitionId, limit: u32) -> Result<u64, StoreError> {
        self.inner.retire(partition, limit).await
    }

    async fn expire_operations(&self, limit: u32) -> Result<u64, StoreError> {
        self.inner.expire_operations(limit).await
    }

    async fn history_page(
        &self,
        partition: PartitionId,
        after: Option<(Key, Revision)>,
        limit: u32,
    ) -> Result<Vec<(Key, Entry, Revision)>, StoreError> {
        self.inner.history_page(partition, after, limit).await
    }

    async fn current_page(
        &self,
        partition: PartitionId,
        after: Option<Key>,
        limit: u32,
    ) -> Result<Vec<(Key, Entry)>, StoreError> {
        self.inner.current_page(partition, after, limit).await
    }

    async fn lease_task(
        &self,
        kinds: &[&str],
        owner: &str,
        lease_micros: i64,
    ) -> Result<Option<Task>, StoreError> {
        self.inner.lease_task(kinds, owner, lease_micros).await
    }

    async fn finish_task(&self, task: TaskId, owner: &str) -> Result<bool, StoreError> {
        self.inner.finish_task(task, owner).await
    }

    async fn postpone_task(
        &self,
        task: TaskId,
        owner: &str,
        delay_micros: i64,
    ) -> Result<bool, StoreError> {
        self.inner.postpone_task(task, owner, delay_micros).await
    }

    async fn task(&self, task: TaskId) -> Result<Option<Task>, StoreError> {
        self.inner.task(task).await
    }

    async fn save_task(
        &self,
        task: TaskId,
        owner: &str,
        body: &str,
        lease_micros: i64,
    ) -> Result<bool, StoreError> {
        self.inner.save_task(task, owner, body, lease_micros).await
    }

    async fn ensure_task(&self, task: &Task) -> Result<(), StoreError> {
        self.inner.ensure_task(task).await
    }

    async fn audit(&self) -> Result<Vec<Violation>, StoreError> {
        self.inner.audit().await
    }

    async fn backup(&self, target: &FilePath) -> Result<(), StoreError> {
        self.inner.backup(target).await
    }

    fn statements(&self) -> u64 {
        self.inner.statements()
    }
}
