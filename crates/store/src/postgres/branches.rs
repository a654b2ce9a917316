//! Branches, their pins, and which keys they touched.

use tokio_postgres::Row;

use super::connection::{Statement, values};
use super::rows::{self, CHANGE};
use crate::branch::{BranchRow, BranchState};
use crate::codec;
use crate::entry::{BranchId, Class};
use crate::error::StoreError;
use crate::partition::PartitionId;
use crate::revision::Revision;

pub(super) fn row(partition: PartitionId, branch: BranchId) -> Statement<'static> {
    Statement::new(
        "SELECT head, lineage, ended, floor FROM branch WHERE partition = $1 AND branch = $2",
        values![partition.0, branch.0],
    )
}

pub(super) fn found(
    row: &Row,
    (partition, branch): (PartitionId, BranchId),
) -> Result<BranchRow, StoreError> {
    Ok(BranchRow {
        partition,
        branch,
        head: Revision(rows::get(row, 0)?),
        lineage: codec::lineage(rows::get(row, 1)?)?,
        ended: rows::get::<Option<i64>>(row, 2)?.map(Revision),
        floor: Revision(rows::get(row, 3)?),
    })
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
