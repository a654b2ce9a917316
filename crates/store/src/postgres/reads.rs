//! The reads of the interface as statements, and their answers.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use tokio_postgres::Row;

use super::connection::{Statement, values};
use super::rows::{self, CLOCK, ENTRY, KEY, PARTITION, of_table};
use super::{branches, scan};
use crate::codec::unreadable;
use crate::entry::Key;
use crate::error::StoreError;
use crate::partition::{PartitionId, PartitionState};
use crate::read::{Answer, At, Path, Read, Resolved};
use crate::revision::{Revision, StoreTime};
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
    Branch(usize),
    Keys(usize),
    Changes(usize),
    Branches(usize),
    Merges(usize),
    Pinned(usize),
}

impl Plan {
    /// All points and containers of what stands now go into one statement, all points of the past
    /// into another one, all operations into a third, every further read into one of its own.
    pub fn new(at: At, reads: &[Read]) -> Plan {
        let mut singles = Singles::default();
        let mut past = PastPoints::default();
        let mut operations: Vec<String> = Vec::new();
        let mut statements = Vec::new();
        let placed: Vec<Placed> = reads
            .iter()
            .map(|read| {
                let (at, read) = of_the_past(at, read);
                match (at, read) {
                    (At::Latest, Read::Point(key)) => Placed::Single(false, singles.point(key)),
                    (At::Revision(revision), Read::Point(key)) => {
                        Placed::Past(past.add(key, revision))
                    }
                    (_, Read::Container(partition)) => {
                        Placed::Single(true, singles.container(*partition))
                    }
                    (_, Read::Operation(key)) => {
                        operations.push(key.clone());
                        Placed::Operation(key.clone())
                    }
                    (at, other) => Placed::Further(further(at, other, &mut statements)),
                }
            })
            .collect();
        let single_statement = push(&mut statements, singles.statement());
        let past_statement = push(&mut statements, past.statement());
        let operation_statement = statements.len();
        if !operations.is_empty() {
            statements.push(Statement::new(OPERATIONS, values![operations]));
        }
        let answers = placed
            .into_iter()
            .map(|placed| match placed {
                Placed::Single(true, place) => Source::Container {
                    statement: single_statement,
                    place,
                },
                Placed::Single(false, place) => Source::Point {
                    statement: single_statement,
                    place,
                },
                Placed::Past(place) => Source::Point {
                    statement: past_statement,
                    place,
                },
                Placed::Operation(key) => Source::Operation {
                    statement: operation_statement,
                    key,
                },
                Placed::Further(source) => source,
            })
            .collect();
        Plan {
            statements,
            answers,
        }
    }

    pub fn answers(&self, rows: &[Vec<Row>]) -> Result<Vec<Answer>, StoreError> {
        let placed = self.placed(rows)?;
        let sources = self.answers.iter();
        sources.map(|source| source.answer(rows, &placed)).collect()
    }
}

/// The rows that answer points and containers: by statement, whether a container's, and place.
type PlacedRows<'a> = HashMap<(usize, bool, i64), &'a Row>;

impl Plan {
    fn placed<'a>(&self, rows: &'a [Vec<Row>]) -> Result<PlacedRows<'a>, StoreError> {
        let with_places = self.answers.iter().filter_map(|source| match source {
            Source::Point { statement, .. } | Source::Container { statement, .. } => {
                Some(*statement)
            }
            _ => None,
        });
        let with_places: BTreeSet<usize> = with_places.collect();
        let mut placed = HashMap::new();
        for statement in with_places {
            for row in rows.get(statement).into_iter().flatten() {
                let (is_container, place) = (rows::get(row, 0)?, rows::get(row, 1)?);
                placed
                    .entry((statement, is_container, place))
                    .or_insert(row);
            }
        }
        Ok(placed)
    }
}

