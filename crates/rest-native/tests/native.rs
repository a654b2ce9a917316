//! The `/v1` calls on an embedded store.

use std::collections::BTreeMap;

use anabranch_catalog::{Caller, Catalog, Limits, Namespace, NewCatalog, Warehouse};
use anabranch_files::{Files, FilesOptions};
use anabranch_http::{RequestLimits, Shapes, Stack};
use anabranch_partition::{Config, Partitions};
use anabranch_rest_native::{LONG_POLLS, Native, error_shape, router};
use anabranch_store::OpenOptions;
use axum::Router;
use axum::body::{Body, to_bytes};
use http::{Method, Request, StatusCode};
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

struct Bench {
    router: Router,
    catalog: Catalog,
    stopping: CancellationToken,
    _folder: TempDir,
}

fn caller() -> Caller {
    Caller {
        principal: "anabranch".into(),
        idempotency_key: None,
        fingerprint: String::new(),
        patience: std::time::Duration::from_secs(10),
    }
}

struct Answer {
    status: StatusCode,
    text: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).expect("a JSON body")
    }

    fn code(&self) -> (u16, String) {
        let code = self.json()["error"]["code"].as_str().map(str::to_owned);
        (self.status.as_u16(), code.expect("an error code"))
    }
}

impl Bench {
    async fn new() -> Bench {
        let folder = TempDir::new().expect("a folder");
        let url = format!("sqlite:{}", folder.path().join("catalog.db").display());
        let options = OpenOptions {
            migrate: true,
            ..OpenOptions::default()
        };
        let store = anabranch_store::open(&url, &options)
            .await
            .expect("a store");
        let partitions = Partitions::new(store, Config::default());
        let files = Files::new(FilesOptions::default());
        let catalog = Catalog::new(partitions, files, Limits::default());
        let base = format!("file://{}", folder.path().display());
        let lake = NewCatalog {
            warehouse: Warehouse::parse("lake").expect("a name"),
            location: format!("{base}/warehouse"),
            properties: Default::default(),
        };
        let ensured = catalog.ensure_catalog(&caller(), &lake).await;
        ensured.expect("the first catalog");
        let stopping = CancellationToken::new();
        let native = Native {
            catalog: catalog.clone(),
            metrics: PrometheusBuilder::new().build_recorder().handle(),
            catalogs_location: Some(format!("{base}/catalogs")),
            iceberg_endpoints: &["GET /v1/{prefix}/namespaces"],
            described: Vec::new(),
            stopping: stopping.clone(),
        };
        let stack =
            Stack::new(Shapes::new(error_shape), RequestLimits::default()).long_poll(LONG_POLLS);
        Bench {
            router: stack.around(router(native)),
            catalog,
            stopping,
            _folder: folder,
        }
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>, key: &str) -> Answer {
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let mut request = Request::builder().method(method).uri(path);
        if !key.is_empty() {
            request = request.header("idempotency-key", key);
        }
        let request = request.body(body).expect("a request");
        let answered = self.router.clone().oneshot(request).await;
        let (parts, body) = answered.expect("an answer").into_parts();
        let bytes = to_bytes(body, usize::MAX).await.expect("a body");
        Answer {
            status: parts.status,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, None, "").await
    }

    async fn create(&self, body: Value, key: &str) -> Answer {
        self.ask(Method::POST, "/v1/catalogs", Some(body), key)
            .await
    }
}

