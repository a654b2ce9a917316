//! A small catalog over a store: commands in, one [`WriteSet`] out. It tries again what is known
//! not applied, and resolves what is unknown under the same partitions, so that a test says what
//! it means on a store that loses every tenth answer too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{
    Action, Answer, At, BranchId, Change, Class, CommitId, Entry, Key, Kind, ObjectId,
    OperationRecord, PartitionId, PartitionKind, PartitionRow, PartitionState, Read, Revision,
    Store, StoreError, StoreTime, Task, Transaction, WriteSet,
};

/// One change of the little catalog. Each gets a revision of its own.
#[derive(Clone, Debug)]
pub enum Command {
    /// A container under a name, and its partition.
    Container(PartitionId, String, PartitionId),
    /// A new version under a key.
    Put(Key, Kind, ObjectId, String),
    /// Several at one revision, as a merge does.
    PutAll(Vec<(Key, Kind, ObjectId, String)>),
    /// Nothing under a key any more.
    Remove(Key),
    /// The same object under another key of the same partition.
    Rename(Key, Key),
    /// Two keys of one partition change their objects.
    Swap(Key, Key),
    /// A container's entry goes, and its partition is dropped. Names it and its parent's key.
    Drop(Key, PartitionId),
    /// Raises a partition's horizon to its clock as it is then.
    RaiseHorizon(PartitionId),
    /// An operation record.
    Record(OperationRecord),
    /// Work for later.
    Queue(Task),
}

/// What a commit came to.
#[derive(Clone, Debug)]
pub struct Committed {
    /// The SQL transaction.
    pub commit: CommitId,
    /// The revisions of its commands, in order.
    pub revisions: Vec<Revision>,
}

impl Committed {
    /// The revision of the last command.
    pub fn last(&self) -> Revision {
        *self.revisions.last().unwrap()
    }
}

/// The catalog.
#[derive(Clone)]
pub struct World {
    /// What it stands on.
    pub store: Arc<dyn Store>,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A number that no other test of this process has.
pub fn fresh() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A fresh id of a table or a view.
pub fn object() -> ObjectId {
    ObjectId::new(fresh())
}

/// A key on `main`.
pub fn key(partition: PartitionId, scope: &str, class: Class, name: &str) -> Key {
    Key {
        partition,
        branch: BranchId::MAIN,
        scope: scope.to_owned(),
        class,
        name: name.to_owned(),
    }
}

/// A table's key directly in a database.
pub fn table(database: PartitionId, name: &str) -> Key {
    key(database, "", Class::Table, name)
}

/// A new version of a table.
pub fn put(key: &Key, object: ObjectId, body: &str) -> Command {
    Command::Put(key.clone(), Kind::IcebergTable, object, body.to_owned())
}

/// Whether it is known not applied and worth another try.
fn may_pass(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Conflict { .. } | StoreError::Unavailable { .. }
    )
}

