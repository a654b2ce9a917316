//! One server process.

use std::path::Path;
use std::process::Stdio;

use reqwest::Client;
use reqwest::header::HeaderMap;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::control::{Control, Pause};
use super::point::Point;
use super::requests::{Address, Answer, Request};

/// A server that is ended, by its id, when the test ends.
pub struct Server {
    child: Child,
    pub control: Control,
    address: Address,
}

impl Server {
    /// Starts `serve` with these arguments and waits until it listens.
    pub async fn start(mut command: Command, log: &Path, warehouse: String) -> Server {
        let control = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = control.local_addr().unwrap().to_string();
        let file = std::fs::File::options().create(true).append(true).open(log);
        let mut child = command
            .env("ANABRANCH_TEST_CONTROL", address)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file.unwrap())
            .kill_on_drop(true)
            .spawn()
            .expect("a process");
        let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = out.next_line().await.unwrap().unwrap_or_default();
        let Some(url) = first.strip_prefix("anabranch listening on ") else {
            let log = std::fs::read_to_string(log).unwrap_or_default();
            panic!("the server said {first:?}; its log:\n{log}");
        };
        let (stream, _) = control.accept().await.unwrap();
        tokio::spawn(async move { while let Ok(Some(_)) = out.next_line().await {} });
        Server {
            child,
            control: Control::over(stream),
            address: Address {
                client: Client::builder()
                    .no_proxy()
                    .tls_certs_only([])
                    .build()
                    .unwrap(),
                url: url.to_owned(),
                warehouse,
            },
        }
    }

    /// Sends the request; `None` if the server ended without an answer.
    pub async fn send(&self, request: &Request) -> Option<Answer> {
        request.send(&self.address).await
    }

    /// What there is to read at a path.
    pub async fn text(&self, path: &str) -> String {
        let url = format!("{}{path}", self.address.url);
        let answer = self.address.client.get(url).send().await;
        answer.unwrap().text().await.unwrap()
    }

    /// Sends it beside what else the test does.
    pub fn spawn(&self, request: &Request) -> JoinHandle<Option<Answer>> {
        let (request, address) = (request.clone(), self.address.clone());
        tokio::spawn(async move { request.send(&address).await })
    }

    /// The same with the headers of the answer.
    pub fn spawn_for_headers(&self, request: &Request) -> JoinHandle<Option<(Answer, HeaderMap)>> {
        let (request, address) = (request.clone(), self.address.clone());
        tokio::spawn(async move { request.send_for_headers(&address).await })
    }

    /// Sends the request; its headers too.
    pub async fn ask(&self, request: &Request) -> Option<(Answer, HeaderMap)> {
        request.send_for_headers(&self.address).await
    }

    /// What the metric of this name and these labels says; 0 if it says nothing.
    pub async fn measured(&self, metric: &str) -> u64 {
        let text = self.text("/metrics").await;
        let mut lines = text.lines().filter_map(|line| line.rsplit_once(' '));
        let value = lines.find(|(name, _)| *name == metric);
        value.map_or(0, |(_, value)| value.parse().unwrap())
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    pub async fn pause(&self, point: Point) -> Pause {
        self.control.pause(&point).await
    }

    /// Ends as a crash does.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("it runs");
    }

    /// Stops as an operator does.
    pub async fn stop(mut self) {
        self.signal("TERM").await;
        assert_eq!(self.child.wait().await.unwrap().code(), Some(0));
    }

    /// Halts the process where it is (`STOP`), lets it go on (`CONT`), or ends it (`TERM`).
    pub async fn signal(&self, signal: &str) {
        let id = self.child.id().expect("it runs").to_string();
        let sent = Command::new("kill")
            .args(["-s", signal, &id])
            .status()
            .await;
        assert!(sent.expect("kill").success());
    }
}
