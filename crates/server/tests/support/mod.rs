//! The program under test, as its users start it.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use reqwest::{Client, Method};
use serde_json::Value;
use tempfile::TempDir;

/// A folder in which the program runs, with nothing of this process's environment.
pub struct Place {
    folder: TempDir,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Ended {
    /// The one line on stderr of a program that couldn't do its work.
    pub fn line(&self) -> &str {
        assert_eq!(self.err.lines().count(), 1, "{self:?}");
        self.err.trim_end()
    }
}

/// A server that is ended, by its id, when the test ends.
pub struct Server {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    pub url: String,
    pub first_line: String,
}

impl Place {
    pub fn new() -> Place {
        Place {
            folder: TempDir::new().expect("a folder"),
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.args(arguments).env_clear().current_dir(self.path());
        command.stdin(Stdio::null());
        command
    }

    /// Runs to the end.
    pub fn run(&self, arguments: &[&str]) -> Ended {
        ended(self.command(arguments))
    }

    /// Starts a server on a free port and waits until it listens.
    pub fn serve(&self, arguments: &[&str]) -> Server {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.path().join("log"))
            .expect("a log");
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut child = command
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("a process");
        let mut out = BufReader::new(child.stdout.take().expect("its output"));
        let mut first_line = String::new();
        out.read_line(&mut first_line).expect("a line");
        let url = first_line
            .trim_end()
            .strip_prefix("anabranch listening on ");
        let url = url.unwrap_or_else(|| panic!("{first_line:?}; log: {}", self.log()));
        Server {
            url: url.to_owned(),
            child,
            out,
            first_line,
        }
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path().join("log")).unwrap_or_default()
    }
}

pub fn ended(mut command: Command) -> Ended {
    let output = command.output().expect("a process");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Ended {
        status: output.status.code().expect("an exit status"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

impl Server {
    pub async fn call(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let mut request = Client::new().request(method, format!("{}{path}", self.url));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.expect("an answer");
        let status = response.status().as_u16();
        let bytes = response.bytes().await.expect("a body");
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    pub async fn get(&self, path: &str) -> Value {
        let (status, answer) = self.call(Method::GET, path, None).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.call(Method::POST, path, Some(body)).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Returns when the metrics have this line.
    pub async fn until_measured(&self, line: &str) {
        let url = format!("{}/metrics", self.url);
        loop {
            let metrics = reqwest::get(&url).await.expect("metrics");
            let text = metrics.text().await.expect("a text");
            if text.lines().any(|measured| measured == line) {
                return;
            }
        }
    }

    pub fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status();
        assert!(sent.expect("kill").success());
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("an end")
    }

    /// Stops as an operator does.
    pub fn stop(mut self) {
        self.signal("TERM");
        assert_eq!(self.wait().code(), Some(0));
    }

    /// Ends as a crash of the machine does.
    pub fn crash(mut self) {
        self.child.kill().expect("it runs");
        self.wait();
    }

    /// What it printed behind its first line.
    pub fn stop_and_read(mut self) -> String {
        self.signal("TERM");
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("its output");
        assert_eq!(self.wait().code(), Some(0));
        rest
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
