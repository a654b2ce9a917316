//! What PostgreSQL makes of the statements: a page costs the same wherever it lies, and whatever
//! else the database holds.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use tokio_postgres::types::ToSql;

use super::connection::Statement;
use super::reads::Plan;
use super::{Connections, PostgresOptions, log};
use crate::entry::{BranchId, Class, Key, Kind};
use crate::partition::{PartitionId, PartitionKind};
use crate::read::{At, FeedPosition, Read};
use crate::revision::Revision;
use crate::testing::postgres_store;

const ROWS: i64 = 30_000;
/// Every row began before it and still stands.
const NOW: At = At::Revision(Revision(1_000_000));

/// Names `t0000001` and so on: every tenth thousand a view, each with one ended version, the fifth
/// with many; and a log as long.
const FILL: &str = "
    INSERT INTO current SELECT $P, 0, '', 2, 't' || lpad(i::text, 7, '0'),
        CASE WHEN i % 10000 = 0 THEN 11 ELSE 10 END, i, 2, 100000 + i, '{}'
        FROM generate_series(1, $N) i;
    INSERT INTO history SELECT $P, 0, '', 2, 't' || lpad(i::text, 7, '0'), i, i + 1, 10, i, 1, '{}'
        FROM generate_series(1, $N) i;
    INSERT INTO history SELECT $P, 0, '', 2, 't0000005', 100 + i, 101 + i, 10, 5, 1, '{}'
        FROM generate_series(1, $N / 2) i;
    INSERT INTO change SELECT $P, i, 0, gen_random_uuid(), 1, 'p', 1, 0, '', 2, 't', 10, 1
        FROM generate_series(1, $N) i;
    VACUUM ANALYZE";

struct Explained {
    pages: i64,
    plan: String,
}

async fn explain(connections: &Connections, statement: &Statement<'_>) -> Explained {
    let connection = connections.get().await.unwrap();
    let client = connection.client().unwrap();
    let sql = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {}", statement.sql);
    let parameters: Vec<&(dyn ToSql + Sync)> = statement
        .parameters
        .iter()
        .map(|value| value.as_ref() as &(dyn ToSql + Sync))
        .collect();
    let row = client.query_one(&sql, &parameters).await.unwrap();
    let Json(plan) = row.get(0);
    let top = &plan[0]["Plan"];
    let pages = ["Shared Hit Blocks", "Shared Read Blocks"].map(|name| top[name].as_i64().unwrap());
    connection.give_back();
    Explained {
        pages: pages.iter().sum(),
        plan: serde_json::to_string_pretty(&plan).unwrap(),
    }
}

/// The driver's own JSON support isn't compiled in.
struct Json(Value);

impl tokio_postgres::types::FromSql<'_> for Json {
    fn from_sql(
        _: &tokio_postgres::types::Type,
        raw: &[u8],
    ) -> Result<Json, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Json(serde_json::from_slice(raw)?))
    }

    fn accepts(sql_type: &tokio_postgres::types::Type) -> bool {
        *sql_type == tokio_postgres::types::Type::JSON
    }
}

fn database() -> PartitionId {
    PartitionId::new(PartitionKind::Database, 1)
}

fn range(kinds: Vec<Kind>, after: &str) -> Read {
    Read::Range {
        partition: database(),
        branch: BranchId::MAIN,
        scope: String::new(),
        class: Class::Table,
        kinds,
        after: Some(after.to_owned()),
        limit: 50,
    }
}

fn under(after: &str) -> Read {
    Read::Under {
        partition: database(),
        branch: BranchId::MAIN,
        scope: String::new(),
        after: Some((String::new(), Class::Table, after.to_owned())),
        limit: 50,
    }
}

fn point(name: &str) -> Read {
    Read::Point(Key {
        partition: database(),
        branch: BranchId::MAIN,
        scope: String::new(),
        class: Class::Table,
        name: name.to_owned(),
    })
}

fn touched(from: i64, to: i64) -> Read {
    Read::Touched {
        partition: database(),
        branch: BranchId::MAIN,
        from: Revision(from),
        to: Revision(to),
        after: None,
        limit: 10_000,
    }
}

#[tokio::test]
async fn a_page_costs_the_same_wherever_it_lies() {
    let (store, test_database) = postgres_store(super::LockMode::Pessimistic).await;
    drop(store);
    let fill = FILL
        .replace("$P", &database().0.to_string())
        .replace("$N", &ROWS.to_string());
    let client = test_database.client().await;
    for statement in fill.split(';') {
        client.batch_execute(statement).await.unwrap();
    }
    let options = PostgresOptions::default();
    let (config, ..) = options.resolve(&test_database.url()).unwrap();
    let connections = Connections::new(config, 1, options.wait).unwrap();
    let position = |revision| FeedPosition {
        partition: database(),
        revision: Revision(revision),
        place: 0,
        commit: None,
    };
    let feed = |revision| {
        let [_, changes] = log::feed(&[position(revision)], 50);
        changes
    };
    let read = |at, read| Plan::new(at, &[read]).statements.remove(0);
    let views = || vec![Kind::IcebergView];
    // The first names have a neighbour with thousands of ended versions.
    let (early, late) = ("t0000001", "t0029000");
    let cases = [
        (
            "range",
            read(At::Latest, range(vec![], early)),
            read(At::Latest, range(vec![], late)),
            30,
        ),
        (
            "views",
            read(At::Latest, range(views(), early)),
            read(At::Latest, range(views(), late)),
            30,
        ),
        (
            "under",
            read(At::Latest, under(early)),
            read(At::Latest, under(late)),
            30,
        ),
        (
            "range at",
            read(NOW, range(vec![], early)),
            read(NOW, range(vec![], late)),
            1500,
        ),
        (
            "under at",
            read(NOW, under(early)),
            read(NOW, under(late)),
            1500,
        ),
        (
            "point",
            read(At::Latest, point("t0000005")),
            read(At::Latest, point(late)),
            10,
        ),
        (
            "point at",
            read(NOW, point("t0000005")),
            read(NOW, point(late)),
            20,
        ),
        ("feed", feed(1), feed(29_000), 30),
        (
            "touched",
            read(At::Latest, touched(1, 12)),
            read(At::Latest, touched(29_980, 29_999)),
            40,
        ),
    ];
    for (what, early, late, bar) in &cases {
        for statement in [early, late] {
            let explained = explain(&connections, statement).await;
            let Explained { pages, plan } = &explained;
            assert!(!plan.contains("Seq Scan"), "{what}: {plan}");
            assert!(pages <= bar, "{what} reads {pages} pages: {plan}");
        }
    }
    drop(connections);
    test_database.remove().await;
}
