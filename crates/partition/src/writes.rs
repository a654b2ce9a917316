//! From accepted commands to the rows that one SQL transaction writes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anabranch_store::{
    BranchId, BranchRow, Change, CommitId, Entry, Head, Key, Kind, ObjectId, OperationRecord,
    PartitionId, PartitionRow, Pin, Revision, StoreTime, Task, TaskId, WriteSet,
};
use uuid::Uuid;

use crate::view::{Effects, Overlay, is_versioned};

/// Gathers what the accepted commands of a batch did, in their order.
pub(crate) struct Writes {
    commit: CommitId,
    now: StoreTime,
    overlay: Overlay,
    stood_before: HashMap<Key, bool>,
    history: Vec<(Key, Entry, Revision)>,
    changes: Vec<Change>,
    last_change: BTreeMap<PartitionId, Revision>,
    last_revision: Revision,
    new_partitions: BTreeSet<PartitionId>,
    operations: Vec<OperationRecord>,
    tasks: Vec<Task>,
    finished_tasks: Vec<TaskId>,
    heads: BTreeMap<(PartitionId, BranchId), Revision>,
    births: Vec<(Key, Revision)>,
    new_branches: Vec<BranchRow>,
    ended: BTreeSet<(PartitionId, BranchId)>,
    pins: Vec<Pin>,
    unpinned: Vec<ObjectId>,
}

impl Writes {
    pub(crate) fn new(now: StoreTime) -> Writes {
        Writes {
            commit: CommitId::random(),
            now,
            overlay: Overlay::default(),
            stood_before: HashMap::new(),
            history: Vec::new(),
            changes: Vec::new(),
            last_change: BTreeMap::new(),
            last_revision: Revision::ZERO,
            new_partitions: BTreeSet::new(),
            operations: Vec::new(),
            tasks: Vec::new(),
            finished_tasks: Vec::new(),
            heads: BTreeMap::new(),
            births: Vec::new(),
            new_branches: Vec::new(),
            ended: BTreeSet::new(),
            pins: Vec::new(),
            unpinned: Vec::new(),
        }
    }

    pub(crate) fn overlay(&self) -> &Overlay {
        &self.overlay
    }

    pub(crate) fn last_revision(&self) -> Revision {
        self.last_revision
    }

    /// Takes over what one accepted command did at its revision.
    pub(crate) fn accept(&mut self, effects: Effects, revision: Revision, principal: &str) {
        self.last_revision = revision;
        let mut places: HashMap<PartitionId, i32> = HashMap::new();
        for step in effects.steps {
            let place = places.entry(step.key.partition).or_default();
            let shown = step.after.as_ref();
            let shown = shown.filter(|entry| entry.kind != Kind::Absent);
            let Some(subject) = shown.or(step.before.as_ref()) else {
                continue;
            };
            self.changes.push(Change {
                key: step.key.clone(),
                revision,
                place: *place,
                commit: self.commit,
                at: self.now,
                principal: principal.to_owned(),
                action: step.action,
                kind: subject.kind,
                object: subject.object,
                before: step.before.as_ref().map(|entry| entry.body.clone()),
                after: shown.map(|entry| entry.body.clone()),
            });
            *place += 1;
            self.last_change.insert(step.key.partition, revision);
            self.stood_before
                .entry(step.key.clone())
                .or_insert(step.ended.is_some());
            if is_versioned(&step.key) {
                let branch = (step.key.partition, step.key.branch);
                self.heads.insert(branch, revision);
                if step.ended.is_none() && step.after.is_some() {
                    self.births.push((step.key.clone(), revision));
                }
            }
            if let Some(ended) = step.ended.filter(|entry| entry.from < revision) {
                self.history.push((step.key, ended, revision));
            }
        }
        self.new_branches.extend(effects.new_branches);
        for branch in effects.ends {
            self.heads.insert(branch, revision);
            self.ended.insert(branch);
        }
        self.pins.extend(effects.pins);
        self.unpinned.extend(effects.unpinned);
        self.new_partitions.extend(effects.new_partitions);
        self.overlay.absorb(effects.overlay);
        self.finished_tasks.extend(effects.finished_tasks);
        let now = self.now;
        self.tasks
            .extend(effects.tasks.into_iter().map(|task| Task {
                id: TaskId(Uuid::new_v4()),
                kind: task.kind.to_owned(),
                body: task.body,
                due: now.plus_micros(task.delay_micros),
                attempts: 0,
            }));
    }

    pub(crate) fn record(&mut self, record: OperationRecord) {
        self.overlay
            .operations
            .insert(record.key.clone(), record.clone());
        self.operations.push(record);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
            && self.operations.is_empty()
            && self.tasks.is_empty()
            && self.finished_tasks.is_empty()
            && self.overlay.partitions.is_empty()
            && self.pins.is_empty()
            && self.unpinned.is_empty()
    }

    /// Where the change log will hold this transaction, if it changes any partition.
    pub(crate) fn witness(&self) -> Option<(PartitionId, Revision, CommitId)> {
        let (partition, revision) = self.last_change.iter().next()?;
        Some((*partition, *revision, self.commit))
    }

    /// Everything, as the engine writes it.
    pub(crate) fn finish(
        &self,
        held: &BTreeMap<PartitionId, Option<PartitionRow>>,
    ) -> Option<WriteSet> {
        let mut set = WriteSet::empty(self.commit);
        for (key, entry) in &self.overlay.entries {
            match entry {
                Some(entry) => set.upserts.push((key.clone(), entry.clone())),
                None if self.stood_before.get(key) == Some(&true) => set.removals.push(key.clone()),
                None => {}
            }
        }
        let touched: BTreeSet<PartitionId> = self
            .last_change
            .keys()
            .chain(self.overlay.partitions.keys())
            .copied()
            .collect();
        for id in touched {
            let row = self
                .overlay
                .partitions
                .get(&id)
                .or_else(|| held.get(&id).and_then(Option::as_ref))?;
            let mut row = row.clone();
            row.clock = row.clock.max(self.last_revision);
            if let Some(revision) = self.last_change.get(&id) {
                row.last_commit = self.commit;
                row.last_revision = *revision;
            }
            if self.new_partitions.contains(&id) {
                set.new_partitions.push(row);
            } else {
                set.partitions.push(row);
            }
        }
        set.history = self.history.clone();
        set.changes = self.changes.clone();
        set.operations = self.operations.clone();
        set.tasks = self.tasks.clone();
        set.finished_tasks = self.finished_tasks.clone();
        self.finish_branches(&mut set);
        Some(set)
    }

    /// One row, one write: what happens to a branch in the batch that makes it goes in with it.
    fn finish_branches(&self, set: &mut WriteSet) {
        let mut heads = self.heads.clone();
        for row in &self.new_branches {
            let id = (row.partition, row.branch);
            let head = heads.remove(&id).unwrap_or(row.head);
            set.new_branches.push(BranchRow {
                head,
                ended: self.ended.contains(&id).then_some(head),
                ..row.clone()
            });
        }
        set.heads
            .extend(heads.into_iter().map(|(id, revision)| Head {
                partition: id.0,
                branch: id.1,
                revision,
                ends: self.ended.contains(&id),
            }));
        set.births = self.births.clone();
        let is_kept = |pin: &&Pin| !self.unpinned.contains(&pin.owner);
        set.pins = self.pins.iter().filter(is_kept).copied().collect();
        set.unpinned = self.unpinned.clone();
    }
}