#[tokio::test]
async fn a_catalog_is_created_shown_listed_and_dropped() {
    let bench = Bench::new().await;
    let secret = json!({"s3.access-key-id": "id", "s3.secret-access-key": "hush", "team": "a"});
    let body = json!({"name": "two", "location": "s3://bucket/two", "properties": secret});
    let created = bench.create(body, "").await;
    assert_eq!(created.status, StatusCode::OK, "{}", created.text);
    assert_eq!(created.json()["location"], "s3://bucket/two");
    assert!(!created.text.contains("hush"));
    assert_eq!(
        bench.get("/v1/catalogs/default.two").await.json(),
        created.json()
    );

    let listed = bench.get("/v1/catalogs").await.json();
    let names: Vec<_> = listed["catalogs"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|catalog| catalog["name"].clone())
        .collect();
    assert_eq!(names, ["lake", "two"]);

    let dropped = bench
        .ask(Method::DELETE, "/v1/catalogs/two", None, "")
        .await;
    assert_eq!(dropped.status, StatusCode::NO_CONTENT);
    let gone = bench.get("/v1/catalogs/two").await;
    assert_eq!(gone.code(), (404, "NOT_FOUND".into()));
}

#[tokio::test]
async fn a_catalog_without_a_location_gets_a_folder_of_its_own() {
    let bench = Bench::new().await;
    let created = bench.create(json!({"name": "two"}), "").await.json();
    let location = created["location"].as_str().expect("a location");
    assert!(location.ends_with("/catalogs/default.two"), "{location}");
}

#[tokio::test]
async fn a_repeated_request_gets_its_first_answer_and_another_one_under_its_key_is_refused() {
    let bench = Bench::new().await;
    let first = bench.create(json!({"name": "two"}), "k1").await;
    let second = bench.create(json!({"name": "two"}), "k1").await;
    assert_eq!((second.status, second.json()), (first.status, first.json()));
    let other = bench.create(json!({"name": "three"}), "k1").await;
    assert_eq!(other.code(), (422, "KEY_REUSED".into()));
    let taken = bench.create(json!({"name": "two"}), "k2").await;
    assert_eq!(taken.code(), (409, "ALREADY_EXISTS".into()));

    let done = bench.get("/v1/operations/k1").await.json();
    assert_eq!(
        (&done["state"], &done["status"]),
        (&json!("DONE"), &json!(200))
    );
    let refused = bench.get("/v1/operations/k2").await.json();
    assert_eq!(refused["status"], 409);
    assert_eq!(refused["answer"]["error"]["code"], "ALREADY_EXISTS");
    let unknown = bench.get("/v1/operations/k3").await;
    assert_eq!(unknown.code(), (404, "NOT_FOUND".into()));
}

#[tokio::test]
async fn a_repeated_rename_or_drop_of_a_catalog_succeeds_again_under_its_key() {
    let bench = Bench::new().await;
    bench.create(json!({"name": "two"}), "").await;
    for _ in 0..2 {
        let body = json!({"name": "three"});
        let path = "/v1/catalogs/two";
        let renamed = bench.ask(Method::PATCH, path, Some(body), "rename").await;
        assert_eq!(renamed.status, StatusCode::NO_CONTENT, "{}", renamed.text);
    }
    for _ in 0..2 {
        let path = "/v1/catalogs/three";
        let dropped = bench.ask(Method::DELETE, path, None, "drop").await;
        assert_eq!(dropped.status, StatusCode::NO_CONTENT, "{}", dropped.text);
    }
    let path = "/v1/catalogs/three";
    let missing = bench.ask(Method::DELETE, path, None, "another").await;
    assert_eq!(missing.code(), (404, "NOT_FOUND".into()));
    let recorded = bench.get("/v1/operations/another").await.json();
    assert_eq!(recorded["status"], 404);
}

#[tokio::test]
async fn what_does_not_fit_is_named() {
    let bench = Bench::new().await;
    for (body, named) in [
        (json!({"name": 7}), "`name`"),
        (json!({"name": "x", "colour": "red"}), "`colour`"),
        (json!({"name": "a b"}), "`name`"),
        (json!({"name": "x", "store": "other"}), "`store`"),
    ] {
        let answer = bench.create(body, "").await;
        assert_eq!(answer.code(), (400, "INVALID_INPUT".into()));
        assert!(answer.text.contains(named), "{}", answer.text);
    }
}

