//! What a command sees and changes: rows read under the lock, the accepted changes of the batch
//! before it, and its own.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use anabranch_store::{
    Action, Answer, BranchId, BranchRow, BranchState, Class, Entry, Key, Kind, ObjectId,
    OperationRecord, PartitionId, PartitionKind, PartitionRow, PartitionState, Pin, Read, Revision,
    TaskId,
};

use crate::command::Stop;
use crate::layers::{Layers, Listing, Merged, Name, decide, name_of};

/// Rows as the store holds them at the lock, by the reads that brought them.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) points: HashMap<Key, Option<Entry>>,
    pub(crate) operations: HashMap<String, Option<OperationRecord>>,
    pub(crate) others: HashMap<Read, Answer>,
}

impl Rows {
    pub(crate) fn knows(&self, read: &Read) -> bool {
        match read {
            Read::Point(key) => self.points.contains_key(key),
            Read::Operation(key) => self.operations.contains_key(key),
            other => self.others.contains_key(other),
        }
    }

    pub(crate) fn add(&mut self, read: Read, answer: Answer) {
        match (read, answer) {
            (Read::Point(key), Answer::Entry(entry)) => {
                self.points.insert(key, entry);
            }
            (Read::Operation(key), Answer::Operation(record)) => {
                self.operations.insert(key, record);
            }
            (other, answer) => {
                self.others.insert(other, answer);
            }
        }
    }
}

/// One change of one key by one command, in the order in which it was made.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) key: Key,
    pub(crate) action: Action,
    /// The entry of the branch itself that ends.
    pub(crate) ended: Option<Entry>,
    /// What the branch showed before, its own or inherited.
    pub(crate) before: Option<Entry>,
    /// The branch's own entry from now on.
    pub(crate) after: Option<Entry>,
}

/// A task that a command asks for; the executor gives it an id.
#[derive(Clone, Debug)]
pub(crate) struct TaskRequest {
    pub(crate) kind: &'static str,
    pub(crate) body: String,
    pub(crate) delay_micros: i64,
}

/// Changes that count on top of the rows.
#[derive(Clone, Default)]
pub(crate) struct Overlay {
    pub(crate) entries: BTreeMap<Key, Option<Entry>>,
    pub(crate) partitions: BTreeMap<PartitionId, PartitionRow>,
    pub(crate) operations: HashMap<String, OperationRecord>,
    /// Branches that are new or have ended.
    pub(crate) branches: BTreeMap<(PartitionId, BranchId), BranchRow>,
    /// Branches that changed, each with the revision at which it last did.
    pub(crate) heads: BTreeMap<(PartitionId, BranchId), Revision>,
    /// Every version of this batch, for states that lie within it.
    pub(crate) versions: BTreeMap<Key, Vec<(Revision, Option<Entry>)>>,
}

impl Overlay {
    /// What this batch says of a key at a revision, if it says anything.
    fn at(&self, key: &Key, revision: Revision) -> Option<&Option<Entry>> {
        let versions = self.versions.get(key)?;
        let until = versions.iter().rev();
        let mut until = until.skip_while(|(from, _)| *from > revision);
        until.next().map(|(_, entry)| entry)
    }

    pub(crate) fn absorb(&mut self, other: Overlay) {
        self.branches.extend(other.branches);
        self.heads.extend(other.heads);
        for (key, versions) in other.versions {
            self.versions.entry(key).or_default().extend(versions);
        }
        self.entries.extend(other.entries);
        self.partitions.extend(other.partitions);
        self.operations.extend(other.operations);
    }
}

/// What one command did.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) overlay: Overlay,
    pub(crate) steps: Vec<Step>,
    pub(crate) new_partitions: Vec<PartitionId>,
    pub(crate) tasks: Vec<TaskRequest>,
    pub(crate) finished_tasks: Vec<TaskId>,
    pub(crate) derived_operations: Vec<(String, String)>,
    pub(crate) new_branches: Vec<BranchRow>,
    pub(crate) ends: Vec<(PartitionId, BranchId)>,
    pub(crate) pins: Vec<Pin>,
    pub(crate) unpinned: Vec<ObjectId>,
}

