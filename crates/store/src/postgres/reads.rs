//! The reads of the interface as statements, and their answers.

use std::sync::LazyLock;

use tokio_postgres::Row;

use super::connection::{Statement, values};
use super::rows::{self, CLOCK, ENTRY, KEY, PARTITION, of_table};
use super::scan;
use crate::codec::unreadable;
use crate::entry::Key;
use crate::error::StoreError;
use crate::partition::{PartitionId, PartitionState};
use crate::read::{Answer, At, Path, Read, Resolved};
use crate::revision::StoreTime;
use crate::segment::Segment;

/// The reads of one call as statements, and how to find each answer.
pub(super) struct Plan {
    pub statements: Vec<Statement<'static>>,
    answers: Vec<Source>,
}

/// Where the answer to one read is: the statement, and what in its rows.
enum Source {
    Point {
        statement: usize,
        place: i64,
    },
    Container {
        statement: usize,
        place: i64,
    },
    Page {
        statements: std::ops::Range<usize>,
        limit: usize,
    },
    Partition(usize),
    Children(usize),
    Operation {
        statement: usize,
        key: String,
    },
}

impl Plan {
    /// All points and containers go into one statement, all operations into another one, every
    /// further read into one of its own.
    pub fn new(at: At, reads: &[Read]) -> Plan {
        let mut statements = Vec::new();
        let mut points: Vec<&Key> = Vec::new();
        let mut containers: Vec<PartitionId> = Vec::new();
        if reads.iter().any(is_single) {
            for read in reads {
                match read {
                    Read::Point(key) => points.push(key),
                    Read::Container(partition) => containers.push(*partition),
                    _ => {}
                }
            }
            statements.push(singles(at, &points, &containers));
        }
        let operations: Vec<String> = reads
            .iter()
            .filter_map(|read| match read {
                Read::Operation(key) => Some(key.clone()),
                _ => None,
            })
            .collect();
        let operation_statement = statements.len();
        if !operations.is_empty() {
            statements.push(Statement::new(OPERATIONS, values![operations]));
        }
        let (mut point, mut container) = (0, 0);
        let answers = reads
            .iter()
            .map(|read| match read {
                Read::Point(_) => {
                    point += 1;
                    Source::Point {
                        statement: 0,
                        place: point,
                    }
                }
                Read::Container(_) => {
                    container += 1;
                    Source::Container {
                        statement: 0,
                        place: container,
                    }
                }
                Read::Operation(key) => Source::Operation {
                    statement: operation_statement,
                    key: key.clone(),
                },
                other => further(at, other, &mut statements),
            })
            .collect();
        Plan {
            statements,
            answers,
        }
    }

    pub fn answers(&self, rows: &[Vec<Row>]) -> Result<Vec<Answer>, StoreError> {
        let sources = self.answers.iter();
        sources.map(|source| source.answer(rows)).collect()
    }
}

fn is_single(read: &Read) -> bool {
    matches!(read, Read::Point(_) | Read::Container(_))
}

fn further(at: At, read: &Read, statements: &mut Vec<Statement<'static>>) -> Source {
    let first = statements.len();
    match read {
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
            statements.push(scan::page(at, *partition, *branch, &segment, kinds, *limit));
            Source::Page {
                statements: first..statements.len(),
                limit: *limit as usize,
            }
        }
        Read::Under {
            partition,
            branch,
            scope,
            after,
            limit,
        } => {
            for segment in Segment::under(scope, after.as_ref()) {
                statements.push(scan::page(at, *partition, *branch, &segment, &[], *limit));
            }
            Source::Page {
                statements: first..statements.len(),
                limit: *limit as usize,
            }
        }
        Read::Partition(partition) => {
            statements.push(Statement::new(&**PARTITION_ROW, values![partition.0]));
            Source::Partition(first)
        }
        Read::Children(partition) => {
            statements.push(Statement::new(
                "SELECT id FROM partition WHERE parent = $1 AND state = $2 AND id <> $1 \
                 ORDER BY id",
                values![partition.0, PartitionState::Live as i16],
            ));
            Source::Children(first)
        }
        Read::Point(_) | Read::Container(_) | Read::Operation(_) => Source::Page {
            statements: first..first,
            limit: 0,
        },
    }
}

