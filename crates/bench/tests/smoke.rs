//! Each command runs for a moment on SQLite and prints its tables. Nothing is measured here.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::process::Command;

fn bench(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_anabranch-bench"))
        .args(arguments)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The program that the server crate builds, if it has been built.
fn program() -> Option<String> {
    let beside = PathBuf::from(env!("CARGO_BIN_EXE_anabranch-bench")).with_file_name("anabranch");
    beside
        .is_file()
        .then(|| beside.to_string_lossy().into_owned())
}

#[test]
fn core_runs_on_sqlite() {
    let text = bench(&[
        "core",
        "--store",
        "sqlite",
        "--seconds",
        "0.1",
        "--rounds",
        "1",
    ]);
    assert!(text.contains("32 callers: rate against serial"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn core_prints_json() {
    let arguments = [
        "--json",
        "core",
        "--store",
        "sqlite",
        "--seconds",
        "0.1",
        "--rounds",
        "1",
    ];
    for line in bench(&arguments).lines() {
        let table: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(table["rows"].is_array());
    }
}

#[test]
fn references_run_on_sqlite() {
    let text = bench(&["references", "--quick"]);
    for what in [
        "create branch: 1000 against 10",
        "merge 10 against 1",
        "find: depth 16 against main",
        "rate on 10 branches against main",
    ] {
        assert!(text.contains(what), "{text}");
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn http_flat_and_rest_run_on_the_program() {
    let Some(program) = program() else {
        eprintln!("the program isn't built beside this test; nothing to start");
        return;
    };
    let arguments = [
        "http",
        "--binary",
        &program,
        "--seconds",
        "0.05",
        "--rounds",
        "1",
        "--clients",
        "1,2",
        "--appends",
        "3",
    ];
    let http = bench(&arguments);
    assert!(http.contains("rate against one client"), "{http}");
    let flat = bench(&[
        "flat",
        "--binary",
        &program,
        "--seconds",
        "0.05",
        "--few",
        "10",
        "--many",
        "2000",
        "--snapshots",
        "50",
    ]);
    assert!(flat.contains("list, at the end"), "{flat}");
    let rest = bench(&[
        "rest",
        "--binary",
        &program,
        "--starts",
        "1",
        "--seconds",
        "0.05",
        "--clients",
        "2",
        "--tables",
        "3",
        "--appends",
        "3",
    ]);
    assert!(rest.contains("memory after load"), "{rest}");
    for text in [http, flat, rest] {
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }
}
