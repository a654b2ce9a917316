//! Branches, their pins, and which keys they touched.

use std::sync::LazyLock;

use rusqlite::params;

use super::rows::{CHANGE, Columns, Db, ENTRY, KEY};
use crate::branch::{BranchRow, BranchState};
use crate::codec;
use crate::entry::{BranchId, Class, Entry, Key};
use crate::error::StoreError;
use crate::partition::PartitionId;
use crate::revision::Revision;
use crate::write::{Change, WriteSet};

const BRANCH: &str = "branch, head, lineage, ended, floor";

fn of_row(partition: PartitionId, row: Columns<'_, '_>) -> Result<BranchRow, StoreError> {
    Ok(BranchRow {
        partition,
        branch: BranchId(row.int(0)?),
        head: Revision(row.int(1)?),
        lineage: codec::lineage(&row.get::<String>(2)?)?,
        ended: row.get::<Option<i64>>(3)?.map(Revision),
        floor: Revision(row.int(4)?),
    })
}

pub(super) fn row(
    db: Db<'_>,
    partition: PartitionId,
    branch: BranchId,
) -> Result<Option<BranchRow>, StoreError> {
    static ROW: LazyLock<String> = LazyLock::new(|| {
        format!("SELECT {BRANCH} FROM branch WHERE partition = ?1 AND branch = ?2")
    });
    db.query_one(&ROW, params![partition.0, branch.0], |row| {
        of_row(partition, row)
    })
}

pub(super) fn all(db: Db<'_>, partition: PartitionId) -> Result<Vec<BranchRow>, StoreError> {
    static ALL: LazyLock<String> = LazyLock::new(|| {
        format!("SELECT {BRANCH} FROM branch WHERE partition = ?1 ORDER BY branch")
    });
    db.query(&ALL, [partition.0], |row| of_row(partition, row))
}

pub(super) fn pinning_merges(
    db: Db<'_>,
    partition: PartitionId,
) -> Result<Vec<(Key, Entry)>, StoreError> {
    static MERGES: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {KEY}, {ENTRY} FROM current c WHERE partition = ?1 AND scope = '' \
             AND class = 5 AND branch IN (SELECT branch FROM branch WHERE partition = ?1) \
             AND EXISTS (SELECT 1 FROM pin WHERE owner = c.object) ORDER BY branch, name"
        )
    });
    db.query(&MERGES, [partition.0], |row| {
        Ok((row.key(0)?, row.entry(5)?))
    })
}

/// Removes what is left of branches that ended before the horizon, that nothing pins and that pin
/// nothing.
pub(super) fn retire(db: Db<'_>, partition: PartitionId, limit: u32) -> Result<u64, StoreError> {
    let retired = db.query_one(
        "SELECT b.branch FROM branch b JOIN partition r ON r.id = b.partition \
         WHERE b.partition = ?1 AND b.ended <= r.horizon AND NOT EXISTS (SELECT 1 FROM pin p \
             WHERE p.partition = b.partition AND p.branch = b.branch) \
           AND NOT EXISTS (SELECT 1 FROM current c JOIN pin p ON p.owner = c.object \
             WHERE c.partition = b.partition AND c.branch = b.branch AND c.scope = '' \
               AND c.class = 5) LIMIT 1",
        [partition.0],
        |row| row.int(0),
    )?;
    let Some(branch) = retired else {
        return Ok(0);
    };
    let mut removed = 0;
    for table in ["current", "history", "birth"] {
        removed += db.execute(
            &format!(
                "DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} \
                 WHERE partition = ?1 AND branch = ?2 LIMIT ?3)"
            ),
            params![partition.0, branch, limit],
        )?;
    }
    if removed == 0 {
        removed = db.execute(
            "DELETE FROM branch WHERE partition = ?1 AND branch = ?2",
            params![partition.0, branch],
        )?;
    }
    Ok(removed as u64)
}

pub(super) fn is_pinned(
    db: Db<'_>,
    partition: PartitionId,
    state: BranchState,
) -> Result<bool, StoreError> {
    let found = db.query_one(
        "SELECT 1 FROM pin WHERE partition = ?1 AND branch = ?2 AND revision = ?3 LIMIT 1",
        params![partition.0, state.branch.0, state.revision.0],
        |_| Ok(()),
    )?;
    Ok(found.is_some())
}