/// Where a read went.
enum Placed {
    /// Whether it is a container's, and its place among its kind.
    Single(bool, i64),
    Past(i64),
    Operation(String),
    Further(Source),
}

fn of_the_past(at: At, read: &Read) -> (At, &Read) {
    match read {
        Read::Past(revision, read) => of_the_past(At::Revision(*revision), read),
        read => (at, read),
    }
}

fn push(statements: &mut Vec<Statement<'static>>, statement: Option<Statement<'static>>) -> usize {
    statements.extend(statement);
    statements.len().saturating_sub(1)
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
        Read::Branch(partition, branch) => {
            statements.push(branches::row(*partition, *branch));
            Source::Branch(first)
        }
        Read::Touched {
            partition,
            branch,
            from,
            to,
            after,
            limit,
        } => {
            let map = (*partition, *branch);
            statements.push(branches::touched(map, (*from, *to), after.as_ref(), *limit));
            Source::Keys(first)
        }
        Read::Log {
            partition,
            branch,
            before,
            limit,
        } => {
            statements.push(branches::log((*partition, *branch), *before, *limit));
            Source::Changes(first)
        }
        Read::Branches(partition) => {
            statements.push(branches::all(*partition));
            Source::Branches(first)
        }
        Read::PinningMerges(partition) => {
            statements.push(branches::pinning_merges(*partition));
            Source::Merges(first)
        }
        Read::Pinned(partition, state) => {
            statements.push(branches::is_pinned(*partition, *state));
            Source::Pinned(first)
        }
        Read::Point(_) | Read::Container(_) | Read::Operation(_) | Read::Past(..) => Source::Page {
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
const PAST_POINTS: &str = "unnest($1::int8[], $2::int8[], $3::text[], $4::int2[], $5::text[], \
     $6::int8[]) WITH ORDINALITY AS p(partition, branch, scope, class, name, revision, place)";

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
static PAST: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT false, p.place, NULL::int8, NULL::int8, NULL::text, NULL::int2, NULL::text, {} \
         FROM {PAST_POINTS} CROSS JOIN LATERAL (\
             SELECT {} FROM current c WHERE {} AND c.from_rev <= p.revision \
             UNION ALL \
             SELECT {ENTRY} FROM (SELECT {}, h.to_rev FROM history h \
                 WHERE {} AND h.from_rev <= p.revision ORDER BY h.from_rev DESC LIMIT 1) e \
             WHERE e.to_rev > p.revision) v",
        of_table("v", ENTRY),
        of_table("c", ENTRY),
        matches_point("c"),
        of_table("h", ENTRY),
        matches_point("h"),
    )
});

/// Keys as the columns that `unnest` takes.
#[derive(Default)]
struct Keys {
    partitions: Vec<i64>,
    branches: Vec<i64>,
    scopes: Vec<String>,
    classes: Vec<i16>,
    names: Vec<String>,
}

impl Keys {
    /// Its place among them, from 1.
    fn add(&mut self, key: &Key) -> i64 {
        self.partitions.push(key.partition.0);
        self.branches.push(key.branch.0);
        self.scopes.push(key.scope.clone());
        self.classes.push(key.class as i16);
        self.names.push(key.name.clone());
        self.names.len() as i64
    }
}

/// Points and containers of what stands now.
#[derive(Default)]
struct Singles {
    points: Keys,
    containers: Vec<i64>,
}

impl Singles {
    fn point(&mut self, key: &Key) -> i64 {
        self.points.add(key)
    }

    fn container(&mut self, partition: PartitionId) -> i64 {
        self.containers.push(partition.0);
        self.containers.len() as i64
    }

    fn statement(self) -> Option<Statement<'static>> {
        let Singles { points, containers } = self;
        if points.names.is_empty() && containers.is_empty() {
            return None;
        }
        let Keys {
            partitions,
            branches,
            scopes,
            classes,
            names,
        } = points;
        let parameters = values![partitions, branches, scopes, classes, names, containers];
        Some(Statement::new(&**LATEST, parameters))
    }
}

