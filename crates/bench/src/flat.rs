//! Flatness: what one table or namespace costs among many, against the same among few, and what a
//! table with many snapshots costs when it isn't loaded in full. Two servers on two stores take
//! turns.

use std::time::{Duration, Instant};

use http::HeaderValue;
use tempfile::TempDir;

use crate::database::Database;
use crate::failure::Failure;
use crate::fill::{self, Fill};
use crate::http::{Client, Target, appends, new_namespace, new_table, set_property};
use crate::numbers::median;
use crate::server::{Binary, Server};
use crate::table::{Output, Table, number, progress, verdict};
use crate::{machine, process, server};

/// Options of `flat`.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    binary: Binary,
    /// On a PostgreSQL in which databases may be made, not on SQLite.
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
    /// Tables, and namespaces, of the small store.
    #[arg(long, default_value_t = 100)]
    few: usize,
    /// Of the large one.
    #[arg(long, default_value_t = 100_000)]
    many: usize,
    /// Snapshots of the long table; the short one has 10.
    #[arg(long, default_value_t = 10_000)]
    snapshots: i64,
    /// How long each comparison runs.
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
}

const BAR: f64 = 1.25;
const NAMESPACE: &str = "db";
/// Stands in the middle of the others.
const PROBE: &str = "table_000050_probe";
const SHORT_SNAPSHOTS: i64 = 10;
const PAGE: usize = 100;
/// Requests before the other side has its turn.
const STRETCH: u32 = 50;
/// Requests whose statements and bytes are counted.
const COUNTED: u32 = 40;

/// A server on a filled store.
struct Side {
    server: Server,
    target: Target,
    client: Client,
    folder: TempDir,
    database: Option<Database>,
}

/// A request that is asked again and again.
#[derive(Clone)]
enum Question {
    Get(String),
    Unless(String, HeaderValue),
    SetProperty(String),
}

/// What a request costs without looking at a clock.
struct Counts {
    statements: f64,
    bytes_read: f64,
    bytes_answered: f64,
}

impl Side {
    async fn prepare(options: &Options, size: usize) -> Result<Side, Failure> {
        let folder = server::folder()?;
        let database = match &options.postgres {
            Some(url) => Some(Database::create(url).await?),
            None => None,
        };
        let store = database.as_ref().map(Database::url);
        let server = Server::start(&options.binary, folder.path(), store.as_deref()).await?;
        let target = Target::find(&server.iceberg(), &[], "lake", None).await?;
        let mut client = target.connect().await?;
        client
            .post(&target.namespaces(), new_namespace(NAMESPACE))
            .await?
            .json()?;
        for (name, snapshots) in [
            (PROBE, 0),
            ("short", SHORT_SNAPSHOTS),
            ("long", options.snapshots),
        ] {
            client
                .post(&target.tables(NAMESPACE), new_table(name))
                .await?
                .json()?;
            if snapshots > 0 {
                let path = target.table(NAMESPACE, name);
                client.post(&path, appends(None, snapshots)).await?.json()?;
            }
        }
        server.stop().await?;

        let embedded = format!("sqlite:{}", folder.path().join("catalog.db").display());
        Fill {
            store: store.clone().unwrap_or(embedded),
            namespace: NAMESPACE,
            template: PROBE,
            tables: size,
            namespaces: size,
        }
        .run()
        .await?;
        let server = Server::start(&options.binary, folder.path(), store.as_deref()).await?;
        let target = Target::find(&server.iceberg(), &[], "lake", None).await?;
        let client = target.connect().await?;
        Ok(Side {
            server,
            target,
            client,
            folder,
            database,
        })
    }

    async fn remove(self) -> Result<(), Failure> {
        self.server.stop().await?;
        if let Some(database) = self.database {
            database.remove().await?;
        }
        Ok(self.folder.close()?)
    }

    async fn ask(&mut self, question: &Question) -> Result<usize, Failure> {
        let answer = match question {
            Question::Get(path) => self.client.get(path).await?,
            Question::Unless(path, etag) => self.client.get_unless(path, etag).await?,
            Question::SetProperty(path) => {
                let body = set_property(1).to_string().into();
                self.client.post(path, body).await?
            }
        };
        match answer.status.as_u16() {
            200..=304 => Ok(answer.body.len()),
            status => Err(Failure::told(format!("answered {status}"))),
        }
    }

    async fn stretch(&mut self, question: &Question) -> Result<f64, Failure> {
        let started = Instant::now();
        for _ in 0..STRETCH {
            self.ask(question).await?;
        }
        Ok(started.elapsed().as_secs_f64())
    }

    async fn count(&mut self, question: &Question) -> Result<Counts, Failure> {
        self.ask(question).await?;
        let before = self.counters().await?;
        let mut bytes_answered = 0;
        for _ in 0..COUNTED {
            bytes_answered += self.ask(question).await?;
        }
        let after = self.counters().await?;
        let each = f64::from(COUNTED);
        Ok(Counts {
            statements: (after.0 - before.0) / each,
            bytes_read: (after.1 - before.1) / each,
            bytes_answered: bytes_answered as f64 / each,
        })
    }

    /// Statements sent and bytes read from files so far.
    async fn counters(&mut self) -> Result<(f64, f64), Failure> {
        let mut client = Client::new(&self.server.address, &[]).await?;
        let metrics = client.get("/metrics").await?;
        let text = String::from_utf8_lossy(&metrics.body);
        let line = text.lines().find_map(|line| {
            let value = line.strip_prefix("anabranch_store_statements_total ")?;
            value.parse::<f64>().ok()
        });
        let statements = line.ok_or_else(|| Failure::told("the metrics count no statements"))?;
        let read = process::bytes_read(self.server.pid()?).unwrap_or_default();
        Ok((statements, read as f64))
    }

