//! The reads of the interface, each within whatever transaction its connection is in.

use std::sync::LazyLock;

use rusqlite::params;

use super::rows::{Columns, Db, ENTRY, KEY, PARTITION};
use super::{branches, scan};
use crate::entry::{BranchId, Entry, Key, Kind};
use crate::error::StoreError;
use crate::partition::{PartitionId, PartitionRow, PartitionState};
use crate::read::{Answer, At, Path, Read, Resolved};
use crate::revision::Revision;
use crate::segment::Segment;

static POINT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {ENTRY} FROM current \
         WHERE partition = ?1 AND branch = ?2 AND scope = ?3 AND class = ?4 AND name = ?5"
    )
});
static ENDED_POINT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {ENTRY}, to_rev FROM history \
         WHERE partition = ?1 AND branch = ?2 AND scope = ?3 AND class = ?4 AND name = ?5 \
           AND from_rev <= ?6 ORDER BY from_rev DESC LIMIT 1"
    )
});
static CONTAINER: LazyLock<String> = LazyLock::new(|| {
    format!("SELECT {KEY}, {ENTRY} FROM current WHERE branch = ?1 AND object = ?2")
});
static PARTITION_ROW: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {PARTITION} FROM partition WHERE id = ?1"));

pub(super) fn answer_all(db: Db<'_>, at: At, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
    reads.iter().map(|read| answer(db, at, read)).collect()
}

fn answer(db: Db<'_>, at: At, read: &Read) -> Result<Answer, StoreError> {
    Ok(match read {
        Read::Point(key) => Answer::Entry(point(db, at, key)?),
        Read::Container(partition) => {
            let parameters = params![BranchId::MAIN.0, partition.0];
            Answer::Entries(db.query(&CONTAINER, parameters, |row| {
                Ok((row.key(0)?, row.entry(5)?))
            })?)
        }
        Read::Range {
            partition,
            branch,
            scope,
            class,
            kinds,
            after,
            limit,
        } => {
            let segment = Segment::range(scope, *class, after.as_deref());
            let map = (*partition, *branch);
            Answer::Entries(scan::page(db, at, map, &[segment], kinds, *limit)?)
        }
        Read::Under {
            partition,
            branch,
            scope,
            after,
            limit,
        } => {
            let segments = Segment::under(scope, after.as_ref());
            let map = (*partition, *branch);
            Answer::Entries(scan::page(db, at, map, &segments, &[] as &[Kind], *limit)?)
        }
        Read::Partition(partition) => Answer::Partition(partition_row(db, *partition)?),
        Read::Children(partition) => Answer::Partitions(db.query(
            "SELECT id FROM partition WHERE parent = ?1 AND state = ?2 AND id <> ?1 ORDER BY id",
            params![partition.0, PartitionState::Live as i64],
            |row| Ok(PartitionId(row.int(0)?)),
        )?),
        Read::Operation(key) => Answer::Operation(db.query_one(
            "SELECT key, principal, fingerprint, state, answer, at, expires \
             FROM operation WHERE key = ?1",
            [key],
            |row| row.operation(),
        )?),
        Read::Past(revision, read) => answer(db, At::Revision(*revision), read)?,
        Read::Branch(partition, branch) => Answer::Branch(branches::row(db, *partition, *branch)?),
        Read::Touched {
            partition,
            branch,
            from,
            to,
            after,
            limit,
        } => {
            let map = (*partition, *branch);
            let between = (*from, *to);
            Answer::Keys(branches::touched(db, map, between, after.as_ref(), *limit)?)
        }
        Read::Log {
            partition,
            branch,
            before,
            limit,
        } => Answer::Changes(branches::log(db, (*partition, *branch), *before, *limit)?),
        Read::Branches(partition) => Answer::Branches(branches::all(db, *partition)?),
        Read::PinningMerges(partition) => {
            Answer::Entries(branches::pinning_merges(db, *partition)?)
        }
        Read::Pinned(partition, state) => {
            Answer::Pinned(branches::is_pinned(db, *partition, *state)?)
        }
    })
}

