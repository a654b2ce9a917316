//! The operator's manual names what the program has.

mod support;

use reqwest::Method;
use serde_json::Value;
use support::Place;

const MANUAL: &str = include_str!("../../../docs/operations.md");

#[test]
fn every_setting_is_in_the_manual_with_its_default() {
    let place = Place::new();
    let ended = place.run(&["config", "show", "--json"]);
    let shown: Value = serde_json::from_str(&ended.out).expect("JSON");
    let folder = place.path().canonicalize().expect("a folder");
    let data_dir = folder.join("anabranch-data").display().to_string();
    for (name, found) in shown.as_object().expect("settings") {
        let default = match found["value"].as_str() {
            Some(value) => format!("`{}`", value.replace(&data_dir, "DATA-DIR")),
            None => "none".to_owned(),
        };
        let row = format!("| `{name}` | {default} |");
        assert!(MANUAL.contains(&row), "{row}");
    }
}

#[tokio::test]
async fn every_metric_is_in_the_manual() {
    let place = Place::new();
    let server = place.serve(&[]);
    server.get("/v1/catalogs").await;
    let url = format!("{}/metrics", server.url);
    let answer = reqwest::Client::new()
        .request(Method::GET, url)
        .send()
        .await;
    let text = answer.expect("metrics").text().await.expect("a text");
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let names: Vec<&str> = names.filter_map(|line| line.split(' ').next()).collect();
    assert!(names.len() > 5, "{text}");
    for name in names {
        assert!(MANUAL.contains(name), "{name}");
    }
    server.stop();
}
