//! What the figures were measured on.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::time::Instant;

use crate::failure::Failure;
use crate::numbers::Times;
use crate::table::{Output, Table, number};

/// Prints the machine's size, and PostgreSQL's version if one takes part.
pub async fn print(output: Output, postgres: Option<&str>) -> Result<(), Failure> {
    let mut table = Table::new("machine", &["what", "size"]);
    let mut row = |what: &str, size: String| table.row([what.to_owned(), size]);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    row("cores", cores.to_string());
    row("processor", field("/proc/cpuinfo", "model name"));
    row("memory", field("/proc/meminfo", "MemTotal"));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease");
    row("kernel", kernel.unwrap_or_default().trim().to_owned());
    row("load before", load());
    row("flush of 8 kB, median ms", flush()?);
    row("SQLite", rusqlite::version().to_owned());
    if let Some(url) = postgres {
        let client = crate::database::connect(url).await?;
        let shown = client
            .query_one(
                "SELECT current_setting('server_version'), current_setting('fsync'), \
                 current_setting('synchronous_commit')",
                &[],
            )
            .await?;
        let cell = |index: usize| shown.get::<_, String>(index);
        row("PostgreSQL", cell(0));
        row("its fsync", cell(1));
        row("its synchronous_commit", cell(2));
    }
    let build = if cfg!(debug_assertions) {
        "debug: not for figures"
    } else {
        "release"
    };
    row("build", build.to_owned());
    table.print(output);
    Ok(())
}

/// How long it takes until 8 kB that are written over others are on the disk, right now: what a
/// commit alone can't go below.
fn flush() -> Result<String, Failure> {
    const FLUSHES: usize = 50;
    let mut file = tempfile::tempfile()?;
    let block = [7_u8; 8192];
    let mut times = Times::default();
    for _ in 0..=FLUSHES {
        let started = Instant::now();
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&block)?;
        file.sync_data()?;
        times.add(started.elapsed());
    }
    Ok(number(times.percentile(0.5)))
}

fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn field(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_once(':'));
    value
        .map_or("unknown", |(_, value)| value.trim())
        .to_owned()
}
