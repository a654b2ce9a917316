//! Statements about the change log, what it proves, and how it is pruned.

use std::collections::HashSet;
use std::sync::LazyLock;

use tokio_postgres::Row;
use uuid::Uuid;

use super::connection::{Statement, values};
use super::rows::{self, CHANGE, ENTRY, KEY, PARTITION, of_table};
use crate::entry::{Entry, Key};
use crate::error::StoreError;
use crate::partition::PartitionId;
use crate::read::{Feed, FeedPosition};
use crate::revision::{CommitId, Revision};

pub(super) fn holds_commit(
    partition: PartitionId,
    revision: Revision,
    commit: CommitId,
) -> Statement<'static> {
    Statement::new(
        "SELECT EXISTS (SELECT 1 FROM change \
         WHERE partition = $1 AND revision = $2 AND commit_id = $3)",
        values![partition.0, revision.0, commit.0],
    )
}

/// Rows without a partition say that the log holds the commit; the others are changed keys.
pub(super) fn changed_since(
    partition: PartitionId,
    revision: Revision,
    commit: CommitId,
) -> Statement<'static> {
    Statement::new(
        "SELECT NULL::int8, NULL::int8, NULL::text, NULL::int2, NULL::text \
         WHERE EXISTS (SELECT 1 FROM change \
             WHERE partition = $1 AND revision = $2 AND commit_id = $3) \
         UNION ALL \
         SELECT partition, branch, scope, class, name FROM change \
         WHERE partition = $1 AND revision > $2",
        values![partition.0, revision.0, commit.0],
    )
}

pub(super) fn changed_keys(rows: &[Row]) -> Result<Option<Vec<Key>>, StoreError> {
    let mut is_held = false;
    let mut keys = HashSet::new();
    for row in rows {
        match rows::get::<Option<i64>>(row, 0)? {
            Some(_) => {
                keys.insert(rows::key(row, 0)?);
            }
            None => is_held = true,
        }
    }
    Ok(is_held.then(|| keys.into_iter().collect()))
}

const POSITIONS: &str = "unnest($1::int8[], $2::int8[], $3::int4[], $4::uuid[]) \
     AS q(partition, revision, place, commit_id) LEFT JOIN partition r ON r.id = q.partition";
const IS_LOST: &str = "(r.id IS NULL OR q.revision < r.horizon OR (q.commit_id IS NOT NULL \
     AND NOT EXISTS (SELECT 1 FROM change k WHERE k.partition = q.partition \
         AND k.revision = q.revision AND k.commit_id = q.commit_id)))";

/// The lost positions, and the changes behind the others.
pub(super) fn feed(after: &[FeedPosition], limit: u32) -> [Statement<'static>; 2] {
    static LOST: LazyLock<String> =
        LazyLock::new(|| format!("SELECT q.partition FROM {POSITIONS} WHERE {IS_LOST}"));
    static CHANGES: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {} FROM {POSITIONS} CROSS JOIN LATERAL (SELECT {CHANGE} FROM change \
                 WHERE partition = q.partition AND (revision, place) > (q.revision, q.place) \
                 ORDER BY revision, place LIMIT $5) l \
             WHERE NOT {IS_LOST} ORDER BY l.revision, l.partition, l.place LIMIT $5",
            of_table("l", CHANGE)
        )
    });
    let partitions: Vec<i64> = after.iter().map(|position| position.partition.0).collect();
    let revisions: Vec<i64> = after.iter().map(|position| position.revision.0).collect();
    let places: Vec<i32> = after.iter().map(|position| position.place).collect();
    let commits: Vec<Option<Uuid>> = after
        .iter()
        .map(|position| position.commit.map(|commit| commit.0))
        .collect();
    let positions = || {
        values![
            partitions.clone(),
            revisions.clone(),
            places.clone(),
            commits.clone()
        ]
    };
    let mut with_limit = positions();
    with_limit.extend(values![i64::from(limit)]);
    [
        Statement::new(&**LOST, positions()),
        Statement::new(&**CHANGES, with_limit),
    ]
}

pub(super) fn feed_page(rows: &[Vec<Row>]) -> Result<Feed, StoreError> {
    let of = |index: usize| {
        rows.get(index)
            .map(Vec::as_slice)
            .unwrap_or_default()
            .iter()
    };
    let lost = of(0).map(|row| rows::get(row, 0).map(PartitionId));
    Ok(Feed {
        lost: lost.collect::<Result<_, _>>()?,
        changes: of(1).map(rows::change).collect::<Result<_, _>>()?,
    })
}

pub(super) fn changes_behind(
    partition: PartitionId,
    (revision, place): (Revision, i32),
    to: Revision,
    limit: u32,
) -> Statement<'static> {
    static BEHIND: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {CHANGE} FROM change WHERE partition = $1 AND (revision, place) > ($2, $3) \
             AND revision <= $4 ORDER BY revision, place LIMIT $5"
        )
    });
    Statement::new(
        &**BEHIND,
        values![partition.0, revision.0, place, to.0, i64::from(limit)],
    )
}

/// Partitions that something was committed to.
const LOGGED: &str = "last_commit <> '00000000-0000-0000-0000-000000000000'";