/// Points of what stood, each at a revision of its own.
#[derive(Default)]
struct PastPoints {
    points: Keys,
    revisions: Vec<i64>,
}

impl PastPoints {
    fn add(&mut self, key: &Key, revision: Revision) -> i64 {
        self.revisions.push(revision.0);
        self.points.add(key)
    }

    fn statement(self) -> Option<Statement<'static>> {
        if self.revisions.is_empty() {
            return None;
        }
        let Keys {
            partitions,
            branches,
            scopes,
            classes,
            names,
        } = self.points;
        let parameters = values![partitions, branches, scopes, classes, names, self.revisions];
        Some(Statement::new(&**PAST, parameters))
    }
}

impl Source {
    fn answer(&self, rows: &[Vec<Row>], placed: &PlacedRows<'_>) -> Result<Answer, StoreError> {
        let of = |statement: usize| rows.get(statement).map(Vec::as_slice).unwrap_or_default();
        Ok(match self {
            Source::Point { statement, place } => {
                let row = placed.get(&(*statement, false, *place));
                Answer::Entry(row.map(|row| rows::entry(row, 7)).transpose()?)
            }
            Source::Container { statement, place } => {
                let row = placed.get(&(*statement, true, *place));
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
            Source::Branch(statement) => {
                let row = of(*statement).first();
                Answer::Branch(row.map(branches::found).transpose()?)
            }
            Source::Keys(statement) => {
                let keys = of(*statement).iter().map(|row| rows::key(row, 0));
                Answer::Keys(keys.collect::<Result<_, StoreError>>()?)
            }
            Source::Changes(statement) => {
                let changes = of(*statement).iter().map(rows::change);
                Answer::Changes(changes.collect::<Result<_, StoreError>>()?)
            }
            Source::Branches(statement) => {
                let rows = of(*statement).iter().map(branches::found);
                Answer::Branches(rows.collect::<Result<_, StoreError>>()?)
            }
            Source::Merges(statement) => {
                let rows = of(*statement).iter();
                let merges = rows.map(|row| Ok((rows::key(row, 0)?, rows::entry(row, 5)?)));
                Answer::Entries(merges.collect::<Result<_, StoreError>>()?)
            }
            Source::Pinned(statement) => Answer::Pinned(!of(*statement).is_empty()),
        })
    }
}

/// Behind the place, four entries and a partition.
const HEAD_COLUMN: usize = 1 + 4 * 5 + 7;
const CLOCK_COLUMN: usize = HEAD_COLUMN + 1;
const REFERENCES_COLUMN: usize = CLOCK_COLUMN + 1;

static RESOLVE: LazyLock<String> = LazyLock::new(|| {
    let step = |table: &str, parent: &str, name: &str| {
        format!(
            "LEFT JOIN current {table} ON {table}.partition = {parent} AND {table}.branch = 0 \
             AND {table}.scope = '' AND {table}.class = 1 AND {table}.name = p.{name} "
        )
    };
    format!(
        "SELECT p.place, {}, {}, {}, {}, {}, coalesce(b.head, 0), {CLOCK}, \
         EXISTS (SELECT 1 FROM current t WHERE t.partition = d.object AND t.branch = 0 \
             AND t.scope = '' AND t.class = 4) \
         FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::int2[], $6::text[]) \
             WITH ORDINALITY AS p(metalake, catalog, database, scope, class, leaf, place) \
         {}{}{}\
         LEFT JOIN partition r ON r.id = d.object \
         LEFT JOIN branch b ON b.partition = d.object AND b.branch = 0 \
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
            main: Revision(rows::get(row, HEAD_COLUMN)?),
            now: StoreTime(rows::get(row, CLOCK_COLUMN)?),
            has_references: rows::get(row, REFERENCES_COLUMN)?,
        };
    }
    Ok(all)
}
