//! Databases and warehouses at a branch or tag.

use anabranch_catalog::reference::{Modes, ReferenceKind, ReferenceName};
use anabranch_catalog::{Caller, NewMerge, NewReference, SourceReference, Warehouse};
use http::Method;
use serde_json::{Value, json};

use crate::server::{Server, append, change, schema};

const BRANCH: ReferenceKind = ReferenceKind::Branch;
const TAG: ReferenceKind = ReferenceKind::Tag;

fn tester() -> Caller {
    Caller {
        principal: "test".to_owned(),
        idempotency_key: None,
        fingerprint: String::new(),
        patience: std::time::Duration::from_secs(30),
    }
}

impl Server {
    async fn reference(&self, database: &str, kind: ReferenceKind, name: &str) -> String {
        let named = |kind, name: &str| ReferenceName {
            kind,
            name: name.to_owned(),
        };
        let new = NewReference {
            name: named(kind, name),
            source: SourceReference {
                name: named(BRANCH, "main"),
                revision: None,
            },
            expected: None,
        };
        let caller = tester();
        let lake = Warehouse::parse("lake").expect("a warehouse");
        let made = self
            .catalog
            .create_reference(&caller, &lake, database, &new);
        made.await.expect("a reference").revision
    }

    /// Merges a branch into `main`.
    async fn merge(&self, database: &str, branch: &str) {
        let new = NewMerge {
            target: "main".to_owned(),
            source: SourceReference {
                name: ReferenceName {
                    kind: BRANCH,
                    name: branch.to_owned(),
                },
                revision: None,
            },
            expected: None,
            modes: Modes::default(),
            dry_run: false,
        };
        let lake = Warehouse::parse("lake").expect("a warehouse");
        let who = tester();
        let merged = self.catalog.merge(&who, &lake, database, &new);
        merged.await.expect("a merge");
    }

    async fn names(&self, path: &str) -> Vec<String> {
        let body = self.get(path).await.expect(200).json();
        let listed = body["identifiers"].as_array().expect("identifiers");
        let name = |one: &Value| one["name"].as_str().expect("a name").to_owned();
        listed.iter().map(name).collect()
    }
}

#[tokio::test]
async fn levels_that_were_split_off_a_selector_are_joined_to_it() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    server.table("db", "t").await;
    server.reference("db", TAG, "v1.0").await;
    server.table("db", "later").await;
    for split in ["db$tag_v1.0", "db$tag_v1%1F0"] {
        let path = format!("/v1/lake/namespaces/{split}/tables");
        assert_eq!(server.names(&path).await, ["t"], "{split}");
        let table = format!("{path}/t");
        server.get(&table).await.expect(200).revision();
        server
            .head(&format!("/v1/lake/namespaces/{split}"))
            .await
            .expect(204);
    }
    let parent = "/v1/lake/namespaces?parent=db$tag_v1%1F0";
    assert_eq!(
        server.get(parent).await.expect(200).json()["namespaces"],
        json!([])
    );
    server
        .get("/v1/lake/namespaces/db$tag_v1%1F1/tables")
        .await
        .refused(404, "NoSuchNamespaceException");
    // The shorter name, where there is one: what follows is nested in it.
    server.reference("db", BRANCH, "w").await;
    let nested = json!({"namespace": ["db$branch_w", "0"]});
    server.post("/v1/lake/namespaces", nested).await.expect(200);
    let path = "/v1/lake/namespaces/db$branch_w%1F0/tables";
    let table = json!({"name": "inside", "schema": schema()});
    server.post(path, table).await.expect(200);
    assert_eq!(server.names(path).await, ["inside"]);
    server.reference("db", BRANCH, "w.0").await;
    assert_eq!(server.names(path).await, ["inside"]);
    server.audited().await;
}

#[tokio::test]
async fn names_in_bodies_are_joined_too() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let table = server.table("db", "t").await;
    server.reference("db", BRANCH, "x.1").await;
    let split = json!(["db$branch_x", "1"]);
    let rename = json!({
        "source": {"namespace": split, "name": "t"},
        "destination": {"namespace": split, "name": "u"},
    });
    server
        .post("/v1/lake/tables/rename", rename)
        .await
        .expect(204);
    let mut commit = change("-", "u", append(&table, 1, None, 1));
    commit["identifier"]["namespace"] = split;
    let body = json!({"table-changes": [commit]});
    server
        .post("/v1/lake/transactions/commit", body)
        .await
        .expect(204);
    assert_eq!(
        server
            .names("/v1/lake/namespaces/db$branch_x.1/tables")
            .await,
        ["u"]
    );
    assert_eq!(
        server.load("db$branch_x.1", "u").await["metadata"]["current-snapshot-id"],
        1
    );
    assert_eq!(server.names("/v1/lake/namespaces/db/tables").await, ["t"]);
    server.audited().await;
}

