//! The change log, what it proves, and how it is pruned.

use std::collections::HashSet;
use std::sync::LazyLock;

use rusqlite::params;

use super::reads::partition_row;
use super::rows::{CHANGE, Db, ENTRY, KEY, PARTITION};
use crate::entry::{Entry, Key};
use crate::error::StoreError;
use crate::partition::{PartitionId, PartitionRow};
use crate::read::{Feed, FeedPosition};
use crate::revision::{CommitId, Revision};
use crate::write::Change;

static BEHIND: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {CHANGE} FROM change WHERE partition = ?1 AND (revision, place) > (?2, ?3) \
         AND revision <= ?4 ORDER BY revision, place LIMIT ?5"
    )
});

pub(super) fn holds_commit(
    db: Db<'_>,
    partition: PartitionId,
    revision: Revision,
    commit: CommitId,
) -> Result<bool, StoreError> {
    let found = db.query_one(
        "SELECT 1 FROM change WHERE partition = ?1 AND revision = ?2 AND commit_id = ?3 LIMIT 1",
        params![partition.0, revision.0, commit.0.as_bytes()],
        |_| Ok(()),
    )?;
    Ok(found.is_some())
}

pub(super) fn changed_since(
    db: Db<'_>,
    partition: PartitionId,
    revision: Revision,
    commit: CommitId,
) -> Result<Option<Vec<Key>>, StoreError> {
    if !holds_commit(db, partition, revision, commit)? {
        return Ok(None);
    }
    static KEYS: LazyLock<String> = LazyLock::new(|| {
        format!("SELECT {KEY} FROM change WHERE partition = ?1 AND revision > ?2")
    });
    let keys = db.query(&KEYS, params![partition.0, revision.0], |row| row.key(0))?;
    let distinct: HashSet<Key> = keys.into_iter().collect();
    Ok(Some(distinct.into_iter().collect()))
}

pub(super) fn feed(db: Db<'_>, after: &[FeedPosition], limit: u32) -> Result<Feed, StoreError> {
    let mut feed = Feed {
        changes: Vec::new(),
        lost: Vec::new(),
    };
    for position in after {
        if is_lost(db, position)? {
            feed.lost.push(position.partition);
            continue;
        }
        let place = (position.revision, position.place);
        let (partition, to) = (position.partition, Revision::MAX);
        feed.changes
            .extend(changes_behind(db, partition, place, to, limit)?);
    }
    feed.changes
        .sort_by_key(|change| (change.revision, change.key.partition, change.place));
    feed.changes.truncate(limit as usize);
    Ok(feed)
}

fn is_lost(db: Db<'_>, position: &FeedPosition) -> Result<bool, StoreError> {
    let Some(row) = partition_row(db, position.partition)? else {
        return Ok(true);
    };
    if position.revision < row.horizon {
        return Ok(true);
    }
    match position.commit {
        Some(commit) => Ok(!holds_commit(
            db,
            position.partition,
            position.revision,
            commit,
        )?),
        None => Ok(false),
    }
}

pub(super) fn changes_behind(
    db: Db<'_>,
    partition: PartitionId,
    (revision, place): (Revision, i32),
    to: Revision,
    limit: u32,
) -> Result<Vec<Change>, StoreError> {
    db.query(
        &BEHIND,
        params![partition.0, revision.0, place, to.0, limit],
        |row| row.change(),
    )
}

/// Partitions that something was committed to.
const LOGGED: &str = "last_commit <> zeroblob(16)";

pub(super) fn logged_partitions(
    db: Db<'_>,
    below: Option<PartitionId>,
) -> Result<Vec<PartitionRow>, StoreError> {
    let Some(below) = below else {
        let sql = format!("SELECT {PARTITION} FROM partition WHERE {LOGGED} ORDER BY id");
        return db.query(&sql, (), |row| row.partition(0));
    };
    let sql = format!(
        "WITH RECURSIVE tree(id) AS (\
             SELECT ?1 UNION SELECT p.id FROM tree JOIN partition p ON p.parent = tree.id) \
         SELECT {PARTITION} FROM partition WHERE id IN (SELECT id FROM tree) AND {LOGGED} \
         ORDER BY id"
    );
    db.query(&sql, [below.0], |row| row.partition(0))
}

