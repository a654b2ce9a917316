//! A [`WriteSet`] as one statement.
//!
//! Each kind of row that there is becomes one part of a `WITH`, fed by arrays. The statement counts
//! what each part touched and fails by itself, with a division by zero, if a count isn't the
//! expected one: COMMIT is already on the wire behind it, so nobody could look first.

use std::fmt::Write as _;

use uuid::Uuid;

use super::connection::{Parameter, Statement};
use crate::branch::{BranchRow, Head, Pin};
use crate::codec;
use crate::entry::{Entry, Key, ObjectId};
use crate::operation::OperationRecord;
use crate::partition::{PartitionId, PartitionRow};
use crate::revision::Revision;
use crate::task::{Task, TaskId};
use crate::write::{Change, WriteSet};

/// The statement for everything that is written; `None` if there is nothing to write.
/// `partitions` are the held rows to write: the changed ones, or all of them as guards.
pub(super) fn statement<'a>(
    partitions: &'a [PartitionRow],
    writes: &'a WriteSet,
) -> Option<Statement<'a>> {
    let mut parts = Parts::default();
    if !partitions.is_empty() {
        parts.update_partitions(partitions);
    }
    if !writes.new_partitions.is_empty() {
        parts.insert_partitions(&writes.new_partitions);
    }
    if !writes.removals.is_empty() {
        parts.remove_entries(&writes.removals);
    }
    if !writes.upserts.is_empty() {
        parts.upsert_entries(&writes.upserts);
    }
    if !writes.history.is_empty() {
        parts.insert_history(writes);
    }
    if !writes.changes.is_empty() {
        parts.insert_changes(&writes.changes);
    }
    if !writes.operations.is_empty() {
        parts.insert_operations(&writes.operations);
    }
    if !writes.tasks.is_empty() {
        parts.insert_tasks(&writes.tasks);
    }
    if !writes.finished_tasks.is_empty() {
        parts.remove_tasks(&writes.finished_tasks);
    }
    if !writes.new_branches.is_empty() {
        parts.insert_branches(&writes.new_branches);
    }
    if !writes.heads.is_empty() {
        parts.move_heads(&writes.heads);
    }
    if !writes.raised.is_empty() {
        parts.raise_floors(&writes.raised);
    }
    if !writes.births.is_empty() {
        parts.insert_births(&writes.births);
    }
    if !writes.pins.is_empty() {
        parts.insert_pins(&writes.pins);
    }
    if !writes.unpinned.is_empty() {
        parts.remove_pins(&writes.unpinned);
    }
    parts.into_statement()
}

#[derive(Default)]
struct Parts<'a> {
    with: Vec<String>,
    checks: Vec<String>,
    parameters: Vec<Parameter<'a>>,
}

/// Arrays of one part: what `unnest` gets, and the column names that it gives.
struct Arrays {
    calls: Vec<String>,
    columns: Vec<&'static str>,
}

impl Arrays {
    fn new() -> Arrays {
        Arrays {
            calls: Vec::new(),
            columns: Vec::new(),
        }
    }

    fn as_rows(&self, alias: &str) -> String {
        format!(
            "unnest({}) AS {alias}({})",
            self.calls.join(", "),
            self.columns.join(", ")
        )
    }
}

impl<'a> Parts<'a> {
    fn array<T>(
        &mut self,
        arrays: &mut Arrays,
        column: &'static str,
        sql_type: &str,
        values: Vec<T>,
    ) where
        Vec<T>: tokio_postgres::types::ToSql + Sync + Send + 'a,
    {
        self.parameters.push(Box::new(values));
        let number = self.parameters.len();
        arrays.calls.push(format!("${number}::{sql_type}[]"));
        arrays.columns.push(column);
    }

    fn part(&mut self, name: &str, sql: &str, expected: usize) {
        self.with.push(format!("{name} AS ({sql} RETURNING 1)"));
        self.parameters.push(Box::new(expected as i64));
        let number = self.parameters.len();
        self.checks
            .push(format!("(SELECT count(*) FROM {name}) = ${number}::int8"));
    }