#[tokio::test]
async fn a_warehouse_at_a_branch_shows_the_databases_that_have_it() {
    let server = Server::start().await;
    for database in ["a", "b", "c"] {
        server.namespace(&[database]).await;
        server.table(database, "t").await;
    }
    server.reference("a", BRANCH, "x").await;
    server.reference("c", BRANCH, "x").await;
    server.reference("b", TAG, "x").await;
    let config = server
        .get("/v1/config?warehouse=lake$branch_x")
        .await
        .expect(200)
        .json();
    assert_eq!(config["overrides"]["prefix"], "lake$branch_x");
    let listed = server
        .get("/v1/lake$branch_x/namespaces")
        .await
        .expect(200)
        .json();
    assert_eq!(listed["namespaces"], json!([["a"], ["c"]]));
    let table = json!({"name": "new", "schema": schema()});
    server
        .post("/v1/lake$branch_x/namespaces/a/tables", table.clone())
        .await
        .expect(200);
    assert_eq!(
        server.names("/v1/lake$branch_x/namespaces/a/tables").await,
        ["new", "t"]
    );
    assert_eq!(server.names("/v1/lake/namespaces/a/tables").await, ["t"]);
    for absent in ["b", "b$branch_x"] {
        let path = format!("/v1/lake$branch_x/namespaces/{absent}/tables");
        server
            .get(&path)
            .await
            .refused(404, "NoSuchNamespaceException");
    }
    // A selector in the database's name wins.
    assert_eq!(
        server
            .names("/v1/lake$branch_x/namespaces/a$branch_main/tables")
            .await,
        ["t"]
    );
    assert_eq!(
        server
            .names("/v1/lake$branch_x/namespaces/b$tag_x/tables")
            .await,
        ["t"]
    );
    let tagged = "/v1/lake$tag_x/namespaces/b/tables";
    assert_eq!(server.names(tagged).await, ["t"]);
    server
        .post(tagged, table)
        .await
        .refused(403, "ForbiddenException");
    // A database is one thing on all its branches.
    let database = json!({"namespace": ["d"]});
    server
        .post("/v1/lake$branch_x/namespaces", database)
        .await
        .refused(400, "BadRequestException");
    server
        .delete("/v1/lake$branch_x/namespaces/a")
        .await
        .refused(400, "BadRequestException");
    let change = json!({"updates": {"k": "v"}});
    server
        .post("/v1/lake$branch_x/namespaces/a/properties", change)
        .await
        .refused(400, "BadRequestException");
    server
        .get("/v1/config?warehouse=lake$tag_rev-0-1")
        .await
        .refused(400, "BadRequestException");
    server.audited().await;
}

#[tokio::test]
async fn references_are_listed_to_who_asks_for_them() {
    let server = Server::start().await;
    server.namespace(&["a"]).await;
    server.namespace(&["b"]).await;
    server.reference("a", BRANCH, "x").await;
    server.reference("a", TAG, "v1").await;
    let plain = server.get("/v1/lake/namespaces").await.expect(200).json();
    assert_eq!(plain["namespaces"], json!([["a"], ["b"]]));
    let asked = [("anabranch-references", "true")];
    let listed = server
        .send(Method::GET, "/v1/lake/namespaces", &asked, "")
        .await;
    let listed = listed.expect(200).json();
    let names = json!([["a"], ["a$tag_v1"], ["a$branch_x"], ["b"]]);
    assert_eq!(listed["namespaces"], names);
}

#[tokio::test]
async fn an_answer_names_a_state_that_can_be_read_as_it_was() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let table = server.table("db", "t").await;
    server.reference("db", BRANCH, "x").await;
    let on_branch = "/v1/lake/namespaces/db$branch_x/tables/t";
    let committed = server
        .post(on_branch, append(&table, 1, None, 1))
        .await
        .expect(200);
    let revision = committed.revision().to_owned();
    // What changes nothing of the branch leaves it where it was.
    let checks = json!({"requirements": [], "updates": []});
    let same = server.post(on_branch, checks).await.expect(200);
    assert_eq!(same.revision(), revision);
    assert_eq!(server.get(on_branch).await.revision(), revision);
    server
        .post(
            "/v1/lake/namespaces/db/properties",
            json!({"updates": {"k": "v"}}),
        )
        .await
        .expect(200);
    server
        .post(on_branch, append(&table, 2, Some(1), 2))
        .await
        .expect(200);
    let pinned = server.load(&format!("db$tag_rev-{revision}"), "t").await;
    assert_eq!(pinned["metadata"]["current-snapshot-id"], 1);
    let main = server.get("/v1/lake/namespaces/db/tables/t").await;
    let main = main.revision().to_owned();
    let pinned = server.load(&format!("db$tag_rev-{main}"), "t").await;
    assert!(
        pinned["metadata"]["current-snapshot-id"]
            .as_i64()
            .unwrap_or(-1)
            < 0
    );
    let changed = server.post(
        "/v1/lake/namespaces/db/properties",
        json!({"updates": {"k": "w"}}),
    );
    assert_eq!(changed.await.expect(200).revision(), main);
    server.audited().await;
}