pub(super) fn logged_partitions(below: Option<PartitionId>) -> Statement<'static> {
    let Some(below) = below else {
        let sql = format!("SELECT {PARTITION} FROM partition WHERE {LOGGED} ORDER BY id");
        return Statement::new(sql, values![]);
    };
    let sql = format!(
        "WITH RECURSIVE tree(id) AS (\
             SELECT $1::int8 \
             UNION SELECT p.id FROM tree JOIN partition p ON p.parent = tree.id) \
         SELECT {PARTITION} FROM partition WHERE id IN (SELECT id FROM tree) AND {LOGGED} \
         ORDER BY id"
    );
    Statement::new(sql, values![below.0])
}

/// Oldest first, so that a change that is still there has all later ones behind it. Rows of both
/// tables are never updated: their places stay theirs.
pub(super) fn prune(partition: PartitionId, limit: u32) -> Statement<'static> {
    Statement::new(
        "WITH edge AS MATERIALIZED (SELECT horizon FROM partition WHERE id = $1), \
         versions AS (DELETE FROM history WHERE ctid = ANY (ARRAY(SELECT ctid FROM history \
             WHERE partition = $1 AND to_rev <= (SELECT horizon FROM edge) \
               AND NOT EXISTS (SELECT 1 FROM pin p WHERE p.partition = history.partition \
                   AND p.branch = history.branch AND p.revision >= history.from_rev \
                   AND p.revision < history.to_rev) \
             ORDER BY to_rev LIMIT $2)) RETURNING 1), \
         remains AS (DELETE FROM current WHERE ctid = ANY (ARRAY(SELECT c.ctid FROM branch e \
             JOIN current c ON c.partition = e.partition AND c.branch = e.branch \
             WHERE e.partition = $1 AND e.ended <= (SELECT horizon FROM edge) AND c.class <> 5 \
               AND NOT EXISTS (SELECT 1 FROM pin p WHERE p.partition = c.partition \
                   AND p.branch = c.branch AND p.revision >= c.from_rev) \
             LIMIT greatest($2 - (SELECT count(*) FROM versions), 0))) RETURNING 1), \
         births AS (DELETE FROM birth WHERE ctid = ANY (ARRAY(SELECT ctid FROM birth \
             WHERE partition = $1 AND revision <= (SELECT horizon FROM edge) \
               AND NOT EXISTS (SELECT 1 FROM pin p WHERE p.partition = birth.partition \
                   AND p.branch = birth.branch \
                   AND (p.revision < birth.revision OR birth.branch <> 0)) \
               AND (branch = 0 OR EXISTS (SELECT 1 FROM branch e \
                   WHERE e.partition = birth.partition AND e.branch = birth.branch \
                     AND e.ended IS NOT NULL)) \
             LIMIT greatest($2 - (SELECT count(*) FROM versions) \
                 - (SELECT count(*) FROM remains), 0))) RETURNING 1), \
         changes AS (DELETE FROM change WHERE ctid = ANY (ARRAY(SELECT ctid FROM change \
             WHERE partition = $1 AND revision < (SELECT horizon FROM edge) \
             ORDER BY revision, place \
             LIMIT greatest($2 - (SELECT count(*) FROM versions) \
                 - (SELECT count(*) FROM remains) - (SELECT count(*) FROM births), 0))) \
             RETURNING 1) \
         SELECT (SELECT count(*) FROM versions) + (SELECT count(*) FROM remains) \
             + (SELECT count(*) FROM births) + (SELECT count(*) FROM changes)",
        values![partition.0, i64::from(limit)],
    )
}

pub(super) fn history_page(
    partition: PartitionId,
    after: Option<(Key, Revision)>,
    limit: u32,
) -> Statement<'static> {
    static PAGE: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {KEY}, {ENTRY}, to_rev FROM history WHERE partition = $1 \
             AND (branch, scope, class, name, from_rev) > ($2, $3, $4, $5, $6) \
             ORDER BY branch, scope, class, name, from_rev LIMIT $7"
        )
    });
    let (branch, scope, class, name, from) = match after {
        Some((key, from)) => (key.branch.0, key.scope, key.class as i16, key.name, from.0),
        None => (i64::MIN, String::new(), 0, String::new(), 0),
    };
    Statement::new(
        &**PAGE,
        values![
            partition.0,
            branch,
            scope,
            class,
            name,
            from,
            i64::from(limit)
        ],
    )
}

pub(super) fn current_page(
    partition: PartitionId,
    after: Option<Key>,
    limit: u32,
) -> Statement<'static> {
    static PAGE: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {KEY}, {ENTRY} FROM current WHERE partition = $1 \
             AND (branch, scope, class, name) > ($2, $3, $4, $5) \
             ORDER BY branch, scope, class, name LIMIT $6"
        )
    });
    let (branch, scope, class, name) = match after {
        Some(key) => (key.branch.0, key.scope, key.class as i16, key.name),
        None => (i64::MIN, String::new(), 0, String::new()),
    };
    Statement::new(
        &**PAGE,
        values![partition.0, branch, scope, class, name, i64::from(limit)],
    )
}

pub(super) fn standing_version(row: &Row) -> Result<(Key, Entry), StoreError> {
    Ok((rows::key(row, 0)?, rows::entry(row, 5)?))
}

pub(super) fn ended_version(row: &Row) -> Result<(Key, Entry, Revision), StoreError> {
    Ok((
        rows::key(row, 0)?,
        rows::entry(row, 5)?,
        Revision(rows::get(row, 10)?),
    ))
}
