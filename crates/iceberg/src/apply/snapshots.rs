//! Snapshots, branches and tags.

use std::collections::HashSet;

use super::Draft;
use crate::error::UpdateError;
use crate::logs::SnapshotLogEntry;
use crate::snapshot::{MAIN_BRANCH, RefKind, Snapshot, SnapshotRef};

impl Draft<'_> {
    pub(super) fn add_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), UpdateError> {
        let id = snapshot.snapshot_id();
        if id == -1 {
            return Err(UpdateError::invalid(
                "add-snapshot: the snapshot-id -1 means no snapshot; choose another",
            ));
        }
        if self.metadata.schemas.is_empty() {
            return Err(UpdateError::invalid(
                "add-snapshot: the table has no schema yet; add one first",
            ));
        }
        if self.metadata.snapshots.contains(id) {
            return Err(UpdateError::conflict(format!(
                "add-snapshot: the table already has a snapshot {id}; reload the table and retry"
            )));
        }
        if self.metadata.format_version >= 2 {
            self.take_sequence_number(snapshot)?;
        }
        if self.metadata.format_version >= 3 {
            self.take_row_ids(snapshot)?;
        }
        self.metadata.snapshots.push(snapshot.clone());
        self.added_snapshots.insert(id);
        Ok(())
    }

    /// A snapshot with a parent must come after all that were written before; one without may be an import.
    fn take_sequence_number(&mut self, snapshot: &Snapshot) -> Result<(), UpdateError> {
        let id = snapshot.snapshot_id();
        let last = self.metadata.last_sequence_number;
        let number = snapshot
            .sequence_number()
            .filter(|&number| number >= 0)
            .ok_or_else(|| {
                UpdateError::invalid(format!(
                    "add-snapshot: the snapshot {id} needs a sequence-number of at least 0"
                ))
            })?;
        if number <= last && snapshot.parent_snapshot_id().is_some() {
            return Err(UpdateError::conflict(format!(
                "add-snapshot: the sequence-number {number} of snapshot {id} is not above the table's \
                 last-sequence-number {last}; reload the table and retry"
            )));
        }
        self.metadata.last_sequence_number = last.max(number);
        Ok(())
    }

    fn take_row_ids(&mut self, snapshot: &Snapshot) -> Result<(), UpdateError> {
        let id = snapshot.snapshot_id();
        let next = self.metadata.next_row_id;
        let needs = |field: &str| {
            UpdateError::invalid(format!(
                "add-snapshot: the snapshot {id} needs a {field} of at least 0 in format-version 3"
            ))
        };
        let first = snapshot
            .first_row_id()
            .filter(|&first| first >= 0)
            .ok_or_else(|| needs("first-row-id"))?;
        let added = snapshot
            .added_rows()
            .filter(|&added| added >= 0)
            .ok_or_else(|| needs("added-rows"))?;
        if first < next {
            return Err(UpdateError::conflict(format!(
                "add-snapshot: the first-row-id {first} of snapshot {id} is behind the table's next-row-id {next}; \
                 reload the table and retry"
            )));
        }
        self.metadata.next_row_id = first.checked_add(added).ok_or_else(|| {
            UpdateError::invalid(format!(
                "add-snapshot: the row ids of snapshot {id} don't fit into 64 bits"
            ))
        })?;
        Ok(())
    }

    fn has_snapshot(&self, id: i64) -> bool {
        self.metadata.snapshots.contains(id) && !self.removed_snapshots.contains(&id)
    }

    pub(super) fn set_snapshot_ref(
        &mut self,
        name: &str,
        reference: &SnapshotRef,
    ) -> Result<(), UpdateError> {
        check_retention(name, reference)?;
        let id = reference.snapshot_id;
        if !self.has_snapshot(id) {
            return Err(UpdateError::invalid(format!(
                "set-snapshot-ref: '{name}' can't point at the snapshot {id}, which the table doesn't have"
            )));
        }
        if name == MAIN_BRANCH && self.metadata.current_snapshot_id != Some(id) {
            self.metadata.current_snapshot_id = Some(id);
            self.log_current_snapshot(id);
        }
        self.metadata
            .refs
            .insert(name.to_string(), reference.clone());
        Ok(())
    }

    /// A snapshot of this commit became current when it was made, an older one becomes it now. The log never goes back
    /// in time, whatever the writers' clocks say: readers search it by time.
    fn log_current_snapshot(&mut self, id: i64) {
        let made_ms = match self.metadata.snapshots.get(id) {
            Some(snapshot) if self.added_snapshots.contains(&id) => snapshot.timestamp_ms(),
            _ => self.now_ms,
        };
        let last_ms = self
            .metadata
            .snapshot_log
            .last()
            .map_or(made_ms, |entry| entry.timestamp_ms);
        let timestamp_ms = made_ms.max(last_ms);
        self.metadata.snapshot_log.push(SnapshotLogEntry {
            snapshot_id: id,
            timestamp_ms,
            extra: serde_json::Map::new(),
        });
    }

    pub(super) fn remove_snapshot_ref(&mut self, name: &str) {
        if name == MAIN_BRANCH {
            self.metadata.current_snapshot_id = None;
        }
        self.metadata.refs.remove(name);
    }

    /// Marks snapshots as removed, and removes the branches and tags that point at them.
    pub(super) fn remove_snapshots(&mut self, snapshot_ids: &[i64]) {
        let there = snapshot_ids
            .iter()
            .copied()
            .filter(|&id| self.has_snapshot(id));
        let gone: HashSet<i64> = there.collect();
        let dangling: Vec<String> = self
            .metadata
            .refs
            .iter()
            .filter(|(_, reference)| gone.contains(&reference.snapshot_id))
            .map(|(name, _)| name.clone())
            .collect();
        for name in dangling {
            self.remove_snapshot_ref(&name);
        }
        self.removed_snapshots.extend(gone);
    }

    /// Takes the removed snapshots out, with their statistics and their part of the log.
    pub(super) fn drop_removed_snapshots(&mut self) {
        if self.removed_snapshots.is_empty() {
            return;
        }
        let removed = &self.removed_snapshots;
        self.metadata.snapshots.retain(|id| !removed.contains(&id));
        self.metadata
            .statistics
            .retain(|file| !removed.contains(&file.snapshot_id()));
        self.metadata
            .partition_statistics
            .retain(|file| !removed.contains(&file.snapshot_id()));
    }

    /// Removes from the log what a reader can't look up: what was current only in the middle of this commit, and
    /// everything before a snapshot that is gone (reference implementation: a log with a gap would lie about what was
    /// current then).
    pub(super) fn tidy_snapshot_log(&mut self) {
        let current = self.metadata.current_snapshot_id;
        let added = &self.added_snapshots;
        if !added.is_empty() {
            let log = &mut self.metadata.snapshot_log;
            log.retain(|entry| {
                Some(entry.snapshot_id) == current || !added.contains(&entry.snapshot_id)
            });
        }
        if self.removed_snapshots.is_empty() {
            return;
        }
        let snapshots = &self.metadata.snapshots;
        let last_gap = self
            .metadata
            .snapshot_log
            .iter()
            .rposition(|entry| !snapshots.contains(entry.snapshot_id));
        if let Some(position) = last_gap {
            self.metadata.snapshot_log.drain(..=position);
        }
    }
}

fn check_retention(name: &str, reference: &SnapshotRef) -> Result<(), UpdateError> {
    let refuse = |problem: &str| {
        Err(UpdateError::invalid(format!(
            "set-snapshot-ref: '{name}' {problem}"
        )))
    };
    if name.is_empty() {
        return refuse("is no name for a branch or tag");
    }
    if reference.kind == RefKind::Tag {
        if name == MAIN_BRANCH {
            return refuse("must be a branch");
        }
        if reference.min_snapshots_to_keep.is_some() || reference.max_snapshot_age_ms.is_some() {
            return refuse(
                "is a tag, which has no min-snapshots-to-keep and no max-snapshot-age-ms",
            );
        }
    }
    if reference
        .min_snapshots_to_keep
        .is_some_and(|count| count <= 0)
    {
        return refuse("needs a min-snapshots-to-keep above 0");
    }
    if reference.max_snapshot_age_ms.is_some_and(|age| age <= 0) {
        return refuse("needs a max-snapshot-age-ms above 0");
    }
    if reference.max_ref_age_ms.is_some_and(|age| age <= 0) {
        return refuse("needs a max-ref-age-ms above 0");
    }
    Ok(())
}