/// Oldest first, so that a change that is still there has all later ones behind it.
pub(super) fn prune(db: Db<'_>, partition: PartitionId, limit: u32) -> Result<u64, StoreError> {
    let Some(row) = partition_row(db, partition)? else {
        return Ok(0);
    };
    let versions = db.execute(
        "DELETE FROM history WHERE rowid IN (SELECT rowid FROM history h \
         WHERE partition = ?1 AND to_rev <= ?2 AND NOT EXISTS (SELECT 1 FROM pin p \
             WHERE p.partition = h.partition AND p.branch = h.branch \
               AND p.revision >= h.from_rev AND p.revision < h.to_rev) \
         ORDER BY to_rev LIMIT ?3)",
        params![partition.0, row.horizon.0, limit],
    )?;
    let rest = limit as usize - versions;
    // What stood on a branch when it ended, unless a state of it is kept; its merges go when it is
    // retired, with what they pin.
    let left = db.execute(
        "DELETE FROM current WHERE rowid IN (SELECT c.rowid FROM branch e \
         JOIN current c ON c.partition = e.partition AND c.branch = e.branch \
         WHERE e.partition = ?1 AND e.ended <= ?2 AND c.class <> 5 \
           AND NOT EXISTS (SELECT 1 FROM pin p WHERE p.partition = c.partition \
               AND p.branch = c.branch AND p.revision >= c.from_rev) LIMIT ?3)",
        params![partition.0, row.horizon.0, rest as i64],
    )?;
    let rest = rest - left;
    let births = db.execute(
        "DELETE FROM birth WHERE rowid IN (SELECT b.rowid FROM birth b \
         WHERE partition = ?1 AND revision <= ?2 AND NOT EXISTS (SELECT 1 FROM pin p \
             WHERE p.partition = b.partition AND p.branch = b.branch \
               AND (p.revision < b.revision OR b.branch <> 0)) \
           AND (branch = 0 OR EXISTS (SELECT 1 FROM branch e WHERE e.partition = b.partition \
               AND e.branch = b.branch AND e.ended IS NOT NULL)) LIMIT ?3)",
        params![partition.0, row.horizon.0, rest as i64],
    )?;
    let rest = rest - births;
    let changes = db.execute(
        "DELETE FROM change WHERE rowid IN (SELECT rowid FROM change \
         WHERE partition = ?1 AND revision < ?2 ORDER BY revision, place LIMIT ?3)",
        params![partition.0, row.horizon.0, rest as i64],
    )?;
    Ok((versions + left + births + changes) as u64)
}

pub(super) fn history_page(
    db: Db<'_>,
    partition: PartitionId,
    after: Option<&(Key, Revision)>,
    limit: u32,
) -> Result<Vec<(Key, Entry, Revision)>, StoreError> {
    static PAGE: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {KEY}, {ENTRY}, to_rev FROM history WHERE partition = ?1 \
             AND (branch, scope, class, name, from_rev) > (?2, ?3, ?4, ?5, ?6) \
             ORDER BY branch, scope, class, name, from_rev LIMIT ?7"
        )
    });
    let (branch, scope, class, name, from) = match after {
        Some((key, from)) => (
            key.branch.0,
            key.scope.as_str(),
            key.class as i64,
            key.name.as_str(),
            from.0,
        ),
        None => (i64::MIN, "", 0, "", 0),
    };
    db.query(
        &PAGE,
        params![partition.0, branch, scope, class, name, from, limit],
        |row| Ok((row.key(0)?, row.entry(5)?, Revision(row.int(10)?))),
    )
}

pub(super) fn current_page(
    db: Db<'_>,
    partition: PartitionId,
    after: Option<&Key>,
    limit: u32,
) -> Result<Vec<(Key, Entry)>, StoreError> {
    static PAGE: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {KEY}, {ENTRY} FROM current INDEXED BY sqlite_autoindex_current_1 \
             WHERE partition = ?1 AND (branch, scope, class, name) > (?2, ?3, ?4, ?5) \
             ORDER BY branch, scope, class, name LIMIT ?6"
        )
    });
    let (branch, scope, class, name) = match after {
        Some(key) => (
            key.branch.0,
            key.scope.as_str(),
            key.class as i64,
            key.name.as_str(),
        ),
        None => (i64::MIN, "", 0, ""),
    };
    db.query(
        &PAGE,
        params![partition.0, branch, scope, class, name, limit],
        |row| Ok((row.key(0)?, row.entry(5)?)),
    )
}
