//! Pages of a listing as statements, at latest or at a revision.

use super::connection::{Statement, values};
use super::rows::{ENTRY, KEY, of_table};
use crate::entry::{BranchId, Kind};
use crate::partition::PartitionId;
use crate::read::At;
use crate::segment::Segment;

/// The first `limit` entries of one segment: (key, entry) rows in order.
pub(super) fn page(
    at: At,
    partition: PartitionId,
    branch: BranchId,
    segment: &Segment,
    kinds: &[Kind],
    limit: u32,
) -> Statement<'static> {
    let mut parameters = values![
        partition.0,
        branch.0,
        segment.from.scope.clone(),
        segment.from.class,
        segment.from.name.clone(),
    ];
    let numbers: Vec<i16> = kinds.iter().map(|kind| *kind as i16).collect();
    let sql = match at {
        At::Latest if kinds.is_empty() => latest(segment),
        At::Latest => {
            parameters.extend(values![i64::from(limit), numbers]);
            return Statement::new(latest_of_kinds(segment), parameters);
        }
        At::Revision(_) => at_revision(segment),
    };
    parameters.extend(values![i64::from(limit)]);
    if let At::Revision(revision) = at {
        parameters.extend(values![revision.0, numbers]);
    }
    if let Some(to) = &segment.to {
        parameters.extend(values![to.scope.clone(), to.class, to.name.clone()]);
    }
    Statement::new(sql, parameters)
}

fn operator(segment: &Segment) -> &'static str {
    if segment.inclusive { ">=" } else { ">" }
}

/// The end of a segment, whose three values start at this number.
fn end(segment: &Segment, first: usize) -> String {
    match segment.to {
        Some(_) => format!(
            " AND (scope, class, name) < (${first}, ${}, ${})",
            first + 1,
            first + 2
        ),
        None => String::new(),
    }
}

fn latest(segment: &Segment) -> String {
    format!(
        "SELECT {KEY}, {ENTRY} FROM current WHERE partition = $1 AND branch = $2 \
         AND (scope, class, name) {} ($3, $4, $5){} \
         ORDER BY scope, class, name LIMIT $6",
        operator(segment),
        end(segment, 7)
    )
}

/// One class of one scope, read by kind: a page of views costs the same among any number of tables.
fn latest_of_kinds(segment: &Segment) -> String {
    format!(
        "SELECT {KEY}, {ENTRY} FROM (SELECT DISTINCT unnest($7::int2[]) AS wanted) k \
         CROSS JOIN LATERAL (SELECT {KEY}, {ENTRY} FROM current \
             WHERE partition = $1 AND branch = $2 AND scope = $3 AND class = $4 \
               AND kind = k.wanted AND name {} $5 ORDER BY name LIMIT $6) c \
         ORDER BY name LIMIT $6",
        operator(segment)
    )
}

/// Two layers, what stands now and what ended, walked from key to key: a name with many versions
/// costs one step. The recursion runs only as far as the page needs, and yields keys in order.
fn at_revision(segment: &Segment) -> String {
    let next = |table: &str, operator: &str, from: &str| {
        format!(
            "(SELECT scope, class, name FROM {table} WHERE partition = $1 AND branch = $2 \
             AND (scope, class, name) {operator} ({from}){} \
             ORDER BY scope, class, name LIMIT 1)",
            end(segment, 9)
        )
    };
    let step = |operator: &str, from: &str| {
        format!(
            "(SELECT scope, class, name FROM ({} UNION ALL {}) s \
             ORDER BY scope, class, name LIMIT 1)",
            next("current", operator, from),
            next("history", operator, from)
        )
    };
    let matches = |table: &str| {
        format!(
            "{table}.partition = $1 AND {table}.branch = $2 AND {table}.scope = w.scope \
             AND {table}.class = w.class AND {table}.name = w.name AND {table}.from_rev <= $7"
        )
    };
    format!(
        "WITH RECURSIVE walk AS ({first} UNION ALL \
             SELECT n.scope, n.class, n.name FROM walk w CROSS JOIN LATERAL {further} n) \
         SELECT $1::int8, $2::int8, w.scope, w.class, w.name, {columns} \
         FROM walk w CROSS JOIN LATERAL (\
             SELECT {current} FROM current c WHERE {of_current} \
             UNION ALL \
             SELECT {ENTRY} FROM (SELECT {history}, h.to_rev FROM history h WHERE {of_history} \
                 ORDER BY h.from_rev DESC LIMIT 1) e WHERE e.to_rev > $7) v \
         WHERE (cardinality($8::int2[]) = 0 OR v.kind = ANY ($8)) LIMIT $6",
        first = step(operator(segment), "$3, $4, $5"),
        further = step(">", "w.scope, w.class, w.name"),
        columns = of_table("v", ENTRY),
        current = of_table("c", ENTRY),
        of_current = matches("c"),
        history = of_table("h", ENTRY),
        of_history = matches("h"),
    )
}