/// What a version ended under, and what got its first one. `main` has no index of its own branch:
/// its history is most of the partition's.
pub(super) fn touched(
    db: Db<'_>,
    (partition, branch): (PartitionId, BranchId),
    (from, to): (Revision, Revision),
    after: Option<&(String, Class, String)>,
    limit: u32,
) -> Result<Vec<Key>, StoreError> {
    const OF_MAIN: &str = "SELECT scope, class, name FROM history INDEXED BY history_end \
         WHERE partition = ?1 AND branch = 0 AND to_rev > ?2 AND to_rev <= ?3 AND ?4 = 0";
    const OF_OTHERS: &str = "SELECT scope, class, name FROM history \
         INDEXED BY history_end_of_branch \
         WHERE partition = ?1 AND branch = ?4 AND branch <> 0 AND to_rev > ?2 AND to_rev <= ?3";
    let ended = match branch {
        BranchId::MAIN => OF_MAIN,
        _ => OF_OTHERS,
    };
    let sql = format!(
        "SELECT scope, class, name FROM ({ended} UNION \
             SELECT scope, class, name FROM birth \
             WHERE partition = ?1 AND branch = ?4 AND revision > ?2 AND revision <= ?3) \
         WHERE (scope, class, name) > (?5, ?6, ?7) ORDER BY scope, class, name LIMIT ?8"
    );
    let (scope, class, name) = match after {
        Some((scope, class, name)) => (scope.as_str(), *class as i64, name.as_str()),
        None => ("", 0, ""),
    };
    let parameters = params![
        partition.0,
        from.0,
        to.0,
        branch.0,
        scope,
        class,
        name,
        limit
    ];
    db.query(&sql, parameters, |row| {
        Ok(Key {
            partition,
            branch,
            scope: row.get(0)?,
            class: codec::class(row.int(1)?)?,
            name: row.get(2)?,
        })
    })
}

static LOG: LazyLock<[String; 2]> = LazyLock::new(|| {
    ["branch = 0", "branch = ?2 AND branch <> 0"].map(|of_branch| {
        format!(
            "SELECT {CHANGE} FROM change WHERE partition = ?1 AND {of_branch} AND ?2 = branch \
             AND revision < ?3 ORDER BY revision DESC, place DESC LIMIT ?4"
        )
    })
});

pub(super) fn log(
    db: Db<'_>,
    (partition, branch): (PartitionId, BranchId),
    before: Revision,
    limit: u32,
) -> Result<Vec<Change>, StoreError> {
    let sql = &LOG[usize::from(branch != BranchId::MAIN)];
    let parameters = params![partition.0, branch.0, before.0, limit];
    db.query(sql, parameters, |row| row.change())
}

pub(super) fn apply(db: Db<'_>, writes: &WriteSet) -> Result<(), StoreError> {
    for row in &writes.new_branches {
        db.execute(
            "INSERT INTO branch (partition, branch, head, lineage, ended, floor) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                row.partition.0,
                row.branch.0,
                row.head.0,
                codec::write_lineage(&row.lineage),
                row.ended.map(|ended| ended.0),
                row.floor.0
            ],
        )?;
    }
    for head in &writes.heads {
        db.execute(
            "INSERT INTO branch (partition, branch, head, lineage, ended) \
             VALUES (?1, ?2, ?3, '', iif(?4, ?3, NULL)) \
             ON CONFLICT (partition, branch) DO UPDATE SET head = excluded.head, \
                 ended = coalesce(branch.ended, excluded.ended)",
            params![head.partition.0, head.branch.0, head.revision.0, head.ends],
        )?;
    }
    for (partition, horizon) in &writes.raised {
        db.execute(
            "UPDATE branch SET floor = CASE WHEN head <= ?2 THEN head ELSE coalesce(\
                 (SELECT max(l.revision) FROM change l WHERE l.partition = branch.partition \
                  AND l.branch = branch.branch AND l.class IN (1, 2, 5) AND l.revision <= ?2), \
                 floor) END WHERE partition = ?1",
            params![partition.0, horizon.0],
        )?;
    }
    for (key, revision) in &writes.births {
        db.execute(
            "INSERT INTO birth (partition, branch, revision, scope, class, name) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                key.partition.0,
                key.branch.0,
                revision.0,
                key.scope,
                key.class as i64,
                key.name
            ],
        )?;
    }
    for pin in &writes.pins {
        db.execute(
            "INSERT INTO pin (partition, branch, revision, owner) VALUES (?1, ?2, ?3, ?4)",
            params![
                pin.partition.0,
                pin.state.branch.0,
                pin.state.revision.0,
                pin.owner.0
            ],
        )?;
    }
    for owner in &writes.unpinned {
        db.execute("DELETE FROM pin WHERE owner = ?1", [owner.0])?;
    }
    Ok(())
}
