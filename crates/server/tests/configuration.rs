//! What is wrong with a configuration is said in one line, with exit status 2.

mod support;

use serde_json::Value;
use support::{Place, ended};

#[test]
fn an_unknown_key_is_named_with_the_nearest_known() {
    let place = Place::new();
    place.file("anabranch.toml", "data_dir = \"x\"\n");
    let ended = place.run(&["serve"]);
    assert_eq!(ended.status, 2);
    let line = ended.line();
    assert!(
        line.contains("`data_dir`") && line.contains("`data-dir`"),
        "{line}"
    );
}

#[test]
fn a_value_a_file_and_a_line_that_do_not_fit_are_named() {
    let place = Place::new();
    let ended = place.run(&["serve", "--request-timeout", "soon"]);
    assert_eq!(ended.status, 2);
    assert!(ended.line().contains("--request-timeout"), "{ended:?}");

    let ended = place.run(&["serve", "--config", "missing.toml"]);
    assert_eq!(ended.status, 2);
    assert!(ended.line().contains("missing.toml"), "{ended:?}");

    place.file("broken.toml", "listen = \"127.0.0.1:0\"\nstore = \n");
    let ended = place.run(&["serve", "--config", "broken.toml"]);
    assert_eq!(ended.status, 2);
    assert!(ended.line().contains("broken.toml, line 2"), "{ended:?}");
}

#[test]
fn nobody_is_let_in_from_outside_unless_the_operator_says_so() {
    let place = Place::new();
    let ended = place.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(ended.status, 2);
    let line = ended.line();
    assert!(
        line.contains("--allow-anonymous-access-from-anywhere"),
        "{line}"
    );
    assert!(!place.path().join("anabranch-data").exists());
    let server = place.serve(&[
        "--listen",
        "0.0.0.0:0",
        "--allow-anonymous-access-from-anywhere",
    ]);
    assert!(server.url.starts_with("http://0.0.0.0:"));
    server.stop();
}

#[test]
fn a_port_in_use_is_named() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let ended = place.run(&["serve", "--listen", &address]);
    assert_eq!(ended.status, 2);
    let line = ended.line();
    assert!(
        line.contains(&address) && line.contains("--listen"),
        "{line}"
    );
}

#[test]
fn a_store_that_cannot_be_used_is_named() {
    let place = Place::new();
    let file = place.file("no-database", "this is a text");
    let store = format!("sqlite:{}", file.display());
    for arguments in [
        ["serve", "--store", &store],
        ["doctor", "--store", "sqlite:nowhere.db"],
        ["serve", "--store", "mysql://localhost/x"],
    ] {
        let ended = place.run(&arguments);
        assert_eq!(ended.status, 2, "{arguments:?} {ended:?}");
        ended.line();
    }
}

#[test]
fn each_value_is_shown_with_its_origin_and_without_its_password() {
    let place = Place::new();
    place.file("anabranch.toml", "queue-limit = 7\nmax-requests = 5\n");
    let mut command = place.command(&["config", "show", "--json", "--listen", "127.0.0.1:1"]);
    command
        .env("ANABRANCH_MAX_REQUESTS", "6")
        .env("ANABRANCH_STORE", "postgres://ann:hush@db/catalog");
    let ended = ended(command);
    assert_eq!(ended.status, 0, "{ended:?}");
    assert!(!ended.out.contains("hush"));
    let shown: Value = serde_json::from_str(&ended.out).expect("JSON");
    for (name, value, from) in [
        ("listen", "127.0.0.1:1", "flag --listen"),
        ("max-requests", "6", "variable ANABRANCH_MAX_REQUESTS"),
        ("queue-limit", "7", "file anabranch.toml"),
        ("body-limit", "32MiB", "default"),
        (
            "store",
            "postgres://ann:******@db/catalog",
            "variable ANABRANCH_STORE",
        ),
    ] {
        assert_eq!(shown[name]["value"], value, "{name}");
        assert_eq!(shown[name]["from"], from, "{name}");
    }
}