    /// Tokens of pages from the start to the end of the listing.
    async fn tokens(&mut self) -> Result<Vec<String>, Failure> {
        let mut tokens = vec![String::new()];
        loop {
            let token = tokens.last().cloned().unwrap_or_default();
            let path = self.page(&token, 1000);
            let page = self.client.get(&path).await?.json()?;
            match page["next-page-token"].as_str() {
                Some(next) => tokens.push(next.to_owned()),
                None => return Ok(tokens),
            }
        }
    }

    fn page(&self, token: &str, size: usize) -> String {
        let tables = self.target.tables(NAMESPACE);
        format!("{tables}?pageToken={token}&pageSize={size}")
    }

    async fn etag(&mut self, path: &str) -> Result<HeaderValue, Failure> {
        let answer = self.client.get(path).await?;
        answer
            .etag
            .ok_or_else(|| Failure::told("a loaded table has no ETag"))
    }
}

/// Runs the measurement and prints its table.
pub async fn run(options: &Options, output: Output) -> Result<(), Failure> {
    machine::print(output, options.postgres.as_deref()).await?;
    progress(&format!("filling a store with {} tables", options.few));
    let mut small = Side::prepare(options, options.few).await?;
    progress(&format!("filling a store with {} tables", options.many));
    let mut large = Side::prepare(options, options.many).await?;
    let mut report = Report::new(options);
    let (probe, namespace) = (
        small.target.table(NAMESPACE, PROBE),
        format!(
            "{}/{}",
            small.target.namespaces(),
            fill::namespace(options.few / 2)
        ),
    );
    let etag = small.etag(&probe).await?;
    let other = large.etag(&probe).await?;
    let same = |question: Question| (question.clone(), question);
    let mut comparisons = vec![
        ("load", same(Question::Get(probe.clone()))),
        (
            "load, 304",
            (
                Question::Unless(probe.clone(), etag),
                Question::Unless(probe.clone(), other),
            ),
        ),
        ("load a namespace", same(Question::Get(namespace))),
        ("commit", same(Question::SetProperty(probe))),
    ];
    let tokens = large.tokens().await?;
    let first = small.page("", PAGE);
    // The last page may be short, so the deepest one is the one before it.
    let deepest = tokens.len().saturating_sub(2);
    for (name, place) in [
        ("list, first page", 0),
        ("list, in the middle", deepest / 2),
        ("list, at the end", deepest),
    ] {
        let page = Question::Get(large.page(&tokens[place], PAGE));
        comparisons.push((name, (Question::Get(first.clone()), page)));
    }
    for (name, (few, many)) in comparisons {
        progress(name);
        let counts = (small.count(&few).await?, large.count(&many).await?);
        let started = Instant::now();
        let mut ratios = Vec::new();
        while started.elapsed() < report.turn || ratios.len() < 3 {
            let time = small.stretch(&few).await?;
            ratios.push(large.stretch(&many).await? / time);
        }
        report.row(name, &counts, &ratios);
    }

    let (short, long) = (
        small.target.table(NAMESPACE, "short"),
        small.target.table(NAMESPACE, "long"),
    );
    let (short_tag, long_tag) = (small.etag(&short).await?, small.etag(&long).await?);
    for (name, few, many) in [
        (
            "long table, 304",
            Question::Unless(short.clone(), short_tag),
            Question::Unless(long.clone(), long_tag),
        ),
        (
            "long table, refs",
            Question::Get(format!("{short}?snapshots=refs")),
            Question::Get(format!("{long}?snapshots=refs")),
        ),
    ] {
        progress(name);
        let counts = (small.count(&few).await?, small.count(&many).await?);
        let started = Instant::now();
        let mut ratios = Vec::new();
        while started.elapsed() < report.turn || ratios.len() < 3 {
            let time = small.stretch(&few).await?;
            ratios.push(small.stretch(&many).await? / time);
        }
        report.row(name, &counts, &ratios);
    }
    report.table.print(output);
    small.remove().await?;
    large.remove().await
}

struct Report {
    table: Table,
    turn: Duration,
}

impl Report {
    fn new(options: &Options) -> Report {
        let engine = if options.postgres.is_some() {
            "postgres"
        } else {
            "sqlite"
        };
        let title = format!(
            "flat, {engine}: one of {} against one of {}; {} snapshots against {SHORT_SNAPSHOTS}",
            options.many, options.few, options.snapshots
        );
        let columns = [
            "what",
            "bar",
            "time",
            "statements",
            "bytes read",
            "answered",
            "",
        ];
        let mut table = Table::new(title, &columns);
        table.note("time: ratio, median of turns; SQL: statements; counts are few → many");
        table.note("bytes read: from files, by the server; answered: bytes of the body");
        Report {
            table,
            turn: Duration::from_secs_f64(options.seconds),
        }
    }

    fn row(&mut self, what: &str, (few, many): &(Counts, Counts), ratios: &[f64]) {
        let pair = |few: f64, many: f64| match few == many {
            true => number(few),
            false => format!("{}→{}", number(few), number(many)),
        };
        let ratio = median(ratios.iter().copied());
        self.table.row([
            what.to_owned(),
            format!("≤ {BAR}"),
            number(ratio),
            pair(few.statements, many.statements),
            pair(few.bytes_read, many.bytes_read),
            pair(few.bytes_answered, many.bytes_answered),
            verdict(ratio <= BAR),
        ]);
    }
}