static PARTITION_ROW: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {PARTITION} FROM partition WHERE id = $1"));

const OPERATIONS: &str = "SELECT key, principal, fingerprint, state, answer, at, expires \
     FROM operation WHERE key = ANY($1)";

const POINTS: &str = "unnest($1::int8[], $2::int8[], $3::text[], $4::int2[], $5::text[]) \
     WITH ORDINALITY AS p(partition, branch, scope, class, name, place)";

fn matches_point(table: &str) -> String {
    format!(
        "{table}.partition = p.partition AND {table}.branch = p.branch \
         AND {table}.scope = p.scope AND {table}.class = p.class AND {table}.name = p.name"
    )
}

// A row: whether it answers a container, the place among its kind, the key if so, the entry.
static CONTAINERS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT true, q.place, {}, {} FROM unnest($6::int8[]) WITH ORDINALITY AS q(id, place) \
         JOIN current c ON c.branch = 0 AND c.object = q.id",
        of_table("c", KEY),
        of_table("c", ENTRY)
    )
});
static LATEST: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT false, p.place, NULL::int8, NULL::int8, NULL::text, NULL::int2, NULL::text, {} \
         FROM {POINTS} JOIN current c ON {} UNION ALL {}",
        of_table("c", ENTRY),
        matches_point("c"),
        *CONTAINERS
    )
});
static AT_REVISION: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT false, p.place, NULL::int8, NULL::int8, NULL::text, NULL::int2, NULL::text, {} \
         FROM {POINTS} CROSS JOIN LATERAL (\
             SELECT {} FROM current c WHERE {} AND c.from_rev <= $7 \
             UNION ALL \
             SELECT {ENTRY} FROM (SELECT {}, h.to_rev FROM history h \
                 WHERE {} AND h.from_rev <= $7 ORDER BY h.from_rev DESC LIMIT 1) e \
             WHERE e.to_rev > $7) v \
         UNION ALL {}",
        of_table("v", ENTRY),
        of_table("c", ENTRY),
        matches_point("c"),
        of_table("h", ENTRY),
        matches_point("h"),
        *CONTAINERS
    )
});

fn singles(at: At, points: &[&Key], containers: &[PartitionId]) -> Statement<'static> {
    let partitions: Vec<i64> = points.iter().map(|key| key.partition.0).collect();
    let branches: Vec<i64> = points.iter().map(|key| key.branch.0).collect();
    let scopes: Vec<String> = points.iter().map(|key| key.scope.clone()).collect();
    let classes: Vec<i16> = points.iter().map(|key| key.class as i16).collect();
    let names: Vec<String> = points.iter().map(|key| key.name.clone()).collect();
    let objects: Vec<i64> = containers.iter().map(|partition| partition.0).collect();
    let mut parameters = values![partitions, branches, scopes, classes, names, objects];
    match at {
        At::Latest => Statement::new(&**LATEST, parameters),
        At::Revision(revision) => {
            parameters.extend(values![revision.0]);
            Statement::new(&**AT_REVISION, parameters)
        }
    }
}

impl Source {
    fn answer(&self, rows: &[Vec<Row>]) -> Result<Answer, StoreError> {
        let of = |statement: usize| rows.get(statement).map(Vec::as_slice).unwrap_or_default();
        Ok(match self {
            Source::Point { statement, place } => {
                let row = find(of(*statement), false, *place)?;
                Answer::Entry(row.map(|row| rows::entry(row, 7)).transpose()?)
            }
            Source::Container { statement, place } => {
                let row = find(of(*statement), true, *place)?;
                let found = row.map(|row| Ok((rows::key(row, 2)?, rows::entry(row, 7)?)));
                Answer::Entries(found.into_iter().collect::<Result<_, StoreError>>()?)
            }
            Source::Page { statements, limit } => {
                let all = statements.clone().flat_map(of);
                let page = all.take(*limit);
                let entries = page.map(|row| Ok((rows::key(row, 0)?, rows::entry(row, 5)?)));
                Answer::Entries(entries.collect::<Result<_, StoreError>>()?)
            }
            Source::Partition(statement) => {
                let row = of(*statement).first();
                Answer::Partition(row.map(|row| rows::partition(row, 0)).transpose()?)
            }
            Source::Children(statement) => {
                let ids = of(*statement).iter();
                let ids = ids.map(|row| rows::get(row, 0).map(PartitionId));
                Answer::Partitions(ids.collect::<Result<_, StoreError>>()?)
            }
            Source::Operation { statement, key } => {
                let mut found = None;
                for row in of(*statement) {
                    if rows::get::<&str>(row, 0)? == key {
                        found = Some(rows::operation(row)?);
                    }
                }
                Answer::Operation(found)
            }
        })
    }
}