/// Names that are read at once of those that a branch touched.
const TOUCHED: u32 = 10_000;

/// Whether a change of this key is one of a branch of a database.
pub(crate) fn is_versioned(key: &Key) -> bool {
    key.partition.kind() == Some(PartitionKind::Database)
        && matches!(key.class, Class::Container | Class::Table | Class::Merge)
}

/// The view of one command.
pub struct View<'a> {
    rows: &'a Rows,
    held: &'a BTreeMap<PartitionId, Option<PartitionRow>>,
    batch: &'a Overlay,
    revision: Revision,
    effects: Effects,
}

impl<'a> View<'a> {
    pub(crate) fn new(
        rows: &'a Rows,
        held: &'a BTreeMap<PartitionId, Option<PartitionRow>>,
        batch: &'a Overlay,
        revision: Revision,
    ) -> View<'a> {
        View {
            rows,
            held,
            batch,
            revision,
            effects: Effects::default(),
        }
    }

    pub(crate) fn into_effects(self) -> Effects {
        self.effects
    }

    /// The partition's row, held from here on; `None` if it doesn't exist.
    pub fn partition(&self, id: PartitionId) -> Result<Option<&PartitionRow>, Stop> {
        if let Some(row) = self.effects.overlay.partitions.get(&id) {
            return Ok(Some(row));
        }
        if let Some(row) = self.batch.partitions.get(&id) {
            return Ok(Some(row));
        }
        match self.held.get(&id) {
            Some(row) => Ok(row.as_ref()),
            None => Err(Stop::Hold(vec![id])),
        }
    }

    /// Whether the partition exists and takes commands.
    pub fn is_live(&self, id: PartitionId) -> Result<bool, Stop> {
        Ok(self
            .partition(id)?
            .is_some_and(|row| row.state == PartitionState::Live))
    }

    /// The current version under a key: the branch's own, or what it inherited.
    pub fn get(&self, key: &Key) -> Result<Option<Entry>, Stop> {
        match self.own(key)? {
            Some(entry) => Ok(decide([Some(entry)])),
            None => self.inherited(key),
        }
    }

    /// A branch that stands or stood, as this command finds it.
    pub fn branch(
        &self,
        partition: PartitionId,
        branch: BranchId,
    ) -> Result<Option<BranchRow>, Stop> {
        let id = (partition, branch);
        let overlays = [&self.effects.overlay, self.batch];
        let head = overlays.iter().find_map(|overlay| overlay.heads.get(&id));
        let found = overlays
            .iter()
            .find_map(|overlay| overlay.branches.get(&id));
        let row = match found {
            Some(row) => Some(row.clone()),
            None => {
                let read = Read::Branch(partition, branch);
                match self.rows.others.get(&read) {
                    Some(Answer::Branch(row)) => row.clone(),
                    _ => return Err(Stop::Read(vec![read])),
                }
            }
        };
        Ok(row.map(|row| BranchRow {
            head: head.copied().unwrap_or(row.head),
            ..row
        }))
    }

    /// Those of some branches that have a row.
    pub fn known_branches(
        &self,
        partition: PartitionId,
        branches: &[BranchId],
    ) -> Result<BTreeSet<BranchId>, Stop> {
        let mut known = BTreeSet::new();
        let mut unknown = Vec::new();
        for branch in branches {
            match self.branch(partition, *branch) {
                Ok(row) => known.extend(row.map(|row| row.branch)),
                Err(Stop::Read(reads)) => unknown.extend(reads),
                Err(stop) => return Err(stop),
            }
        }
        match unknown.is_empty() {
            true => Ok(known),
            false => Err(Stop::Read(unknown)),
        }
    }

    /// All branches of a partition, those that ended too. Only of what was committed before.
    pub fn branches(&self, partition: PartitionId) -> Result<&[BranchRow], Stop> {
        let read = Read::Branches(partition);
        match self.rows.others.get(&read) {
            Some(Answer::Branches(rows)) => Ok(rows),
            _ => Err(Stop::Read(vec![read])),
        }
    }

    /// The merges that keep the states that they merged, on whichever branch. Only of what was
    /// committed before.
    pub fn pinning_merges(&self, partition: PartitionId) -> Result<&[(Key, Entry)], Stop> {
        let read = Read::PinningMerges(partition);
        match self.rows.others.get(&read) {
            Some(Answer::Entries(merges)) => Ok(merges),
            _ => Err(Stop::Read(vec![read])),
        }
    }

    /// What lies below a branch's own entry.
    fn inherited(&self, key: &Key) -> Result<Option<Entry>, Stop> {
        if key.branch == BranchId::MAIN {
            return Ok(None);
        }
        let Some(row) = self.branch(key.partition, key.branch)? else {
            return Ok(None);
        };
        let layers = Layers::below(key.partition, &row.lineage);
        let place = (key.scope.clone(), key.class, key.name.clone());
        Ok(self.find_all(&layers, &[place])?.pop().flatten())
    }

    /// What the layers show under each of the names.
    pub fn find_all(&self, layers: &Layers, names: &[Name]) -> Result<Vec<Option<Entry>>, Stop> {
        let mut unknown = Vec::new();
        let mut found = Vec::with_capacity(names.len());
        for (scope, class, name) in names {
            let mut of_layers = Vec::new();
            for read in layers.point(scope, *class, name) {
                match self.point(&read) {
                    Some(entry) => of_layers.push(entry),
                    None => unknown.push(read),
                }
            }
            found.push(decide(of_layers));
        }
        match unknown.is_empty() {
            true => Ok(found),
            false => Err(Stop::Read(unknown)),
        }
    }

    /// The answer to a point read of now or of the past, if it is known.
    fn point(&self, read: &Read) -> Option<Option<Entry>> {
        match read {
            Read::Point(key) => match self.overlaid(key) {
                Some(entry) => Some(entry.clone()),
                None => self.rows.points.get(key).cloned(),
            },
            Read::Past(revision, of) => {
                if let Read::Point(key) = of.as_ref()
                    && let Some(entry) = self.batch.at(key, *revision)
                {
                    return Some(entry.clone());
                }
                match self.rows.others.get(read) {
                    Some(Answer::Entry(entry)) => Some(entry.clone()),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Keys of a branch under which another version may stand at `to` than at `from`.
    pub fn touched(
        &self,
        partition: PartitionId,
        branch: BranchId,
        from: Revision,
        to: Revision,
    ) -> Result<BTreeSet<Name>, Stop> {
        let mut touched = BTreeSet::new();
        loop {
            let after: Option<Name> = touched.iter().next_back().cloned();
            let read = Read::Touched {
                partition,
                branch,
                from,
                to,
                after,
                limit: TOUCHED,
            };
            let Some(Answer::Keys(keys)) = self.rows.others.get(&read) else {
                return Err(Stop::Read(vec![read]));
            };
            touched.extend(keys.iter().map(name_of));
            if keys.len() < TOUCHED as usize {
                break;
            }
        }
        for (key, versions) in &self.batch.versions {
            let is_between = |(revision, _): &(Revision, _)| from < *revision && *revision <= to;
            if key.partition == partition && key.branch == branch && versions.iter().any(is_between)
            {
                touched.insert(name_of(key));
            }
        }
        Ok(touched)
    }

    /// Whether a state can be read whole: it is young enough and its branch stands, or it is pinned.
    pub fn is_kept(&self, row: &BranchRow, revision: Revision) -> Result<bool, Stop> {
        if row.keeps(revision) {
            return Ok(true);
        }
        let state = BranchState {
            branch: row.branch,
            revision,
        };
        let read = Read::Pinned(row.partition, state);
        match self.rows.others.get(&read) {
            Some(Answer::Pinned(pinned)) => Ok(*pinned),
            _ => Err(Stop::Read(vec![read])),
        }
    }

    /// The branch's own entry under a key.
    fn own(&self, key: &Key) -> Result<Option<Entry>, Stop> {
        if let Some(entry) = self.overlaid(key) {
            return Ok(entry.clone());
        }
        match self.rows.points.get(key) {
            Some(entry) => Ok(entry.clone()),
            None => Err(Stop::Read(vec![Read::Point(key.clone())])),
        }
    }

    fn overlaid(&self, key: &Key) -> Option<&Option<Entry>> {
        self.effects
            .overlay
            .entries
            .get(key)
            .or_else(|| self.batch.entries.get(key))
    }

    /// The entry of a container, found by its id. Its name and existence are exact while the
    /// container's own partition is held.
    pub fn container(&self, id: PartitionId) -> Result<Option<(Key, Entry)>, Stop> {
        let found = self.places_on_main(&[ObjectId::from(id)])?;
        Ok(found.into_iter().next().flatten())
    }

    /// Where things stand on `main`, in whichever partition: exact as far as partitions are held.
    pub fn places_on_main(&self, objects: &[ObjectId]) -> Result<Vec<Option<(Key, Entry)>>, Stop> {
        let mut overlaid: HashMap<ObjectId, (&Key, &Entry)> = HashMap::new();
        for overlay in [self.batch, &self.effects.overlay] {
            let of_main = overlay.entries.iter();
            let of_main = of_main.filter(|(key, _)| key.branch == BranchId::MAIN);
            let standing = of_main.filter_map(|(key, entry)| Some((key, entry.as_ref()?)));
            overlaid.extend(standing.map(|(key, entry)| (entry.object, (key, entry))));
        }
        let mut found = Vec::with_capacity(objects.len());
        let mut unknown = Vec::new();
        for object in objects {
            if let Some((key, entry)) = overlaid.get(object) {
                found.push(Some(((*key).clone(), (*entry).clone())));
                continue;
            }
            let read = Read::Container(PartitionId(object.0));
            match self.rows.others.get(&read) {
                Some(Answer::Entries(entries)) => {
                    let stored = entries.first();
                    let stored = stored.filter(|(key, _)| self.overlaid(key).is_none());
                    found.push(stored.cloned());
                }
                _ => unknown.push(read),
            }
        }
        match unknown.is_empty() {
            true => Ok(found),
            false => Err(Stop::Read(unknown)),
        }
    }

    /// Up to `limit` entries of one scope and class in byte order.
    pub fn range(
        &self,
        partition: PartitionId,
        branch: BranchId,
        scope: &str,
        class: Class,
        limit: u32,
    ) -> Result<Vec<(Key, Entry)>, Stop> {
        let listing = Listing::Range {
            scope: scope.to_owned(),
            class,
            kinds: Vec::new(),
            after: None,
            limit,
        };
        self.list(partition, branch, listing)
    }

    /// Up to `limit` entries in a scope and all scopes below it, by (scope, class, name).
    pub fn under(
        &self,
        partition: PartitionId,
        branch: BranchId,
        scope: &str,
        limit: u32,
    ) -> Result<Vec<(Key, Entry)>, Stop> {
        let listing = Listing::Under {
            scope: scope.to_owned(),
            after: None,
            limit,
        };
        self.list(partition, branch, listing)
    }

    /// What the branch shows: entries that it inherited have its own key.
    fn list(
        &self,
        partition: PartitionId,
        branch: BranchId,
        listing: Listing,
    ) -> Result<Vec<(Key, Entry)>, Stop> {
        let lineage = match branch {
            BranchId::MAIN => Vec::new(),
            _ => self
                .branch(partition, branch)?
                .map(|row| row.lineage)
                .unwrap_or_default(),
        };
        let found = self.list_in(&Layers::over(partition, branch, &lineage), listing)?;
        let own = found.into_iter();
        Ok(own
            .map(|(key, entry)| (Key { branch, ..key }, entry))
            .collect())
    }

    /// What layers show.
    pub fn list_in(&self, layers: &Layers, listing: Listing) -> Result<Vec<(Key, Entry)>, Stop> {
        let mut merged = Merged::new(layers, listing);
        for (layer, branch, at) in layers.places() {
            let of_layer = |key: &&Key| key.partition == layers.partition() && key.branch == branch;
            match at {
                None => {
                    for overlay in [self.batch, &self.effects.overlay] {
                        for (key, entry) in &overlay.entries {
                            if of_layer(&key) {
                                merged.change(layer, key, entry.clone());
                            }
                        }
                    }
                }
                Some(revision) => {
                    for key in self.batch.versions.keys().filter(of_layer) {
                        if let Some(entry) = self.batch.at(key, revision) {
                            merged.change(layer, key, entry.clone());
                        }
                    }
                }
            }
        }
        loop {
            if let Some(found) = merged.result() {
                return Ok(found);
            }
            let wanted = merged.wanted();
            let unknown = wanted.iter().map(|(_, read)| read);
            let unknown: Vec<Read> = unknown
                .filter(|read| !self.rows.knows(read))
                .cloned()
                .collect();
            if !unknown.is_empty() {
                return Err(Stop::Read(unknown));
            }
            for (layer, read) in wanted {
                if let Some(Answer::Entries(stored)) = self.rows.others.get(&read) {
                    merged.supply(layer, stored);
                }
            }
        }
    }

    /// Live partitions directly below a held one.
    pub fn children(&self, id: PartitionId) -> Result<Vec<PartitionId>, Stop> {
        self.partition(id)?;
        let read = Read::Children(id);
        let Some(Answer::Partitions(stored)) = self.rows.others.get(&read) else {
            return Err(Stop::Read(vec![read]));
        };
        let mut children: Vec<PartitionId> = stored.clone();
        for overlay in [self.batch, &self.effects.overlay] {
            for row in overlay.partitions.values().filter(|row| row.parent == id) {
                children.retain(|child| *child != row.id);
                if row.state == PartitionState::Live {
                    children.push(row.id);
                }
            }
        }
        children.sort_unstable();
        Ok(children)
    }

    /// The record of an operation key.
    pub fn operation(&self, key: &str) -> Result<Option<&OperationRecord>, Stop> {
        if let Some(record) = self.batch.operations.get(key) {
            return Ok(Some(record));
        }
        match self.rows.operations.get(key) {
            Some(record) => Ok(record.as_ref()),
            None => Err(Stop::Read(vec![Read::Operation(key.to_owned())])),
        }
    }

    /// Puts a first or a further version under a key. The version number rises if the same object
    /// stands there, else it starts at 1.
    pub fn put(
        &mut self,
        key: Key,
        kind: Kind,
        object: ObjectId,
        body: Arc<str>,
    ) -> Result<Entry, Stop> {
        let before = self.get(&key)?;
        let version = match &before {
            Some(entry) if entry.object == object => entry.version + 1,
            _ => 1,
        };
        let action = match before {
            Some(_) => Action::Update,
            None => Action::Create,
        };
        let after = Entry {
            kind,
            object,
            version,
            from: self.revision,
            body,
        };
        self.step(key, action, before, Some(after.clone()))?;
        Ok(after)
    }

    /// Ends the version under a key.
    pub fn remove(&mut self, key: Key) -> Result<Option<Entry>, Stop> {
        let before = self.get(&key)?;
        if before.is_some() {
            let after = self.hiding(&key)?;
            self.step(key, Action::Drop, before.clone(), after)?;
        }
        Ok(before)
    }

    /// Moves an object to another, free name, with a new body.
    pub fn rename(&mut self, from: Key, to: Key, body: Arc<str>) -> Result<Option<Entry>, Stop> {
        self.get(&to)?;
        let Some(before) = self.get(&from)? else {
            return Ok(None);
        };
        let after = Entry {
            version: before.version + 1,
            from: self.revision,
            body,
            ..before.clone()
        };
        let left = self.hiding(&from)?;
        self.own(&to)?;
        self.step(from, Action::Rename, Some(before), left)?;
        self.step(to, Action::Rename, None, Some(after.clone()))?;
        Ok(Some(after))
    }

    /// What a branch needs under a key to show nothing there.
    fn hiding(&self, key: &Key) -> Result<Option<Entry>, Stop> {
        let inherited = self.inherited(key)?;
        Ok(inherited.map(|hidden| Entry {
            kind: Kind::Absent,
            object: ObjectId(-hidden.object.0),
            version: 1,
            from: self.revision,
            body: "".into(),
        }))
    }

    fn step(
        &mut self,
        key: Key,
        action: Action,
        before: Option<Entry>,
        after: Option<Entry>,
    ) -> Result<(), Stop> {
        let ended = self.own(&key)?;
        let overlay = &mut self.effects.overlay;
        overlay.entries.insert(key.clone(), after.clone());
        if is_versioned(&key) {
            let branch = (key.partition, key.branch);
            overlay.heads.insert(branch, self.revision);
            let versions = overlay.versions.entry(key.clone()).or_default();
            versions.push((self.revision, after.clone()));
        }
        self.effects.steps.push(Step {
            key,
            action,
            ended,
            before,
            after,
        });
        Ok(())
    }

    /// Brings a branch into being. What lies below it is pinned under its owner.
    pub fn create_branch(&mut self, row: BranchRow, owner: ObjectId) {
        let pins = row.lineage.iter().map(|state| Pin {
            partition: row.partition,
            state: *state,
            owner,
        });
        self.effects.pins.extend(pins);
        let id = (row.partition, row.branch);
        self.effects.overlay.branches.insert(id, row.clone());
        self.effects.new_branches.push(row);
    }

    /// Ends a branch: nobody finds it any more. What others inherited from it stays.
    pub fn end_branch(&mut self, row: BranchRow) {
        let id = (row.partition, row.branch);
        self.effects.ends.push(id);
        let ended = Some(self.revision);
        let row = BranchRow { ended, ..row };
        self.effects.overlay.branches.insert(id, row);
    }

    /// Keeps states for as long as the owner doesn't let go.
    pub fn pin(&mut self, pins: impl IntoIterator<Item = Pin>) {
        self.effects.pins.extend(pins);
    }

    /// Lets go of what an owner has pinned.
    pub fn unpin(&mut self, owner: ObjectId) {
        self.effects.unpinned.push(owner);
    }

    /// Brings a partition into being; a database's with the branch `main`.
    pub fn create_partition(&mut self, id: PartitionId, parent: PartitionId) {
        if id.kind() == Some(PartitionKind::Database) {
            let main = BranchRow {
                partition: id,
                branch: BranchId::MAIN,
                head: self.revision,
                lineage: Vec::new(),
                ended: None,
                floor: self.revision,
            };
            self.create_branch(main, id.into());
        }
        let row = PartitionRow::new(id, parent);
        self.effects.overlay.partitions.insert(id, row);
        self.effects.new_partitions.push(id);
    }

    /// Marks a held partition dropped.
    pub fn drop_partition(&mut self, id: PartitionId) -> Result<(), Stop> {
        if let Some(row) = self.partition(id)?.cloned() {
            let dropped = PartitionRow {
                state: PartitionState::Dropped,
                ..row
            };
            self.effects.overlay.partitions.insert(id, dropped);
        }
        Ok(())
    }

    /// Asks for work in the background once the command is committed.
    pub fn add_task(&mut self, kind: &'static str, body: String, delay_micros: i64) {
        self.effects.tasks.push(TaskRequest {
            kind,
            body,
            delay_micros,
        });
    }

    /// Ends a task that the command makes needless, in the command's own commit.
    pub fn finish_task(&mut self, task: TaskId) {
        self.effects.finished_tasks.push(task);
    }

    /// Records the outcome under a further key, made from an id inside the request, so that the
    /// same request is recognised when it is sent again without a key of its own.
    pub fn record_operation(&mut self, key: String, fingerprint: String) {
        self.effects.derived_operations.push((key, fingerprint));
    }
}