#[tokio::test]
async fn the_server_s_own_credentials_are_not_sent_to_an_endpoint_of_the_caller_s_choice() {
    let bench = Bench::new().await;
    let properties = json!({"s3.endpoint": "http://127.0.0.1:1", "s3.region": "us-east-1"});
    let body = json!({"name": "two", "location": "s3://bucket/two", "properties": properties});
    let refused = bench.create(body, "").await;
    assert_eq!(refused.code(), (400, "INVALID_INPUT".into()));
    for named in ["s3.endpoint", "s3.access-key-id", "s3.secret-access-key"] {
        assert!(refused.text.contains(named), "{}", refused.text);
    }
    assert_eq!(
        bench.get("/v1/catalogs/two").await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn a_reader_of_changes_that_goes_on_misses_none_and_gets_none_twice() {
    let bench = Bench::new().await;
    for name in ["b", "c", "d"] {
        bench.create(json!({"name": name}), "").await;
    }
    let mut seen = Vec::new();
    let mut after = String::new();
    loop {
        let path = format!("/v1/changes?limit=1&after={after}");
        let page = bench.get(&path).await.json();
        after = page["next"].as_str().expect("a cursor").to_owned();
        match page["changes"].as_array().expect("a list").as_slice() {
            [] => break,
            changes => seen.extend(changes.iter().map(|change| change["key"]["name"].clone())),
        }
    }
    assert_eq!(seen, ["default", "lake", "b", "c", "d"]);
    bench.create(json!({"name": "e"}), "").await;
    let page = bench
        .get(&format!("/v1/changes?after={after}"))
        .await
        .json();
    let change = &page["changes"][0];
    assert_eq!(page["changes"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&change["kind"], &change["type"]),
        (&json!("CREATE"), &json!("catalog"))
    );
    assert!(change["revision"].is_string() && change["partition"].is_string());
}

#[tokio::test]
async fn changes_hold_no_secrets_and_can_be_asked_for_by_name() {
    let bench = Bench::new().await;
    let secret = json!({"s3.access-key-id": "id", "s3.secret-access-key": "hush"});
    let body = json!({"name": "two", "location": "s3://bucket/two", "properties": secret});
    bench.create(body, "").await;
    let all = bench.get("/v1/changes").await;
    assert!(all.text.contains("s3.secret-access-key") && !all.text.contains("hush"));
    let below = bench.get("/v1/changes?partition=lake").await.json();
    assert_eq!(below["changes"], json!([]));
    let unknown = bench.get("/v1/changes?partition=lake.nothing").await;
    assert_eq!(unknown.code(), (404, "NOT_FOUND".into()));
    let unknown = bench.get("/v1/changes?partition=7").await;
    assert_eq!(unknown.code(), (404, "NOT_FOUND".into()));
    for query in [
        "after=nonsense",
        "limit=0",
        "partition=a.b.c.d",
        "colour=red",
    ] {
        let refused = bench.get(&format!("/v1/changes?{query}")).await;
        assert_eq!(refused.code(), (400, "INVALID_INPUT".into()), "{query}");
    }
}

#[tokio::test]
async fn a_change_says_where_it_happened_by_the_names_of_now() {
    let bench = Bench::new().await;
    bench.create(json!({"name": "two"}), "").await;
    let catalog = Warehouse::parse("two").expect("a name");
    let sales = Namespace::new(vec!["sales".into()]).expect("a name");
    let nested = Namespace::new(vec!["sales".into(), "eu".into(), "north".into()]).expect("a name");
    let caller = caller();
    for namespace in [&sales, &nested.parent().expect("a parent"), &nested] {
        let created = bench
            .catalog
            .create_namespace(&caller, &catalog, namespace, BTreeMap::new());
        created.await.expect("a namespace");
    }
    let places = |page: Value| -> Vec<Value> {
        let changes = page["changes"].as_array().expect("a list").iter();
        changes.map(|change| change["key"].clone()).collect()
    };
    let all = places(bench.get("/v1/changes").await.json());
    let key = |place: Value, scope: Value, name: &str| {
        let mut key = json!({"branch": "0", "class": "container", "scope": scope, "name": name});
        for (level, name) in place.as_object().expect("an object") {
            key[level] = name.clone();
        }
        key
    };
    let database = json!({"metalake": "default", "catalog": "two", "database": "sales"});
    let expected = [
        key(json!({}), json!([]), "default"),
        key(json!({"metalake": "default"}), json!([]), "lake"),
        key(json!({"metalake": "default"}), json!([]), "two"),
        key(
            json!({"metalake": "default", "catalog": "two"}),
            json!([]),
            "sales",
        ),
        key(database.clone(), json!([]), "eu"),
        key(database.clone(), json!(["eu"]), "north"),
    ];
    assert_eq!(all, expected);

    let renamed = json!({"name": "three"});
    let answer = bench.ask(Method::PATCH, "/v1/catalogs/two", Some(renamed), "");
    assert_eq!(answer.await.status, StatusCode::NO_CONTENT);
    let below = places(bench.get("/v1/changes?partition=three.sales").await.json());
    assert!(
        below.iter().all(|key| key["catalog"] == "three"),
        "{below:?}"
    );
    assert_eq!(below.len(), 2);
}

#[tokio::test]
async fn a_cursor_that_fits_no_url_goes_into_the_body() {
    let bench = Bench::new().await;
    bench.create(json!({"name": "two"}), "").await;
    let by_url = bench.get("/v1/changes?limit=2&partition=two").await.json();
    let ask = |body: Value| bench.ask(Method::POST, "/v1/changes", Some(body), "");
    let by_body = ask(json!({"limit": 2, "partition": "two", "after": null})).await;
    assert_eq!(by_body.json(), by_url);
    let first = ask(json!({"limit": 2})).await.json();
    let second = ask(json!({"after": first["next"], "wait": 1})).await.json();
    assert_eq!(second["changes"][0]["key"]["name"], "two");
    for body in [
        json!({"limit": 0}),
        json!({"after": "x"}),
        json!({"colour": "red"}),
        json!([]),
    ] {
        assert_eq!(ask(body).await.code(), (400, "INVALID_INPUT".into()));
    }
}

#[tokio::test]
async fn a_catalog_is_renamed_and_keeps_its_id_and_location() {
    let bench = Bench::new().await;
    let created = bench.create(json!({"name": "two"}), "").await.json();
    let rename = async |old: &str, body: Value, key: &str| {
        let path = format!("/v1/catalogs/{old}");
        bench.ask(Method::PATCH, &path, Some(body), key).await
    };
    let renamed = rename("two", json!({"name": "three"}), "k1").await;
    assert_eq!(renamed.status, StatusCode::NO_CONTENT, "{}", renamed.text);
    let shown = bench.get("/v1/catalogs/three").await.json();
    assert_eq!(
        (&shown["id"], &shown["location"]),
        (&created["id"], &created["location"])
    );
    let refused = [
        ("two", json!({"name": "four"}), (404, "NOT_FOUND")),
        ("three", json!({"name": "lake"}), (409, "ALREADY_EXISTS")),
        ("three", json!({"name": "a b"}), (400, "INVALID_INPUT")),
        (
            "three",
            json!({"location": "s3://b/x"}),
            (400, "INVALID_INPUT"),
        ),
    ];
    for (old, body, (status, code)) in refused {
        assert_eq!(rename(old, body, "").await.code(), (status, code.into()));
    }
}

#[tokio::test]
async fn who_waits_for_news_is_let_go_when_the_server_stops_and_it_is_no_longer_ready() {
    let bench = Bench::new().await;
    assert_eq!(bench.get("/health/ready").await.status, StatusCode::OK);
    let next = bench.get("/v1/changes").await.json()["next"].clone();
    bench.stopping.cancel();
    let path = format!(
        "/v1/changes?wait=30000&after={}",
        next.as_str().expect("a cursor")
    );
    assert_eq!(bench.get(&path).await.json()["changes"], json!([]));
    let ready = bench.get("/health/ready").await;
    assert_eq!(ready.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(bench.get("/health/live").await.status, StatusCode::OK);
}

#[tokio::test]
async fn the_openapi_document_has_our_calls_and_names_the_iceberg_routes() {
    let bench = Bench::new().await;
    let document = bench.get("/openapi.json").await.json();
    for path in [
        "/v1/catalogs",
        "/v1/changes",
        "/v1/operations/{key}",
        "/version",
    ] {
        assert!(document["paths"][path]["get"].is_object(), "{path}");
    }
    let iceberg = &document["paths"]["/iceberg/v1/{prefix}/namespaces"];
    assert!(iceberg["get"].is_object());
}

#[tokio::test]
async fn the_start_page_shows_the_address_it_was_asked_under_and_nothing_else_of_the_caller() {
    let bench = Bench::new().await;
    let page = |host: &'static str| {
        let request = Request::get("/").header("host", host).body(Body::empty());
        bench.router.clone().oneshot(request.expect("a request"))
    };
    let text = |response: http::Response<Body>| async {
        let bytes = to_bytes(response.into_body(), usize::MAX)
            .await
            .expect("a body");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let shown = text(page("lake.example:8181").await.expect("an answer")).await;
    assert!(shown.contains("http://lake.example:8181/iceberg"));
    let shown = text(page("<script>").await.expect("an answer")).await;
    assert!(!shown.contains("<script>"));
}

#[tokio::test]
async fn a_page_of_changes_is_bounded_by_its_bytes_and_the_next_one_goes_on_behind_it() {
    let bench = Bench::new().await;
    let properties: BTreeMap<String, String> = (0..15)
        .map(|number| (format!("property-{number}"), "x".repeat(60_000)))
        .collect();
    let lake = Warehouse::parse("lake").expect("a name");
    let names: Vec<String> = (0..30).map(|number| format!("made-{number:02}")).collect();
    for name in &names {
        let namespace = Namespace::new(vec![name.clone()]).expect("a name");
        let caller = caller();
        let created =
            bench
                .catalog
                .create_namespace(&caller, &lake, &namespace, properties.clone());
        created.await.expect("a namespace");
    }
    let (mut seen, mut after, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let body = json!({"limit": 1000, "after": after});
        let answer = bench.ask(Method::POST, "/v1/changes", Some(body), "").await;
        assert!(answer.text.len() < 9 << 20, "{}", answer.text.len());
        let page = answer.json();
        after = page["next"].clone();
        let changes = page["changes"].as_array().expect("a list");
        if changes.is_empty() {
            break;
        }
        pages += 1;
        seen.extend(changes.iter().map(|change| change["key"]["name"].clone()));
    }
    assert_eq!(&seen[..2], ["default", "lake"]);
    assert_eq!(&seen[2..], names);
    assert_eq!(pages, 4, "each page holds what fits");
}

#[tokio::test]
async fn a_nul_character_is_refused_wherever_it_stands() {
    let bench = Bench::new().await;
    let body = json!({"partition": "a\0b"});
    let by_body = bench.ask(Method::POST, "/v1/changes", Some(body), "").await;
    for (answer, field) in [
        (bench.get("/v1/operations/%00").await, "`key`"),
        (
            bench.get("/v1/changes?partition=a%00b").await,
            "`partition`",
        ),
        (bench.get("/v1/catalogs?metalake=%00").await, "`metalake`"),
        (bench.get("/v1/catalogs/a%00b").await, "`catalog`"),
        (by_body, "`partition`"),
    ] {
        assert_eq!(answer.code(), (400, "INVALID_INPUT".into()));
        assert!(answer.text.contains(field), "{}", answer.text);
    }
}