#[tokio::test]
async fn a_repeated_request_on_a_branch_is_answered_with_its_state() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let table = server.table("db", "t").await;
    server.reference("db", BRANCH, "x").await;
    let path = "/v1/lake/namespaces/db$branch_x/tables/t";
    let body = append(&table, 1, None, 1);
    let first = server.post_with_key(path, "key-1", &body).await.expect(200);
    let again = server.post_with_key(path, "key-1", &body).await.expect(200);
    assert_eq!(again.revision(), first.revision());
    let headers = [("idempotency-key", "key-2")];
    let drop = || server.send(Method::DELETE, path, &headers, "");
    let first = drop().await.expect(204);
    let again = drop().await.expect(204);
    assert_eq!(again.revision(), first.revision());
    server.audited().await;
}

#[tokio::test]
async fn a_table_of_a_missing_branch_says_which_branch_is_missing() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    server.table("db", "t").await;
    let table = "/v1/lake/namespaces/db$branch_x/tables/t";
    let answer = server.get(table).await.refused(404, "NoSuchTableException");
    assert!(answer.text.contains("has no branch x"), "{}", answer.text);
    let created = json!({"name": "u", "schema": schema()});
    let answer = server
        .post("/v1/lake$tag_v1/namespaces/db/tables", created)
        .await;
    let answer = answer.refused(404, "NoSuchNamespaceException");
    assert!(answer.text.contains("has no tag v1"), "{}", answer.text);
}

#[tokio::test]
async fn clients_are_told_not_to_delete_metadata_that_others_may_need() {
    const DELETES: &str = "write.metadata.delete-after-commit.enabled";
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    let new = json!({"name": "t", "schema": schema(), "properties": {DELETES: "true"}});
    let path = "/v1/lake/namespaces/db/tables";
    let table = server.post(path, new).await.expect(200).json();
    assert_eq!(table["metadata"]["properties"][DELETES], "false");
    let committed = server
        .post(&format!("{path}/t"), append(&table, 1, None, 1))
        .await;
    let committed = committed.expect(200).json();
    assert_eq!(committed["metadata"]["properties"][DELETES], "false");
    // What is stored stays as it was asked for.
    let stored = committed["metadata-location"].as_str().expect("a location");
    let stored = stored.strip_prefix("file://").expect("a local file");
    let stored: Value =
        serde_json::from_slice(&std::fs::read(stored).expect("a file")).expect("JSON");
    assert_eq!(stored["properties"][DELETES], "true");
    server.audited().await;
}

#[tokio::test]
async fn a_view_reads_where_it_is_seen() {
    let server = Server::start().await;
    server.namespace(&["db"]).await;
    server.reference("db", BRANCH, "x").await;
    let at_branch = "/v1/lake/namespaces/db$branch_x/views";
    let version = |id: i64, namespace: &str| {
        json!({
            "version-id": id,
            "schema-id": 0,
            "timestamp-ms": 1_700_000_000_000_i64 + id,
            "summary": {},
            "default-namespace": [namespace],
            "representations": [{"type": "sql", "sql": format!("SELECT {id}"), "dialect": "spark"}],
        })
    };
    let new = json!({"name": "v", "schema": schema(), "view-version": version(1, "db$branch_x")});
    let namespaces = |view: &Value| {
        let versions = view["metadata"]["versions"]
            .as_array()
            .expect("versions")
            .clone();
        versions
            .iter()
            .map(|version| {
                version["default-namespace"][0]
                    .as_str()
                    .expect("a name")
                    .to_owned()
            })
            .collect::<Vec<_>>()
    };
    let created = server.post(at_branch, new).await.expect(200).json();
    assert_eq!(namespaces(&created), ["db$branch_x"]);
    let replace = json!({"requirements": [], "updates": [
        {"action": "add-view-version", "view-version": version(2, "db$branch_x")},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]});
    let view = format!("{at_branch}/v");
    let replaced = server.post(&view, replace).await.expect(200).json();
    assert_eq!(namespaces(&replaced), ["db$branch_x", "db$branch_x"]);
    server.merge("db", "x").await;
    let merged = server
        .get("/v1/lake/namespaces/db/views/v")
        .await
        .expect(200)
        .json();
    assert_eq!(namespaces(&merged), ["db", "db"]);
    let shown = server.get(&view).await.expect(200).json();
    assert_eq!(namespaces(&shown), ["db$branch_x", "db$branch_x"]);
    server.audited().await;
}