pub(super) fn partition_row(
    db: Db<'_>,
    partition: PartitionId,
) -> Result<Option<PartitionRow>, StoreError> {
    db.query_one(&PARTITION_ROW, [partition.0], |row| row.partition(0))
}

fn point(db: Db<'_>, at: At, key: &Key) -> Result<Option<Entry>, StoreError> {
    let current = db.query_one(
        &POINT,
        params![
            key.partition.0,
            key.branch.0,
            key.scope,
            key.class as i64,
            key.name
        ],
        |row| row.entry(0),
    )?;
    match at {
        At::Latest => Ok(current),
        At::Revision(revision) => match current {
            Some(entry) if entry.from <= revision => Ok(Some(entry)),
            _ => ended_point(db, key, revision.0),
        },
    }
}

/// The version that stood at a revision among those that ended.
pub(super) fn ended_point(
    db: Db<'_>,
    key: &Key,
    revision: i64,
) -> Result<Option<Entry>, StoreError> {
    let newest = db.query_one(
        &ENDED_POINT,
        params![
            key.partition.0,
            key.branch.0,
            key.scope,
            key.class as i64,
            key.name,
            revision
        ],
        |row| Ok((row.entry(0)?, row.int(5)?)),
    )?;
    Ok(newest.and_then(|(entry, to)| (revision < to).then_some(entry)))
}

fn entry_columns(table: &str) -> String {
    ENTRY
        .split(", ")
        .map(|column| format!("{table}.{column}"))
        .collect::<Vec<_>>()
        .join(", ")
}

static RESOLVE: LazyLock<String> = LazyLock::new(|| {
    let step = |table: &str, parent: &str, name: &str| {
        format!(
            "LEFT JOIN current {table} ON {table}.partition = {parent} AND {table}.branch = 0 \
             AND {table}.scope = '' AND {table}.class = 1 AND {table}.name = {name} "
        )
    };
    let partition = PARTITION
        .split(", ")
        .map(|column| format!("r.{column}"))
        .collect::<Vec<_>>()
        .join(", ");
    format!(
        "SELECT {}, {}, {}, {}, {partition}, coalesce(b.head, 0), \
         EXISTS (SELECT 1 FROM current t WHERE t.partition = d.object AND t.branch = 0 \
             AND t.scope = '' AND t.class = 4) FROM (SELECT 1) {}{}{}\
         LEFT JOIN partition r ON r.id = d.object \
         LEFT JOIN branch b ON b.partition = d.object AND b.branch = 0 \
         LEFT JOIN current l ON l.partition = d.object AND l.branch = 0 AND l.scope = ?4 \
             AND l.class = ?5 AND l.name = ?6",
        entry_columns("m"),
        entry_columns("c"),
        entry_columns("d"),
        entry_columns("l"),
        step("m", &PartitionId::ROOT.0.to_string(), "?1"),
        step("c", "m.object", "?2"),
        step("d", "c.object", "?3"),
    )
});

pub(super) fn resolve(db: Db<'_>, path: &Path) -> Result<Resolved, StoreError> {
    let optional = |row: Columns<'_, '_>, first: usize| -> Result<Option<Entry>, StoreError> {
        Ok(if row.is_null(first)? {
            None
        } else {
            Some(row.entry(first)?)
        })
    };
    let leaf = path.leaf.as_ref();
    let found = db.query_one(
        &RESOLVE,
        params![
            path.metalake,
            path.catalog,
            path.database,
            leaf.map(|leaf| &leaf.scope),
            leaf.map(|leaf| leaf.class as i64),
            leaf.map(|leaf| &leaf.name),
        ],
        |row| {
            Ok(Resolved {
                metalake: optional(row, 0)?,
                catalog: optional(row, 5)?,
                database: optional(row, 10)?,
                leaf: optional(row, 15)?,
                partition: if row.is_null(20)? {
                    None
                } else {
                    Some(row.partition(20)?)
                },
                main: Revision(row.int(27)?),
                has_references: row.get(28)?,
                now: super::rows::now(),
            })
        },
    )?;
    Ok(found.unwrap_or_default())
}
