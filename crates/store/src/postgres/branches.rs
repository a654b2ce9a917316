//! Branches, their pins, and which keys they touched.

use std::sync::LazyLock;

use tokio_postgres::Row;

use super::connection::{Statement, values};
use super::rows::{self, CHANGE, ENTRY, KEY};
use crate::branch::{BranchRow, BranchState};
use crate::codec;
use crate::entry::{BranchId, Class};
use crate::error::StoreError;
use crate::partition::PartitionId;
use crate::revision::Revision;

const BRANCH: &str = "partition, branch, head, lineage, ended, floor";

pub(super) fn row(partition: PartitionId, branch: BranchId) -> Statement<'static> {
    static ROW: LazyLock<String> = LazyLock::new(|| {
        format!("SELECT {BRANCH} FROM branch WHERE partition = $1 AND branch = $2")
    });
    Statement::new(&**ROW, values![partition.0, branch.0])
}

pub(super) fn all(partition: PartitionId) -> Statement<'static> {
    static ALL: LazyLock<String> = LazyLock::new(|| {
        format!("SELECT {BRANCH} FROM branch WHERE partition = $1 ORDER BY branch")
    });
    Statement::new(&**ALL, values![partition.0])
}

pub(super) fn found(row: &Row) -> Result<BranchRow, StoreError> {
    Ok(BranchRow {
        partition: PartitionId(rows::get(row, 0)?),
        branch: BranchId(rows::get(row, 1)?),
        head: Revision(rows::get(row, 2)?),
        lineage: codec::lineage(rows::get(row, 3)?)?,
        ended: rows::get::<Option<i64>>(row, 4)?.map(Revision),
        floor: Revision(rows::get(row, 5)?),
    })
}

pub(super) fn pinning_merges(partition: PartitionId) -> Statement<'static> {
    static MERGES: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {KEY}, {ENTRY} FROM current c WHERE partition = $1 AND scope = '' \
             AND class = 5 AND branch IN (SELECT branch FROM branch WHERE partition = $1) \
             AND EXISTS (SELECT 1 FROM pin WHERE owner = c.object) ORDER BY branch, name"
        )
    });
    Statement::new(&**MERGES, values![partition.0])
}

/// Removes what is left of branches that ended before the horizon, that nothing pins and that pin
/// nothing; their rows go last, when a run before has removed everything else.
pub(super) fn retire(partition: PartitionId, limit: u32) -> Statement<'static> {
    static RETIRE: LazyLock<String> = LazyLock::new(|| {
        let rest = |table: &str| {
            format!(
                "{table}_rows AS (DELETE FROM {table} WHERE ctid = ANY (ARRAY(\
                     SELECT ctid FROM {table} WHERE partition = $1 \
                       AND branch IN (SELECT branch FROM retired) LIMIT $2)) RETURNING 1), "
            )
        };
        let has = |table: &str| {
            format!(
                " AND NOT EXISTS (SELECT 1 FROM {table} t \
                 WHERE t.partition = b.partition AND t.branch = b.branch)"
            )
        };
        let tables = ["current", "history", "birth"];
        format!(
            "WITH retired AS MATERIALIZED (SELECT b.branch \
                 FROM branch b JOIN partition r ON r.id = b.partition \
                 WHERE b.partition = $1 AND b.ended <= r.horizon \
                   AND NOT EXISTS (SELECT 1 FROM pin p \
                       WHERE p.partition = b.partition AND p.branch = b.branch) \
                   AND NOT EXISTS (SELECT 1 FROM current c JOIN pin p ON p.owner = c.object \
                       WHERE c.partition = b.partition AND c.branch = b.branch \
                         AND c.scope = '' AND c.class = 5)), \
             {} branch_rows AS (DELETE FROM branch b WHERE partition = $1 \
                 AND branch IN (SELECT branch FROM retired){} RETURNING 1) \
             SELECT (SELECT count(*) FROM current_rows) + (SELECT count(*) FROM history_rows) \
                 + (SELECT count(*) FROM birth_rows) + (SELECT count(*) FROM branch_rows)",
            tables.map(rest).concat(),
            tables.map(has).concat()
        )
    });
    Statement::new(&**RETIRE, values![partition.0, i64::from(limit)])
}

pub(super) fn is_pinned(partition: PartitionId, state: BranchState) -> Statement<'static> {
    Statement::new(
        "SELECT 1 FROM pin WHERE partition = $1 AND branch = $2 AND revision = $3 LIMIT 1",
        values![partition.0, state.branch.0, state.revision.0],
    )
}

/// What a version ended under, and what got its first one. `main` has no index of its own branch:
/// its history is most of the partition's. What was touched is found before names are compared:
/// else PostgreSQL walks all names of the history, however few were touched.
pub(super) fn touched(
    (partition, branch): (PartitionId, BranchId),
    (from, to): (Revision, Revision),
    after: Option<&(String, Class, String)>,
    limit: u32,
) -> Statement<'static> {
    let of_others = match branch {
        BranchId::MAIN => "",
        _ => " AND branch <> 0",
    };
    let sql = format!(
        "WITH t AS MATERIALIZED (\
             SELECT scope, class, name FROM history WHERE partition = $1 AND branch = $4 \
               AND to_rev > $2 AND to_rev <= $3{of_others} \
             UNION SELECT scope, class, name FROM birth WHERE partition = $1 AND branch = $4 \
               AND revision > $2 AND revision <= $3) \
         SELECT $1::int8, $4::int8, scope, class, name FROM t \
         WHERE (scope, class, name) > ($5, $6, $7) ORDER BY scope, class, name LIMIT $8"
    );
    let (scope, class, name) = match after {
        Some((scope, class, name)) => (scope.clone(), *class as i16, name.clone()),
        None => (String::new(), 0, String::new()),
    };
    Statement::new(
        sql,
        values![
            partition.0,
            from.0,
            to.0,
            branch.0,
            scope,
            class,
            name,
            i64::from(limit)
        ],
    )
}

pub(super) fn log(
    (partition, branch): (PartitionId, BranchId),
    before: Revision,
    limit: u32,
) -> Statement<'static> {
    let of_others = match branch {
        BranchId::MAIN => "",
        _ => " AND branch <> 0",
    };
    Statement::new(
        format!(
            "SELECT {CHANGE} FROM change WHERE partition = $1 AND branch = $2{of_others} \
             AND revision < $3 ORDER BY revision DESC, place DESC LIMIT $4"
        ),
        values![partition.0, branch.0, before.0, i64::from(limit)],
    )
}
