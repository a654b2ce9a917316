//! What references show, how they came to it, and how they differ.

use serde_json::{Value, json};

use crate::server::{Server, TREES, branch};

/// Every page of a call, of the given size.
async fn pages(server: &Server, path: &str, size: u32, field: &str) -> Vec<Value> {
    let mut items = Vec::new();
    let mut token = String::new();
    loop {
        let page = format!("{path}maxResults={size}&pageToken={token}");
        let page = server.get(&page).await.expect(200).body;
        items.extend(page[field].as_array().expect("a list").iter().cloned());
        match page.get("nextPageToken") {
            Some(next) => token = next.as_str().expect("a token").to_owned(),
            None => return items,
        }
    }
}

fn names(items: &[Value], field: &str) -> Value {
    items.iter().map(|item| item[field].clone()).collect()
}

#[tokio::test]
async fn the_tables_of_a_state_are_listed_with_their_versions() {
    let server = Server::start().await;
    for table in ["a", "b", "c"] {
        server.table("main", table).await;
    }
    server.make("TAG", "v1", "main").await;
    let tagged = server.get(&format!("{TREES}/v1")).await;
    server.table("main", "d").await;
    server.write("main", "a", "later").await;

    let list = server.get(&format!("{TREES}/v1/tables")).await.expect(200);
    assert_eq!(list.body["revision"], tagged.revision());
    assert_eq!(list.revision(), tagged.revision());
    let tables = list.body["tables"].as_array().expect("a list");
    assert_eq!(names(tables, "name"), json!(["a", "b", "c"]));
    let table = &tables[0];
    let exact = json!({
        "name": "a", "type": "TABLE", "format": "iceberg", "tableId": table["tableId"],
        "version": table["version"], "metadataLocation": table["metadataLocation"],
    });
    assert_eq!(*table, exact);
    assert!(table["tableId"].is_string() && table["metadataLocation"].is_string());

    let one = server
        .get(&format!("{TREES}/v1/tables/a"))
        .await
        .expect(200);
    assert_eq!(one.body["tables"], json!([table]));
    assert_eq!(one.body["revision"], one.revision());
    let now = server.get(&format!("{TREES}/main/tables/a")).await;
    assert_eq!(now.body["tables"][0]["tableId"], table["tableId"]);
    assert_ne!(now.body["tables"][0]["version"], table["version"]);
    let then = format!("{TREES}/main/tables/a?revision={}", tagged.revision());
    assert_eq!(server.get(&then).await.body, one.body);
    let missing = server.get(&format!("{TREES}/v1/tables/d")).await;
    let named = json!("training.d");
    missing.refused_with(404, json!("TABLE"), named, json!({}));
}

#[tokio::test]
async fn all_pages_are_of_the_state_of_the_first() {
    let server = Server::start().await;
    for table in ["a", "b", "c"] {
        server.table("main", table).await;
    }
    let path = format!("{TREES}/main/tables?maxResults=2");
    let first = server.get(&path).await.expect(200);
    server.table("main", "bb").await;
    let token = first.body["nextPageToken"].as_str().expect("a token");
    let second = server.get(&format!("{path}&pageToken={token}")).await;
    let second = second.expect(200);
    assert_eq!(second.revision(), first.revision());
    assert_eq!(second.body["tables"][0]["name"], "c");
    let all = pages(&server, &format!("{TREES}/main/tables?"), 1, "tables").await;
    assert_eq!(names(&all, "name"), json!(["a", "b", "bb", "c"]));
}

#[tokio::test]
async fn a_log_tells_what_happened_back_through_the_fork() {
    let server = Server::start().await;
    server.table("main", "a").await;
    server.make("BRANCH", "x", "main").await;
    server.write("x", "a", "x").await;
    server.table("main", "b").await;
    server
        .merge("x", json!({"source": branch("main")}))
        .await
        .expect(200);
    let kinds = json!(["MERGE", "COMMIT", "FORK", "CREATE"]);
    let shown = server.get(&format!("{TREES}/x")).await;
    let log = server.get(&format!("{TREES}/x/log")).await.expect(200);
    assert_eq!(log.revision(), shown.revision());
    let entries = log.body["entries"].as_array().expect("a list");
    assert_eq!(names(entries, "kind"), kinds);
    assert_eq!(entries[0]["revision"], shown.revision());
    assert_eq!(entries[0]["source"]["type"], "BRANCH");
    assert_eq!(entries[0]["source"]["name"], "main");
    assert_eq!(names(entries, "tables"), json!([["b"], ["a"], [], ["a"]]));
    assert!(
        entries
            .iter()
            .all(|one| one["at"].is_i64() && one["by"] == "anonymous")
    );
    for size in [1, 2, 3] {
        let paged = pages(&server, &format!("{TREES}/x/log?"), size, "entries").await;
        assert_eq!(paged, *entries, "{size}");
    }
}

#[tokio::test]
async fn a_difference_names_each_table_and_both_its_versions() {
    let server = Server::start().await;
    for table in ["a", "b"] {
        server.table("main", table).await;
    }
    server.make("BRANCH", "x", "main").await;
    let parted = server.get(&format!("{TREES}/main")).await;
    server.write("x", "a", "x").await;
    server.table("x", "c").await;
    let (main, x) = (
        server.get(&format!("{TREES}/main")).await,
        server.get(&format!("{TREES}/x")).await,
    );
    let found = server
        .get(&format!("{TREES}/main/diff/x"))
        .await
        .expect(200);
    assert_eq!(found.revision(), main.revision());
    assert_eq!(found.body["nameRevision"], main.revision());
    assert_eq!(found.body["otherRevision"], x.revision());
    assert_eq!(found.body["base"], json!([parted.revision()]));
    let tables = found.body["tables"].as_array().expect("a list");
    assert_eq!(names(tables, "table"), json!(["a", "c"]));
    assert_eq!(names(tables, "change"), json!(["CHANGED", "ADDED"]));
    assert_eq!(tables[0]["from"]["tableId"], tables[0]["to"]["tableId"]);
    assert_ne!(tables[0]["from"]["version"], tables[0]["to"]["version"]);
    assert_eq!(tables[1]["from"], Value::Null);
    let back = server.get(&format!("{TREES}/x/diff/main")).await;
    assert_eq!(back.body["tables"][1]["change"], "REMOVED");
    let then = format!("{TREES}/x/diff/x?nameRevision={}", x.revision());
    server.write("x", "c", "more").await;
    let since = server.get(&then).await.expect(200).body;
    assert_eq!(
        names(since["tables"].as_array().expect("a list"), "table"),
        json!(["c"])
    );
}

#[tokio::test]
async fn what_can_not_be_read_is_told_as_elsewhere() {
    let server = Server::start().await;
    let target = json!({"missing": "target"});
    for path in [
        "x/tables",
        "x/tables/t",
        "x/log",
        "x/diff/main",
        "main/diff/x",
    ] {
        let answer = server.get(&format!("{TREES}/{path}")).await;
        answer.refused_with(404, json!("BRANCH"), json!("x"), target.clone());
    }
    for path in [
        "main/tables?revision=none",
        "main/tables?pageToken=none",
        "main/tables?maxResults=-1",
        "main/log?pageToken=none",
        "main/diff/main?otherRevision=none",
    ] {
        let answer = server.get(&format!("{TREES}/{path}")).await;
        answer.refused(400, Value::Null, Value::Null);
    }
}
