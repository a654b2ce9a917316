//! Verbs that talk to a server.

mod support;

use serde_json::Value;
use support::{Ended, Place, Server};

struct Bench {
    place: Place,
    server: Server,
}

impl Bench {
    fn new() -> Bench {
        let place = Place::new();
        let server = place.serve(&[]);
        Bench { place, server }
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        let mut command = self.place.command(arguments);
        command.env("ANABRANCH_SERVER", &self.server.url);
        support::ended(command)
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.status, 0, "{arguments:?} {ended:?}");
        ended.out
    }
}

#[test]
fn catalogs_and_databases_are_made_listed_and_dropped_by_name() {
    let bench = Bench::new();
    bench.ok(&["catalog", "create", "two", "--property", "team=a"]);
    bench.ok(&["database", "create", "two.\"my.db\"", "--property", "k=v"]);
    bench.ok(&["database", "create", "default.two.\"my.db\"/inner"]);
    let list = bench.ok(&["database", "list", "two"]);
    assert_eq!(list, "NAME\n\"my.db\"\n");
    let list = bench.ok(&["database", "list", "two.\"my.db\""]);
    assert_eq!(list, "NAME\n\"my.db\"/inner\n");
    let shown = bench.ok(&["database", "show", "two.\"my.db\"", "--json"]);
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(shown["properties"]["k"], "v");

    let changes = bench.ok(&["changes", "--partition", "two"]);
    let lines: Vec<&str> = changes.lines().collect();
    assert!(lines[0].contains("  two.\"my.db\"  by "), "{changes}");
    assert!(lines[1].contains("  two.\"my.db\"/inner  by "), "{changes}");

    bench.ok(&["catalog", "rename", "two", "three"]);
    assert!(bench.ok(&["catalog", "list"]).contains("\nthree "));
    bench.ok(&["catalog", "rename", "default.three", "two"]);

    let refused = bench.run(&["catalog", "drop", "two"]);
    assert_eq!(refused.status, 1);
    assert!(refused.line().contains("409"), "{refused:?}");
    bench.ok(&["catalog", "drop", "two", "--cascade"]);
    assert!(!bench.ok(&["catalog", "list"]).contains("two"));
}

#[test]
fn a_name_of_the_wrong_kind_is_refused_before_anything_is_asked() {
    let bench = Bench::new();
    let ended = bench.run(&["table", "show", "lake.sales"]);
    assert_eq!(ended.status, 2);
    assert!(ended.line().contains("catalog.database.table"), "{ended:?}");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let place = Place::new();
    let ended = place.run(&["catalog", "list", "--server", "http://127.0.0.1:1"]);
    assert_eq!(ended.status, 1);
    assert!(ended.line().contains("http://127.0.0.1:1"), "{ended:?}");
    let ended = place.run(&["--server", "somewhere", "catalog", "list"]);
    assert_eq!(ended.status, 2);
    let ended = place.run(&["--server", "http://127.0.0.1:1", "doctor"]);
    assert_eq!(ended.status, 2);
    assert!(ended.line().contains("--server"), "{ended:?}");
}

#[test]
fn a_password_in_the_servers_address_is_not_shown() {
    let place = Place::new();
    for server in [
        "http://user:secret@127.0.0.1:1",
        "htp://user:secret@127.0.0.1:1",
    ] {
        let ended = place.run(&["catalog", "list", "--server", server]);
        assert_ne!(ended.status, 0);
        assert!(ended.line().contains("127.0.0.1:1"), "{ended:?}");
        assert!(!ended.err.contains("secret"), "{ended:?}");
    }
}

#[test]
fn what_cannot_be_printed_is_a_failure_unless_the_reader_left() {
    let bench = Bench::new();
    let printing: [&[&str]; 6] = [
        &["catalog", "list"],
        &["catalog", "list", "--json"],
        &["catalog", "show", "lake"],
        &["changes"],
        &["--help"],
        &["config", "show"],
    ];
    for arguments in printing {
        let print = |to: std::process::Stdio| {
            let mut command = bench.place.command(arguments);
            command.env("ANABRANCH_SERVER", &bench.server.url);
            command.stdout(to).status().expect("a process").code()
        };
        let full = std::fs::File::options().write(true).open("/dev/full");
        assert_eq!(
            print(full.expect("a device").into()),
            Some(1),
            "{arguments:?}"
        );
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        assert_eq!(print(writer.into()), Some(0), "{arguments:?}");
    }
}

#[test]
fn a_name_that_deceives_the_eye_is_written_out_for_people_and_kept_for_programs() {
    let bench = Bench::new();
    let name = "safe\u{202e}gpj";
    let created = bench.ok(&["database", "create", &format!("lake.{name}")]);
    let list = bench.ok(&["database", "list", "lake"]);
    let changes = bench.ok(&["changes"]);
    let refused = bench.run(&["database", "create", &format!("lake.{name}")]);
    for shown in [created, list, changes, refused.err] {
        assert!(!shown.contains('\u{202e}'), "{shown}");
        assert!(shown.contains(r"safe\u{202e}gpj"), "{shown}");
    }
    let list = bench.ok(&["database", "list", "lake", "--json"]);
    assert!(list.contains(name), "{list}");
}

#[test]
fn a_cursor_is_for_files_and_programs() {
    let bench = Bench::new();
    let shown = bench.run(&["changes"]);
    assert!(shown.line().contains("--remember"), "{shown:?}");
    let printed = bench.ok(&["changes", "--json"]);
    let last: Value = serde_json::from_str(printed.lines().last().expect("a line")).expect("JSON");
    let cursor = last["next"].as_str().expect("a cursor");
    assert!(!shown.err.contains(cursor), "{shown:?}");
    let rest = bench.ok(&["changes", "--after", cursor]);
    assert_eq!(rest, "");
}

#[tokio::test]
async fn a_reader_of_changes_that_remembers_goes_on_where_it_ended() {
    let bench = Bench::new();
    let pruned = "anabranch_tasks_total{kind=\"prune\"} 1";
    bench.server.until_measured(pruned).await;
    let names = |out: String| -> Vec<Value> {
        let lines = out
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let changes = lines.filter(|line| line.get("key").is_some());
        changes
            .map(|change| change["key"]["name"].clone())
            .collect()
    };
    let changes = ["changes", "--json", "--remember", "cursor"];
    assert_eq!(names(bench.ok(&changes)), ["default", "lake"]);
    assert_eq!(names(bench.ok(&changes)), Vec::<Value>::new());
    bench.ok(&["database", "create", "lake.sales"]);
    assert_eq!(names(bench.ok(&changes)), ["sales"]);
}
