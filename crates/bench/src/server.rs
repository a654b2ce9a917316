//! The program itself, started for a measurement on folders and databases of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::failure::Failure;

const STARTS_WITHIN: Duration = Duration::from_secs(60);
const STOPS_WITHIN: Duration = Duration::from_secs(60);

/// Which program is measured.
#[derive(Clone, Debug, clap::Args)]
pub struct Binary {
    /// The program to start [default: `anabranch` beside this one].
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

impl Binary {
    fn path(&self) -> Result<PathBuf, Failure> {
        let beside = || Some(std::env::current_exe().ok()?.parent()?.join("anabranch"));
        let path = self.binary.clone().or_else(beside).unwrap_or_default();
        if path.is_file() {
            return Ok(path);
        }
        Err(Failure::told(format!(
            "there is no program {}: build it with `cargo build --release -p anabranch`, or name \
             it with --binary",
            path.display()
        )))
    }
}

/// A running server. It ends with this.
pub struct Server {
    child: Child,
    /// Where it listens, as `http://address`.
    pub address: String,
    /// From the start of the process until it answered that it is ready.
    pub ready_after: Duration,
}

impl Server {
    /// Starts on this data folder, with the embedded store or the given one.
    pub async fn start(
        binary: &Binary,
        folder: &Path,
        store: Option<&str>,
    ) -> Result<Server, Failure> {
        let program = binary.path()?;
        let log = File::create(folder.join("server.log"))?;
        let mut command = Command::new(program);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(folder)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true);
        if let Some(store) = store {
            command.args(["--store", store]);
        }
        let started = Instant::now();
        let mut child = command.spawn()?;
        let no_start = || {
            let log = folder.join("server.log");
            let log = std::fs::read_to_string(log).unwrap_or_default();
            Failure::told(format!("the server did not start: {log}"))
        };
        let output = child.stdout.take().ok_or_else(no_start)?;
        let mut lines = BufReader::new(output).lines();
        let first = tokio::time::timeout(STARTS_WITHIN, lines.next_line()).await;
        let first = first.map_err(|_| no_start())??.ok_or_else(no_start)?;
        let address = first.rsplit(' ').next().unwrap_or_default().to_owned();
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let mut server = Server {
            child,
            address,
            ready_after: Duration::ZERO,
        };
        let mut client = crate::http::Client::new(&server.address, &[]).await?;
        while client.get("/health/ready").await?.status != 200 {
            if started.elapsed() > STARTS_WITHIN {
                return Err(no_start());
            }
        }
        server.ready_after = started.elapsed();
        Ok(server)
    }

    /// The process, while it runs.
    pub fn pid(&self) -> Result<u32, Failure> {
        self.child
            .id()
            .ok_or_else(|| Failure::told("the server has ended"))
    }

    /// The base of its Iceberg routes.
    pub fn iceberg(&self) -> String {
        format!("{}/iceberg", self.address)
    }

    /// Stops it as an operator does, and waits until its store is closed.
    pub async fn stop(mut self) -> Result<(), Failure> {
        let pid = self.pid()?.to_string();
        Command::new("kill").args(["-TERM", &pid]).status().await?;
        let ended = tokio::time::timeout(STOPS_WITHIN, self.child.wait()).await;
        ended.map_err(|_| Failure::told("the server does not stop"))??;
        Ok(())
    }
}

/// A folder that goes away at the end.
pub fn folder() -> Result<TempDir, Failure> {
    Ok(tempfile::Builder::new()
        .prefix("anabranch-bench-")
        .tempdir()?)
}