    fn insert(&mut self, name: &str, table: &str, arrays: &Arrays, expected: usize) {
        let columns = arrays.columns.join(", ");
        let from = arrays.as_rows("v");
        let sql = format!("INSERT INTO {table} ({columns}) SELECT {columns} FROM {from}");
        self.part(name, &sql, expected);
    }

    fn into_statement(self) -> Option<Statement<'a>> {
        if self.with.is_empty() {
            return None;
        }
        let mut sql = String::new();
        // Writing to a String can't fail.
        let _ = write!(
            sql,
            "WITH {} SELECT 1 / ({})::int",
            self.with.join(", "),
            self.checks.join(" AND ")
        );
        Some(Statement::new(sql, self.parameters))
    }

    fn partition_arrays(&mut self, rows: &'a [PartitionRow]) -> Arrays {
        let mut arrays = Arrays::new();
        let ids: Vec<i64> = rows.iter().map(|row| row.id.0).collect();
        let parents: Vec<i64> = rows.iter().map(|row| row.parent.0).collect();
        let states: Vec<i16> = rows.iter().map(|row| row.state as i16).collect();
        let clocks: Vec<i64> = rows.iter().map(|row| row.clock.0).collect();
        let commits: Vec<Uuid> = rows.iter().map(|row| row.last_commit.0).collect();
        let revisions: Vec<i64> = rows.iter().map(|row| row.last_revision.0).collect();
        let horizons: Vec<i64> = rows.iter().map(|row| row.horizon.0).collect();
        self.array(&mut arrays, "id", "int8", ids);
        self.array(&mut arrays, "parent", "int8", parents);
        self.array(&mut arrays, "state", "int2", states);
        self.array(&mut arrays, "clock", "int8", clocks);
        self.array(&mut arrays, "last_commit", "uuid", commits);
        self.array(&mut arrays, "last_revision", "int8", revisions);
        self.array(&mut arrays, "horizon", "int8", horizons);
        arrays
    }

    fn update_partitions(&mut self, rows: &'a [PartitionRow]) {
        let arrays = self.partition_arrays(rows);
        let sql = format!(
            "UPDATE partition p SET parent = v.parent, state = v.state, clock = v.clock, \
             last_commit = v.last_commit, last_revision = v.last_revision, \
             horizon = v.horizon, guard = p.guard + 1 FROM {} WHERE p.id = v.id",
            arrays.as_rows("v")
        );
        self.part("held", &sql, rows.len());
    }

    fn insert_partitions(&mut self, rows: &'a [PartitionRow]) {
        let arrays = self.partition_arrays(rows);
        self.insert("born", "partition", &arrays, rows.len());
    }

    fn key_arrays<'k>(&mut self, keys: impl Iterator<Item = &'k Key> + Clone) -> Arrays
    where
        'k: 'a,
    {
        let mut arrays = Arrays::new();
        let partitions: Vec<i64> = keys.clone().map(|key| key.partition.0).collect();
        let branches: Vec<i64> = keys.clone().map(|key| key.branch.0).collect();
        let scopes: Vec<&'k str> = keys.clone().map(|key| key.scope.as_str()).collect();
        let classes: Vec<i16> = keys.clone().map(|key| key.class as i16).collect();
        let names: Vec<&'k str> = keys.map(|key| key.name.as_str()).collect();
        self.array(&mut arrays, "partition", "int8", partitions);
        self.array(&mut arrays, "branch", "int8", branches);
        self.array(&mut arrays, "scope", "text", scopes);
        self.array(&mut arrays, "class", "int2", classes);
        self.array(&mut arrays, "name", "text", names);
        arrays
    }

    fn entry_arrays(
        &mut self,
        arrays: &mut Arrays,
        entries: impl Iterator<Item = &'a Entry> + Clone,
    ) {
        let kinds: Vec<i16> = entries.clone().map(|entry| entry.kind as i16).collect();
        let objects: Vec<i64> = entries.clone().map(|entry| entry.object.0).collect();
        let versions: Vec<i64> = entries.clone().map(|entry| entry.version).collect();
        let froms: Vec<i64> = entries.clone().map(|entry| entry.from.0).collect();
        let bodies: Vec<&'a str> = entries.map(|entry| &*entry.body).collect();
        self.array(arrays, "kind", "int2", kinds);
        self.array(arrays, "object", "int8", objects);
        self.array(arrays, "version", "int8", versions);
        self.array(arrays, "from_rev", "int8", froms);
        self.array(arrays, "body", "text", bodies);
    }

    fn remove_entries(&mut self, keys: &'a [Key]) {
        let arrays = self.key_arrays(keys.iter());
        let sql = format!(
            "DELETE FROM current c USING {} WHERE c.partition = v.partition \
             AND c.branch = v.branch AND c.scope = v.scope AND c.class = v.class \
             AND c.name = v.name",
            arrays.as_rows("v")
        );
        self.part("gone", &sql, keys.len());
    }

    fn upsert_entries(&mut self, upserts: &'a [(Key, Entry)]) {
        let mut arrays = self.key_arrays(upserts.iter().map(|(key, _)| key));
        self.entry_arrays(&mut arrays, upserts.iter().map(|(_, entry)| entry));
        let columns = arrays.columns.join(", ");
        let sql = format!(
            "INSERT INTO current ({columns}) SELECT {columns} FROM {} \
             ON CONFLICT (partition, branch, scope, class, name) DO UPDATE SET \
             kind = excluded.kind, object = excluded.object, version = excluded.version, \
             from_rev = excluded.from_rev, body = excluded.body",
            arrays.as_rows("v")
        );
        self.part("standing", &sql, upserts.len());
    }

    fn insert_history(&mut self, writes: &'a WriteSet) {
        let rows = &writes.history;
        let mut arrays = self.key_arrays(rows.iter().map(|(key, ..)| key));
        self.entry_arrays(&mut arrays, rows.iter().map(|(_, entry, _)| entry));
        let ends: Vec<i64> = rows.iter().map(|(.., to)| to.0).collect();
        self.array(&mut arrays, "to_rev", "int8", ends);
        self.insert("ended", "history", &arrays, rows.len());
    }

    fn insert_changes(&mut self, changes: &'a [Change]) {
        let mut arrays = self.key_arrays(changes.iter().map(|change| &change.key));
        let revisions: Vec<i64> = changes.iter().map(|change| change.revision.0).collect();
        let places: Vec<i32> = changes.iter().map(|change| change.place).collect();
        let commits: Vec<Uuid> = changes.iter().map(|change| change.commit.0).collect();
        let instants: Vec<i64> = changes.iter().map(|change| change.at.0).collect();
        let principals: Vec<&str> = changes.iter().map(|change| &*change.principal).collect();
        let actions: Vec<i16> = changes.iter().map(|change| change.action as i16).collect();
        let kinds: Vec<i16> = changes.iter().map(|change| change.kind as i16).collect();
        let objects: Vec<i64> = changes.iter().map(|change| change.object.0).collect();
        let before: Vec<Option<&str>> = changes
            .iter()
            .map(|change| change.before.as_deref())
            .collect();
        let after: Vec<Option<&str>> = changes
            .iter()
            .map(|change| change.after.as_deref())
            .collect();
        self.array(&mut arrays, "revision", "int8", revisions);
        self.array(&mut arrays, "place", "int4", places);
        self.array(&mut arrays, "commit_id", "uuid", commits);
        self.array(&mut arrays, "at", "int8", instants);
        self.array(&mut arrays, "principal", "text", principals);
        self.array(&mut arrays, "action", "int2", actions);
        self.array(&mut arrays, "kind", "int2", kinds);
        self.array(&mut arrays, "object", "int8", objects);
        self.array(&mut arrays, "before", "text", before);
        self.array(&mut arrays, "after", "text", after);
        self.insert("logged", "change", &arrays, changes.len());
    }

    fn insert_operations(&mut self, records: &'a [OperationRecord]) {
        let mut arrays = Arrays::new();
        let keys: Vec<&str> = records.iter().map(|record| &*record.key).collect();
        let principals: Vec<&str> = records.iter().map(|record| &*record.principal).collect();
        let fingerprints: Vec<&str> = records.iter().map(|record| &*record.fingerprint).collect();
        let states: Vec<i16> = records.iter().map(|record| record.state as i16).collect();
        let answers: Vec<&str> = records.iter().map(|record| &*record.answer).collect();
        let instants: Vec<i64> = records.iter().map(|record| record.at.0).collect();
        let ends: Vec<i64> = records.iter().map(|record| record.expires.0).collect();
        self.array(&mut arrays, "key", "text", keys);
        self.array(&mut arrays, "principal", "text", principals);
        self.array(&mut arrays, "fingerprint", "text", fingerprints);
        self.array(&mut arrays, "state", "int2", states);
        self.array(&mut arrays, "answer", "text", answers);
        self.array(&mut arrays, "at", "int8", instants);
        self.array(&mut arrays, "expires", "int8", ends);
        self.insert("recorded", "operation", &arrays, records.len());
    }

    fn insert_tasks(&mut self, tasks: &'a [Task]) {
        let mut arrays = Arrays::new();
        let ids: Vec<Uuid> = tasks.iter().map(|task| task.id.0).collect();
        let kinds: Vec<&str> = tasks.iter().map(|task| &*task.kind).collect();
        let bodies: Vec<&str> = tasks.iter().map(|task| &*task.body).collect();
        let due: Vec<i64> = tasks.iter().map(|task| task.due.0).collect();
        let attempts: Vec<i32> = tasks.iter().map(|task| task.attempts).collect();
        self.array(&mut arrays, "id", "uuid", ids);
        self.array(&mut arrays, "kind", "text", kinds);
        self.array(&mut arrays, "body", "text", bodies);
        self.array(&mut arrays, "due", "int8", due);
        self.array(&mut arrays, "attempts", "int4", attempts);
        self.insert("queued", "task", &arrays, tasks.len());
    }
    fn remove_tasks(&mut self, tasks: &'a [TaskId]) {
        let mut arrays = Arrays::new();
        let ids: Vec<Uuid> = tasks.iter().map(|task| task.0).collect();
        self.array(&mut arrays, "id", "uuid", ids);
        let sql = format!(
            "DELETE FROM task t USING {} WHERE t.id = v.id",
            arrays.as_rows("v")
        );
        self.part("done", &sql, tasks.len());
    }

    fn insert_branches(&mut self, rows: &'a [BranchRow]) {
        let mut arrays = Arrays::new();
        let partitions: Vec<i64> = rows.iter().map(|row| row.partition.0).collect();
        let branches: Vec<i64> = rows.iter().map(|row| row.branch.0).collect();
        let heads: Vec<i64> = rows.iter().map(|row| row.head.0).collect();
        let lineages = rows.iter().map(|row| codec::write_lineage(&row.lineage));
        let lineages: Vec<String> = lineages.collect();
        self.array(&mut arrays, "partition", "int8", partitions);
        self.array(&mut arrays, "branch", "int8", branches);
        self.array(&mut arrays, "head", "int8", heads);
        let ends: Vec<Option<i64>> = rows.iter().map(|row| row.ended.map(|end| end.0)).collect();
        self.array(&mut arrays, "lineage", "text", lineages);
        let floors: Vec<i64> = rows.iter().map(|row| row.floor.0).collect();
        self.array(&mut arrays, "ended", "int8", ends);
        self.array(&mut arrays, "floor", "int8", floors);
        self.insert("forked", "branch", &arrays, rows.len());
    }

    fn move_heads(&mut self, heads: &'a [Head]) {
        let mut arrays = Arrays::new();
        let partitions: Vec<i64> = heads.iter().map(|head| head.partition.0).collect();
        let branches: Vec<i64> = heads.iter().map(|head| head.branch.0).collect();
        let revisions: Vec<i64> = heads.iter().map(|head| head.revision.0).collect();
        let ends = heads
            .iter()
            .map(|head| head.ends.then_some(head.revision.0));
        let ends: Vec<Option<i64>> = ends.collect();
        self.array(&mut arrays, "partition", "int8", partitions);
        self.array(&mut arrays, "branch", "int8", branches);
        self.array(&mut arrays, "head", "int8", revisions);
        self.array(&mut arrays, "ended", "int8", ends);
        let sql = format!(
            "INSERT INTO branch (partition, branch, head, lineage, ended) \
             SELECT partition, branch, head, '', ended FROM {} \
             ON CONFLICT (partition, branch) DO UPDATE SET head = excluded.head, \
                 ended = coalesce(branch.ended, excluded.ended)",
            arrays.as_rows("v")
        );
        self.part("moved", &sql, heads.len());
    }

    fn raise_floors(&mut self, raised: &'a [(PartitionId, Revision)]) {
        let mut arrays = Arrays::new();
        let partitions: Vec<i64> = raised.iter().map(|(partition, _)| partition.0).collect();
        let horizons: Vec<i64> = raised.iter().map(|(_, horizon)| horizon.0).collect();
        self.array(&mut arrays, "partition", "int8", partitions);
        self.array(&mut arrays, "horizon", "int8", horizons);
        let sql = format!(
            "UPDATE branch b SET floor = CASE WHEN b.head <= v.horizon THEN b.head ELSE coalesce(\
                 (SELECT max(l.revision) FROM change l WHERE l.partition = b.partition \
                  AND l.branch = b.branch AND l.class IN (1, 2, 5) AND l.revision <= v.horizon), \
                 b.floor) END FROM {} WHERE b.partition = v.partition",
            arrays.as_rows("v")
        );
        self.uncounted("floors", &sql);
    }

    /// A part that may touch any number of rows.
    fn uncounted(&mut self, name: &str, sql: &str) {
        self.with.push(format!("{name} AS ({sql} RETURNING 1)"));
        self.checks
            .push(format!("(SELECT count(*) FROM {name}) >= 0"));
    }

    fn insert_births(&mut self, births: &'a [(Key, Revision)]) {
        let mut arrays = self.key_arrays(births.iter().map(|(key, _)| key));
        let revisions: Vec<i64> = births.iter().map(|(_, revision)| revision.0).collect();
        self.array(&mut arrays, "revision", "int8", revisions);
        self.insert("born_entries", "birth", &arrays, births.len());
    }

    fn insert_pins(&mut self, pins: &'a [Pin]) {
        let mut arrays = Arrays::new();
        let partitions: Vec<i64> = pins.iter().map(|pin| pin.partition.0).collect();
        let branches: Vec<i64> = pins.iter().map(|pin| pin.state.branch.0).collect();
        let revisions: Vec<i64> = pins.iter().map(|pin| pin.state.revision.0).collect();
        let owners: Vec<i64> = pins.iter().map(|pin| pin.owner.0).collect();
        self.array(&mut arrays, "partition", "int8", partitions);
        self.array(&mut arrays, "branch", "int8", branches);
        self.array(&mut arrays, "revision", "int8", revisions);
        self.array(&mut arrays, "owner", "int8", owners);
        self.insert("pinned", "pin", &arrays, pins.len());
    }

    /// However many pins an owner has: nothing is counted.
    fn remove_pins(&mut self, owners: &'a [ObjectId]) {
        let owners: Vec<i64> = owners.iter().map(|owner| owner.0).collect();
        self.parameters.push(Box::new(owners));
        let number = self.parameters.len();
        let sql = format!("DELETE FROM pin WHERE owner = ANY (${number}::int8[])");
        self.uncounted("unpinned", &sql);
    }
}
