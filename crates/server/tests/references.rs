//! `ref …`: branches, tags and merges from the command line.

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::JoinHandle;

use reqwest::Method;
use serde_json::{Value, json};
use support::{Ended, Place, Server};

/// A server with the tables `features` and `labels` in `lake.training`.
struct Bench {
    place: Place,
    server: Server,
}

impl Bench {
    async fn new() -> Bench {
        let place = Place::new();
        let server = place.serve(&[]);
        let bench = Bench { place, server };
        bench.ok(&["database", "create", "lake.training"]);
        for table in ["features", "labels"] {
            bench.table("main", table).await;
        }
        bench
    }

    fn run_at(&self, url: &str, arguments: &[&str]) -> Ended {
        let mut command = self.place.command(arguments);
        command.env("ANABRANCH_SERVER", url);
        support::ended(command)
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        self.run_at(&self.server.url, arguments)
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.status, 0, "{arguments:?} {ended:?}");
        ended.out
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["--json"]].concat();
        serde_json::from_str(&self.ok(&arguments)).expect("JSON")
    }

    fn revision(&self, name: &str) -> String {
        let listed = self.json(&["ref", "list", "lake.training"]);
        let references = listed["references"].as_array().expect("a list");
        let found = references.iter().find(|one| one["name"] == name);
        let revision = found.and_then(|one| one["revision"].as_str());
        revision.expect("a revision").to_owned()
    }

    async fn table(&self, branch: &str, name: &str) {
        let field = json!({"id": 1, "name": "id", "type": "long", "required": false});
        let schema = json!({"type": "struct", "fields": [field]});
        let body = json!({"name": name, "schema": schema});
        self.server.post(&tables(branch), body).await;
    }

    async fn write(&self, branch: &str, name: &str, value: &str) {
        let update = json!({"action": "set-properties", "updates": {"written": value}});
        let body = json!({"requirements": [], "updates": [update]});
        let path = format!("{}/{name}", tables(branch));
        self.server.post(&path, body).await;
    }
}

fn tables(branch: &str) -> String {
    format!("/iceberg/v1/lake/namespaces/training%24branch_{branch}/tables")
}

/// The words of each line.
fn words(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().map(|line| line.split_whitespace().collect());
    lines.collect()
}

#[tokio::test]
async fn references_are_made_listed_protected_and_deleted() {
    let bench = Bench::new().await;
    let made = bench.ok(&["ref", "create", "lake.training", "x"]);
    assert!(made.starts_with("created branch x at "), "{made}");
    let then = bench.revision("x");
    bench.write("x", "features", "x").await;
    bench.ok(&[
        "ref",
        "create",
        "lake.training",
        "v1",
        "--tag",
        "--from",
        "x",
    ]);
    assert_eq!(bench.revision("v1"), bench.revision("x"));
    let create = ["ref", "create", "default.lake.training", "v0", "--tag"];
    bench.ok(&[&create[..], &["--from", "x", "--from-revision", &then]].concat());
    assert_eq!(bench.revision("v0"), then);
    let from_tag = ["ref", "create", "lake.training", "y", "--from", "v0"];
    bench.ok(&from_tag);
    let stale = [
        "ref",
        "create",
        "lake.training",
        "z",
        "--from",
        "x",
        "--expect",
        &then,
    ];
    let stale = bench.run(&stale);
    assert_eq!(stale.status, 1);
    assert!(stale.line().contains(&bench.revision("x")), "{stale:?}");

    let listed = bench.ok(&["ref", "list", "lake.training"]);
    let listed = words(&listed);
    assert_eq!(
        listed[0],
        ["NAME", "TYPE", "REVISION", "CREATED", "(UTC)", "BY"]
    );
    let names: Vec<&str> = listed[1..].iter().map(|line| line[0]).collect();
    assert_eq!(names, ["main", "v0", "v1", "x", "y"]);
    let tags = bench.ok(&["ref", "list", "lake.training", "--type", "tag"]);
    assert_eq!(words(&tags).len(), 3, "{tags}");

    let delete = ["ref", "delete", "lake.training", "v1"];
    bench.ok(&["ref", "protect", "lake.training", "v1"]);
    assert!(
        bench
            .ok(&["ref", "list", "lake.training"])
            .contains("tag, protected")
    );
    assert_eq!(bench.run(&delete).status, 1);
    bench.ok(&["ref", "protect", "lake.training", "v1", "--off"]);
    let deleted = bench.ok(&delete);
    assert!(deleted.starts_with("deleted tag v1 at "), "{deleted}");
    assert_eq!(bench.run(&delete).status, 1);
    let nested = bench.run(&["ref", "list", "lake.training/inner"]);
    assert_eq!(nested.status, 2);
    assert!(nested.line().contains("catalog.database"), "{nested:?}");
}

#[tokio::test]
async fn a_merge_tells_what_became_of_each_table_and_a_dry_run_changes_nothing() {
    let bench = Bench::new().await;
    bench.ok(&["ref", "create", "lake.training", "x"]);
    bench.write("x", "features", "x").await;
    bench.write("x", "labels", "x").await;
    let before = bench.revision("main");
    let merge = [
        "ref",
        "merge",
        "lake.training",
        "x",
        "--table",
        "labels=drop",
    ];
    let dry = bench.ok(&[&merge[..], &["--dry-run"]].concat());
    assert!(
        dry.contains("nothing was changed") && dry.contains(&before),
        "{dry}"
    );
    assert_eq!(bench.revision("main"), before);
    let merged = bench.ok(&[&merge[..], &["--expect", &before]].concat());
    let lines = words(&merged);
    assert_eq!(lines[1][..2], ["features", "TAKEN:"]);
    assert_eq!(lines[2][..2], ["labels", "DROPPED:"]);
    assert!(merged.contains(&bench.revision("main")), "{merged}");
    let again = bench.ok(&merge);
    assert!(again.starts_with("nothing to merge"), "{again}");
}