/// Tries again what is known not applied.
pub async fn retry<T, F>(mut call: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, StoreError>>,
{
    loop {
        match call().await {
            Ok(done) => return done,
            Err(error) if may_pass(&error) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

impl World {
    /// Over a fresh store.
    pub fn new(store: Arc<dyn Store>) -> World {
        World { store }
    }

    /// A metalake, a catalog and a database with fresh ids, under the given database name.
    pub async fn database(&self, name: &str) -> PartitionId {
        let metalake = PartitionId::new(PartitionKind::Metalake, fresh());
        let catalog = PartitionId::new(PartitionKind::Catalog, fresh());
        let lake = format!("lake-{:x}", metalake.0);
        self.container(PartitionId::ROOT, &lake, metalake).await;
        self.container(metalake, "cat", catalog).await;
        self.database_in(catalog, name).await
    }

    /// A database in a catalog.
    pub async fn database_in(&self, catalog: PartitionId, name: &str) -> PartitionId {
        let database = PartitionId::new(PartitionKind::Database, fresh());
        self.container(catalog, name, database).await;
        database
    }

    /// A container in its parent.
    pub async fn container(&self, parent: PartitionId, name: &str, id: PartitionId) {
        let command = Command::Container(parent, name.to_owned(), id);
        self.write(&[parent], &[command]).await;
    }

    /// Commits commands on one partition or several, whatever it takes.
    pub async fn write(&self, partitions: &[PartitionId], commands: &[Command]) -> Committed {
        match self.try_write(partitions, commands).await {
            Ok(committed) => committed,
            Err(error) => panic!("{error}"),
        }
    }

    /// The same, but hands out what can't be tried again, and lost races for a unique key.
    pub async fn try_write(
        &self,
        partitions: &[PartitionId],
        commands: &[Command],
    ) -> Result<Committed, StoreError> {
        loop {
            let attempt = Attempt::new(self, partitions, commands).await;
            let (transaction, writes, committed) = match attempt {
                Ok(attempt) => attempt,
                Err(error) if may_pass(&error) => continue,
                Err(error) => return Err(error),
            };
            match transaction.commit(&writes).await {
                Ok(()) => return Ok(committed),
                Err(StoreError::Unknown { .. }) => {
                    if self.was_applied(partitions, &writes).await {
                        return Ok(committed);
                    }
                }
                Err(
                    error @ StoreError::Conflict {
                        reason: crate::ConflictReason::UniqueKey,
                        ..
                    },
                ) => {
                    return Err(error);
                }
                Err(error) if may_pass(&error) => tokio::task::yield_now().await,
                Err(error) => return Err(error),
            }
        }
    }

    /// Looks for a commit while it holds the same partitions, to the end of the transaction that
    /// looked: only then does absent mean not applied.
    async fn was_applied(&self, partitions: &[PartitionId], writes: &WriteSet) -> bool {
        let stamped = writes.partitions.iter();
        let mut stamped = stamped.filter(|row| row.last_commit == writes.commit);
        let Some(row) = stamped.next() else {
            // Only a horizon was raised, and raising it again does no harm.
            return false;
        };
        loop {
            let looked = async {
                let mut transaction = self.store.begin(partitions).await?;
                let is_there = transaction
                    .holds_commit(row.id, row.last_revision, writes.commit)
                    .await?;
                let guard = WriteSet::empty(CommitId::random());
                match transaction.commit(&guard).await {
                    // Nothing was written but guards: it doesn't matter whether they are there,
                    // only that nobody else came between; so look again.
                    Err(error) => Err(error),
                    Ok(()) => Ok(is_there),
                }
            };
            match looked.await {
                Ok(is_there) => return is_there,
                Err(StoreError::Failed { detail }) => panic!("{detail}"),
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }

    /// The current version under a key.
    pub async fn get(&self, key: &Key) -> Option<Entry> {
        self.get_at(At::Latest, key).await
    }

    /// The version under a key at a revision.
    pub async fn get_at(&self, at: At, key: &Key) -> Option<Entry> {
        match self.read_one(at, Read::Point(key.clone())).await {
            Answer::Entry(entry) => entry,
            other => panic!("{other:?}"),
        }
    }

    /// The answer to one read.
    pub async fn read_one(&self, at: At, read: Read) -> Answer {
        self.read(at, vec![read]).await.remove(0)
    }

    /// The answers to reads of one snapshot.
    pub async fn read(&self, at: At, reads: Vec<Read>) -> Vec<Answer> {
        let answers = retry(|| self.store.read(at, &reads)).await;
        assert_eq!(answers.len(), reads.len());
        answers
    }

    /// A partition's row.
    pub async fn partition(&self, partition: PartitionId) -> PartitionRow {
        match self.read_one(At::Latest, Read::Partition(partition)).await {
            Answer::Partition(Some(row)) => row,
            other => panic!("{other:?}"),
        }
    }

    /// That no invariant is broken.
    pub async fn assert_sound(&self) {
        assert_eq!(self.store.audit().await.unwrap(), []);
    }
}

/// A transaction with its writes decided.
type Decided = (Box<dyn Transaction>, WriteSet, Committed);

struct Attempt {
    now: StoreTime,
    rows: BTreeMap<PartitionId, PartitionRow>,
    before: BTreeMap<Key, Entry>,
    standing: BTreeMap<Key, Entry>,
    writes: WriteSet,
    revisions: Vec<Revision>,
}

impl Attempt {
    #[allow(clippy::new_ret_no_self)]
    async fn new(
        world: &World,
        partitions: &[PartitionId],
        commands: &[Command],
    ) -> Result<Decided, StoreError> {
        let mut transaction = world.store.begin(partitions).await?;
        let keys: Vec<Key> = commands.iter().flat_map(keys_of).collect();
        let reads: Vec<Read> = keys.iter().cloned().map(Read::Point).collect();
        let answers = transaction.read(At::Latest, &reads).await?;
        let found = keys.into_iter().zip(answers);
        let before: BTreeMap<Key, Entry> = found
            .filter_map(|(key, answer)| match answer {
                Answer::Entry(entry) => entry.map(|entry| (key, entry)),
                other => panic!("{other:?}"),
            })
            .collect();
        let rows = transaction.partitions().iter();
        let mut attempt = Attempt {
            now: transaction.now(),
            rows: rows.map(|row| (row.id, row.clone())).collect(),
            standing: before.clone(),
            before,
            writes: WriteSet::empty(CommitId::random()),
            revisions: Vec::new(),
        };
        for command in commands {
            attempt.apply(command);
        }
        let (writes, committed) = attempt.finish();
        Ok((transaction, writes, committed))
    }

    fn apply(&mut self, command: &Command) {
        match command {
            Command::Container(parent, name, id) => {
                let kind = match id.kind() {
                    Some(PartitionKind::Metalake) => Kind::Metalake,
                    Some(PartitionKind::Catalog) => Kind::Catalog,
                    _ => Kind::Namespace,
                };
                let place = key(*parent, "", Class::Container, name);
                self.put(&[(place, kind, ObjectId::from(*id), "{}".to_owned())]);
                let mut row = PartitionRow::new(*id, *parent);
                row.clock = self.rows[parent].clock;
                self.writes.new_partitions.push(row);
            }
            Command::Put(key, kind, object, body) => {
                self.put(&[(key.clone(), *kind, *object, body.clone())]);
            }
            Command::PutAll(puts) => self.put(puts),
            Command::Remove(key) => {
                let revision = self.step(key.partition);
                self.leave(key, revision, 0, Action::Drop);
            }
            Command::Rename(from, to) => self.rename(&[(from, to)]),
            Command::Swap(one, other) => self.rename(&[(one, other), (other, one)]),
            Command::Drop(key, partition) => {
                let revision = self.step(key.partition);
                self.leave(key, revision, 0, Action::Drop);
                self.rows.get_mut(partition).unwrap().state = PartitionState::Dropped;
            }
            Command::RaiseHorizon(partition) => {
                let row = self.rows.get_mut(partition).unwrap();
                row.horizon = row.clock;
            }
            Command::Record(record) => self.writes.operations.push(record.clone()),
            Command::Queue(task) => self.writes.tasks.push(task.clone()),
        }
    }

    fn step(&mut self, partition: PartitionId) -> Revision {
        let row = self.rows.get_mut(&partition).unwrap();
        let revision = Revision::after(row.clock, self.now);
        row.clock = revision;
        row.last_commit = self.writes.commit;
        row.last_revision = revision;
        self.revisions.push(revision);
        revision
    }

    fn put(&mut self, puts: &[(Key, Kind, ObjectId, String)]) {
        let revision = self.step(puts[0].0.partition);
        for (place, (key, kind, object, body)) in puts.iter().enumerate() {
            let old = self.end(key, revision);
            let entry = Entry {
                kind: *kind,
                object: *object,
                version: old.as_ref().map_or(1, |old| old.version + 1),
                from: revision,
                body: body.as_str().into(),
            };
            let action = match old {
                Some(_) => Action::Update,
                None => Action::Create,
            };
            let images = (old.as_ref(), Some(&entry));
            self.log(key, revision, place, action, images);
            self.standing.insert(key.clone(), entry);
        }
    }

    fn rename(&mut self, moves: &[(&Key, &Key)]) {
        let revision = self.step(moves[0].0.partition);
        let mut place = 0;
        let mut arriving = Vec::new();
        for (from, to) in moves {
            let old = self.standing[*from].clone();
            self.leave(from, revision, place, Action::Rename);
            place += 1;
            arriving.push((to, old));
        }
        for (to, old) in arriving {
            let entry = Entry {
                version: old.version + 1,
                from: revision,
                ..old
            };
            self.log(to, revision, place, Action::Rename, (None, Some(&entry)));
            place += 1;
            self.standing.insert((*to).clone(), entry);
        }
    }

    fn leave(&mut self, key: &Key, revision: Revision, place: usize, action: Action) {
        let old = self.end(key, revision).unwrap();
        self.log(key, revision, place, action, (Some(&old), None));
    }

    fn end(&mut self, key: &Key, revision: Revision) -> Option<Entry> {
        let old = self.standing.remove(key)?;
        self.writes
            .history
            .push((key.clone(), old.clone(), revision));
        Some(old)
    }

    fn log(
        &mut self,
        key: &Key,
        revision: Revision,
        place: usize,
        action: Action,
        (before, after): (Option<&Entry>, Option<&Entry>),
    ) {
        let entry = after.or(before).unwrap();
        self.writes.changes.push(Change {
            key: key.clone(),
            revision,
            place: place as i32,
            commit: self.writes.commit,
            at: self.now,
            principal: "tester".to_owned(),
            action,
            kind: entry.kind,
            object: entry.object,
            before: before.map(|entry| Arc::clone(&entry.body)),
            after: after.map(|entry| Arc::clone(&entry.body)),
        });
    }

    fn finish(mut self) -> (WriteSet, Committed) {
        for key in self.before.keys() {
            if !self.standing.contains_key(key) {
                self.writes.removals.push(key.clone());
            }
        }
        for (key, entry) in &self.standing {
            if self.before.get(key) != Some(entry) {
                self.writes.upserts.push((key.clone(), entry.clone()));
            }
        }
        self.writes.partitions = self.rows.into_values().collect();
        let committed = Committed {
            commit: self.writes.commit,
            revisions: self.revisions,
        };
        (self.writes, committed)
    }
}

fn keys_of(command: &Command) -> Vec<Key> {
    match command {
        Command::Container(parent, name, _) => vec![key(*parent, "", Class::Container, name)],
        Command::Put(key, ..) | Command::Remove(key) | Command::Drop(key, _) => vec![key.clone()],
        Command::PutAll(puts) => puts.iter().map(|(key, ..)| key.clone()).collect(),
        Command::Rename(from, to) | Command::Swap(from, to) => vec![from.clone(), to.clone()],
        Command::RaiseHorizon(_) | Command::Record(_) | Command::Queue(_) => Vec::new(),
    }
}