fn find(rows: &[Row], is_container: bool, place: i64) -> Result<Option<&Row>, StoreError> {
    for row in rows {
        if rows::get::<bool>(row, 0)? == is_container && rows::get::<i64>(row, 1)? == place {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// Behind the place, four entries and a partition.
const CLOCK_COLUMN: usize = 1 + 4 * 5 + 7;

static RESOLVE: LazyLock<String> = LazyLock::new(|| {
    let step = |table: &str, parent: &str, name: &str| {
        format!(
            "LEFT JOIN current {table} ON {table}.partition = {parent} AND {table}.branch = 0 \
             AND {table}.scope = '' AND {table}.class = 1 AND {table}.name = p.{name} "
        )
    };
    format!(
        "SELECT p.place, {}, {}, {}, {}, {}, {CLOCK} \
         FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::int2[], $6::text[]) \
             WITH ORDINALITY AS p(metalake, catalog, database, scope, class, leaf, place) \
         {}{}{}\
         LEFT JOIN partition r ON r.id = d.object \
         LEFT JOIN current l ON l.partition = d.object AND l.branch = 0 AND l.scope = p.scope \
             AND l.class = p.class AND l.name = p.leaf",
        of_table("m", ENTRY),
        of_table("c", ENTRY),
        of_table("d", ENTRY),
        of_table("l", ENTRY),
        of_table("r", PARTITION),
        step("m", &PartitionId::ROOT.0.to_string(), "metalake"),
        step("c", "m.object", "catalog"),
        step("d", "c.object", "database"),
    )
});

/// One statement for any number of paths.
pub(super) fn resolve(paths: &[Path]) -> Statement<'_> {
    let metalakes: Vec<&str> = paths.iter().map(|path| path.metalake.as_str()).collect();
    let catalogs: Vec<Option<&str>> = paths.iter().map(|path| path.catalog.as_deref()).collect();
    let databases: Vec<Option<&str>> = paths.iter().map(|path| path.database.as_deref()).collect();
    let leaves = || paths.iter().map(|path| path.leaf.as_ref());
    let scopes: Vec<Option<&str>> = leaves()
        .map(|leaf| leaf.map(|leaf| leaf.scope.as_str()))
        .collect();
    let classes: Vec<Option<i16>> = leaves()
        .map(|leaf| leaf.map(|leaf| leaf.class as i16))
        .collect();
    let names: Vec<Option<&str>> = leaves()
        .map(|leaf| leaf.map(|leaf| leaf.name.as_str()))
        .collect();
    Statement::new(
        &**RESOLVE,
        values![metalakes, catalogs, databases, scopes, classes, names],
    )
}

pub(super) fn resolved(rows: &[Row], paths: usize) -> Result<Vec<Resolved>, StoreError> {
    let mut all = vec![Resolved::default(); paths];
    for row in rows {
        let place: i64 = rows::get(row, 0)?;
        let slot = usize::try_from(place - 1)
            .ok()
            .and_then(|index| all.get_mut(index))
            .ok_or_else(|| unreadable("place", place))?;
        *slot = Resolved {
            metalake: rows::optional_entry(row, 1)?,
            catalog: rows::optional_entry(row, 6)?,
            database: rows::optional_entry(row, 11)?,
            leaf: rows::optional_entry(row, 16)?,
            partition: match rows::get::<Option<i64>>(row, 21)? {
                Some(_) => Some(rows::partition(row, 21)?),
                None => None,
            },
            now: StoreTime(rows::get(row, CLOCK_COLUMN)?),
        };
    }
    Ok(all)
}