#[tokio::test]
async fn a_conflict_is_shown_with_the_way_out_and_fails() {
    let bench = Bench::new().await;
    bench.ok(&["ref", "create", "lake.training", "x"]);
    bench.write("x", "features", "x").await;
    bench.write("main", "features", "main").await;
    let before = bench.revision("main");
    let merge = ["ref", "merge", "lake.training", "x", "--into", "main"];
    let refused = bench.run(&merge);
    assert_eq!(refused.status, 1);
    assert!(
        refused.line().contains("1 table is in conflict"),
        "{refused:?}"
    );
    let lines = words(&refused.out);
    assert_eq!(lines[1][..3], ["features", "changed", "changed"]);
    assert!(
        refused.out.contains("--table features=FORCE"),
        "{refused:?}"
    );
    let as_json = bench.run(&[&merge[..], &["--json"]].concat());
    assert_eq!(as_json.status, 1);
    let found: Value = serde_json::from_str(&as_json.out).expect("JSON");
    assert_eq!(found["conflicts"][0]["table"], "features");
    assert_eq!(bench.revision("main"), before);
    bench.ok(&[&merge[..], &["--mode", "FORCE"]].concat());
    let unknown = bench.run(&[&merge[..], &["--table", "features=MAYBE"]].concat());
    assert_eq!(unknown.status, 2);
}

#[tokio::test]
async fn a_log_is_drawn_and_a_difference_listed() {
    let bench = Bench::new().await;
    bench.ok(&["ref", "create", "lake.training", "x"]);
    bench.write("x", "features", "x").await;
    bench.table("x", "extra").await;
    let diff = bench.ok(&["ref", "diff", "lake.training", "main", "x"]);
    let lines = words(&diff);
    assert_eq!(lines[1], ["extra", "ADDED", "only", "in", "x"]);
    assert_eq!(lines[2][..2], ["features", "CHANGED"]);
    let same = bench.ok(&["ref", "diff", "lake.training", "x", "x"]);
    assert_eq!(same, "x has the same tables as x\n");

    bench.ok(&["ref", "merge", "lake.training", "x"]);
    let log = bench.ok(&["ref", "log", "lake.training"]);
    let first = log.lines().next().expect("a line");
    assert_eq!(first, "●─╮  merge of branch x: extra, features");
    assert!(log.lines().all(|line| line.chars().count() <= 80), "{log}");
    let log = bench.ok(&["ref", "log", "lake.training", "x"]);
    assert!(log.contains("╰─╮  x made from branch main\n  │"), "{log}");
    let short = bench.run(&["ref", "log", "lake.training", "x", "--limit", "1"]);
    assert!(short.line().contains("--limit 2"), "{short:?}");
    let log = bench.json(&["ref", "log", "lake.training", "x", "--limit", "1"]);
    assert_eq!(log["entries"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_change_whose_answer_is_lost_is_made_once_and_reported() {
    let bench = Bench::new().await;
    bench.ok(&["ref", "create", "lake.training", "x"]);
    bench.write("x", "features", "x").await;
    // The source is looked up first; the merge's own answer is the second one.
    let (url, losing) = losing(&bench.server.url, 2);
    let merge = ["ref", "merge", "lake.training", "x", "--json"];
    let merged = bench.run_at(&url, &merge);
    assert_eq!(merged.status, 0, "{merged:?}");
    losing.join().expect("the proxy");
    // A merge that ran twice finds nothing left, and says so.
    let merged: Value = serde_json::from_str(&merged.out).expect("JSON");
    assert_eq!(merged["result"]["tables"][0]["outcome"], "TAKEN");
    assert_eq!(merged["result"]["revision"], bench.revision("main"));
    let (status, log) = bench
        .server
        .call(
            Method::GET,
            "/v1/catalogs/lake/databases/training/trees/main/log",
            None,
        )
        .await;
    assert_eq!(status, 200);
    let entries = log["entries"].as_array().expect("a list");
    let merges = entries.iter().filter(|one| one["kind"] == "MERGE");
    assert_eq!(merges.count(), 1);
}

/// A proxy that passes one request on per connection, and keeps one of the answers for itself. It
/// ends after the answer behind that one.
fn losing(server: &str, lost: usize) -> (String, JoinHandle<()>) {
    let target = server
        .strip_prefix("http://")
        .expect("an address")
        .to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let proxy = std::thread::spawn(move || {
        for number in 1..=lost + 1 {
            let (mut client, _) = listener.accept().expect("a client");
            let mut server = TcpStream::connect(&target).expect("the server");
            let request = one_request(&mut client);
            server.write_all(&request).expect("sent");
            let mut answer = Vec::new();
            server.read_to_end(&mut answer).expect("an answer");
            if number != lost {
                client.write_all(&answer).expect("answered");
            }
            // The client may have left already.
            let _ = client.shutdown(Shutdown::Both);
        }
    });
    (url, proxy)
}

/// A request with its body, asking for its connection to be closed.
fn one_request(client: &mut TcpStream) -> Vec<u8> {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            let length = lines
                .filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .find_map(|(_, value)| value.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return format!("{head}\r\nconnection: close\r\n\r\n{body}").into_bytes();
            }
        }
        let count = client.read(&mut buffer).expect("a request");
        assert_ne!(count, 0, "the client left");
        request.extend_from_slice(&buffer[..count]);
    }
}
