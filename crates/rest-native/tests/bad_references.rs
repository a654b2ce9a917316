//! What can be wrong with a request about branches and tags, or with a name that selects one: each
//! is told in the right class and with what to do instead, and changes nothing.

use anabranch_catalog::{Caller, Catalog, Limits, NewCatalog, Warehouse};
use anabranch_files::{Files, FilesOptions};
use anabranch_http::{RequestLimits, Shapes, Stack};
use anabranch_partition::{Config, Partitions};
use anabranch_rest_native::{LONG_POLLS, Native, error_shape, router};
use anabranch_store::OpenOptions;
use axum::Router;
use axum::body::{Body, to_bytes};
use http::{Method, Request};
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

struct Bench {
    router: Router,
    /// The revisions of `main`, of branch `x` and of the other database's `main`.
    main: String,
    x: String,
    other: String,
    _folder: TempDir,
}

/// A request that something is wrong with.
struct Bad {
    method: Method,
    path: String,
    body: String,
    status: u16,
    /// On `/v1` the code, on Iceberg's routes the type.
    class: &'static str,
    /// What the message names.
    words: Vec<&'static str>,
}

const TREES: &str = "/v1/catalogs/lake/databases/db/trees";
const NAMESPACES: &str = "/iceberg/v1/lake/namespaces";

impl Bench {
    /// A database with table `t`, branch `x` that changed it, and tag `v`; and another database.
    async fn new() -> Bench {
        let folder = TempDir::new().expect("a folder");
        let url = format!("sqlite:{}", folder.path().join("catalog.db").display());
        let options = OpenOptions {
            migrate: true,
            ..OpenOptions::default()
        };
        let opened = anabranch_store::open(&url, &options).await;
        let partitions = Partitions::new(opened.expect("a store"), Config::default());
        let files = Files::new(FilesOptions::default());
        let catalog = Catalog::new(partitions, files, Limits::default());
        let base = format!("file://{}", folder.path().display());
        let lake = NewCatalog {
            warehouse: Warehouse::parse("lake").expect("a name"),
            location: format!("{base}/warehouse"),
            properties: Default::default(),
        };
        let caller = Caller {
            principal: "anabranch".into(),
            idempotency_key: None,
            fingerprint: String::new(),
            patience: std::time::Duration::from_secs(10),
        };
        let ensured = catalog.ensure_catalog(&caller, &lake).await;
        ensured.expect("the first catalog");
        let native = Native {
            catalog: catalog.clone(),
            metrics: PrometheusBuilder::new().build_recorder().handle(),
            catalogs_location: Some(format!("{base}/catalogs")),
            iceberg_endpoints: &[],
            described: Vec::new(),
            stopping: CancellationToken::new(),
        };
        let iceberg = anabranch_rest_iceberg::router(catalog, Default::default());
        let routes = router(native).nest(anabranch_rest_iceberg::BASE, iceberg);
        let shapes = Shapes::new(error_shape)
            .under(anabranch_rest_iceberg::BASE, anabranch_rest_iceberg::Errors);
        let stack = Stack::new(shapes, RequestLimits::default()).long_poll(LONG_POLLS);
        let mut bench = Bench {
            router: stack.around(routes),
            main: String::new(),
            x: String::new(),
            other: String::new(),
            _folder: folder,
        };
        bench.set_up().await;
        bench
    }

    async fn set_up(&mut self) {
        let schema = json!({"type": "struct", "fields": []});
        let source = json!({"type": "BRANCH", "name": "main"});
        let set = json!([{"action": "set-properties", "updates": {"p": "1"}}]);
        let there = format!("{NAMESPACES}/db$branch_x/tables/t");
        for (path, body) in [
            (NAMESPACES.to_owned(), json!({"namespace": ["db"]})),
            (NAMESPACES.to_owned(), json!({"namespace": ["db", "in"]})),
            (NAMESPACES.to_owned(), json!({"namespace": ["other"]})),
            (
                format!("{NAMESPACES}/db/tables"),
                json!({"name": "t", "schema": schema}),
            ),
            (
                TREES.to_owned(),
                json!({"type": "BRANCH", "name": "x", "source": source}),
            ),
            (there, json!({"requirements": [], "updates": set})),
            (
                TREES.to_owned(),
                json!({"type": "TAG", "name": "v", "source": source}),
            ),
        ] {
            let (status, answer) = self.ask(Method::POST, &path, body.to_string()).await;
            assert_eq!(status, 200, "{path}: {answer}");
        }
        self.main = self.revision(&format!("{TREES}/main")).await;
        self.x = self.revision(&format!("{TREES}/x")).await;
        self.other = self
            .revision("/v1/catalogs/lake/databases/other/trees/main")
            .await;
    }

    async fn revision(&self, path: &str) -> String {
        let (_, shown) = self.ask(Method::GET, path, String::new()).await;
        let revision = shown["reference"]["revision"].as_str();
        revision.expect("a revision").to_owned()
    }

    async fn ask(&self, method: Method, path: &str, body: String) -> (u16, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(Body::from(body));
        let answered = self
            .router
            .clone()
            .oneshot(request.expect("a request"))
            .await;
        let (parts, body) = answered.expect("an answer").into_parts();
        let bytes = to_bytes(body, usize::MAX).await.expect("a body");
        let answer = serde_json::from_slice(&bytes);
        let text = || json!(String::from_utf8_lossy(&bytes));
        (parts.status.as_u16(), answer.unwrap_or_else(|_| text()))
    }

    /// All changes so far, and what all references show.
    async fn everything(&self) -> (Value, Value) {
        let (status, changes) = self
            .ask(Method::GET, "/v1/changes?limit=1000", String::new())
            .await;
        assert_eq!(status, 200, "{changes}");
        let (_, references) = self.ask(Method::GET, TREES, String::new()).await;
        (changes, references)
    }

    /// What is wrong with how it is told, if anything is.
    async fn tell(&self, bad: &Bad) -> Option<String> {
        let (status, answer) = self
            .ask(bad.method.clone(), &bad.path, bad.body.clone())
            .await;
        let error = &answer["error"];
        let is_iceberg = bad.path.starts_with(anabranch_rest_iceberg::BASE);
        let class = if is_iceberg {
            &error["type"]
        } else {
            &error["code"]
        };
        let message = error["message"].as_str().unwrap_or_default();
        let is_short = message.len() < 1000;
        let names = bad.words.iter().all(|word| message.contains(word));
        if status == bad.status && class == bad.class && names && is_short {
            return None;
        }
        let cut = |text: &str| text.chars().take(300).collect::<String>();
        Some(format!(
            "{} {} {}: {status} {}, not {} {} with {:?}",
            bad.method,
            cut(&bad.path),
            cut(&bad.body),
            cut(&answer.to_string()),
            bad.status,
            bad.class,
            bad.words
        ))
    }

    /// Each is told as it should be and changes nothing.
    async fn all_are_told(&self, all: &[Bad]) {
        let before = self.everything().await;
        let mut wrongs = Vec::new();
        for bad in all {
            wrongs.extend(self.tell(bad).await);
        }
        assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
        assert_eq!(self.everything().await, before);
    }
}

fn bad(
    method: Method,
    path: impl Into<String>,
    body: impl ToString,
    (status, class): (u16, &'static str),
    words: &[&'static str],
) -> Bad {
    Bad {
        method,
        path: path.into(),
        body: body.to_string(),
        status,
        class,
        words: words.to_vec(),
    }
}

const INVALID: (u16, &str) = (400, "INVALID_INPUT");
const MISSING: (u16, &str) = (404, "NOT_FOUND");
const CONFLICT: (u16, &str) = (409, "CONFLICT");
const TOO_LARGE: (u16, &str) = (413, "INVALID_INPUT");

/// What creates a branch from `main`, with members changed.
fn new_branch(changes: Value) -> Value {
    let source = json!({"type": "BRANCH", "name": "main"});
    changed(
        json!({"type": "BRANCH", "name": "new", "source": source}),
        changes,
    )
}

/// What merges branch `x`, with members changed.
fn merge_of_x(changes: Value) -> Value {
    changed(json!({"source": {"type": "BRANCH", "name": "x"}}), changes)
}

fn changed(mut body: Value, changes: Value) -> Value {
    let changes = changes.as_object().expect("an object").clone();
    body.as_object_mut().expect("an object").extend(changes);
    body
}

#[tokio::test]
async fn a_bad_creation_is_refused_and_changes_nothing() {
    let bench = Bench::new().await;
    let post =
        |body: Value, class, words: &[&'static str]| bad(Method::POST, TREES, body, class, words);
    let named = |name: &str, words: &[&'static str]| {
        post(new_branch(json!({"name": name})), INVALID, words)
    };
    let from = |source: Value, class, words: &[&'static str]| {
        post(new_branch(json!({"source": source})), class, words)
    };
    let branch =
        |name: &str, revision: &str| json!({"type": "BRANCH", "name": name, "revision": revision});
    let huge = "n".repeat(1_000_000);
    let mut all: Vec<Bad> = [
        "", " ", "-a", ".a", "_a", "a b", "a/b", "a$b", "é", "a\u{0}", &huge,
    ]
    .iter()
    .map(|name| named(name, &["`name`", "1 to 128 letters"]))
    .collect();
    all.extend([
        named(&"n".repeat(129), &["`name`", "1 to 128"]),
        post(
            new_branch(json!({"name": "main"})),
            (409, "ALREADY_EXISTS"),
            &["main", "exists"],
        ),
        named("rev-1", &["`name`", "reads as a revision"]),
        named(
            &format!("rev-{}", bench.x),
            &["`name`", "reads as a revision"],
        ),
        post(
            new_branch(json!({"name": "x"})),
            (409, "ALREADY_EXISTS"),
            &["x", "exists"],
        ),
        post(
            new_branch(json!({"type": "TAG", "name": "x"})),
            (409, "ALREADY_EXISTS"),
            &["x"],
        ),
        post(
            new_branch(json!({"type": "LEAF"})),
            INVALID,
            &["`type`", "BRANCH or TAG"],
        ),
        post(
            new_branch(json!({"type": "branch"})),
            INVALID,
            &["`type`", "BRANCH or TAG"],
        ),
        post(new_branch(json!({"type": 1})), INVALID, &["type"]),
        post(new_branch(json!({"name": 1})), INVALID, &["name"]),
        post(new_branch(json!({"name": null})), INVALID, &["name"]),
        post(new_branch(json!({"source": null})), INVALID, &["source"]),
        post(new_branch(json!({"source": "main"})), INVALID, &["source"]),
        post(
            new_branch(json!({"source": {"type": "BRANCH"}})),
            INVALID,
            &["source"],
        ),
        post(json!([]), INVALID, &[]),
        post(json!("new"), INVALID, &[]),
        bad(Method::POST, TREES, "", INVALID, &[]),
        bad(Method::POST, TREES, "{\"name\":", INVALID, &[]),
        bad(Method::POST, TREES, "[".repeat(100_000), INVALID, &[]),
        bad(
            Method::POST,
            TREES,
            format!("{{\"name\":\"{}\"}}", "n".repeat(40_000_000)),
            TOO_LARGE,
            &[],
        ),
        post(
            new_branch(json!({"expectedRevision": "soon"})),
            CONFLICT,
            &["expected soon"],
        ),
        post(
            new_branch(json!({"expectedRevision": bench.x})),
            CONFLICT,
            &["not at the expected"],
        ),
        post(
            new_branch(json!({"expectedRevision": -1})),
            INVALID,
            &["expectedRevision"],
        ),
        from(
            json!({"type": "BRANCH", "name": "gone"}),
            MISSING,
            &["gone"],
        ),
        from(json!({"type": "TAG", "name": "x"}), MISSING, &["x"]),
        from(json!({"type": "BRANCH", "name": "v"}), MISSING, &["v"]),
        from(
            json!({"type": "BRANCH", "name": "rev-1"}),
            MISSING,
            &["rev-1"],
        ),
        from(
            json!({"type": "LEAF", "name": "x"}),
            INVALID,
            &["`source.type`", "BRANCH or TAG"],
        ),
        from(branch("main", "-1"), INVALID, &["`source.revision`"]),
        from(branch("main", "0--1"), INVALID, &["`source.revision`"]),
        from(branch("main", "garbage"), INVALID, &["`source.revision`"]),
        from(branch("main", ""), INVALID, &["`source.revision`"]),
        from(branch("main", &huge), INVALID, &["`source.revision`"]),
        from(
            branch("main", "0-7fffffffffffffff"),
            INVALID,
            &["`source.revision`", "no state of"],
        ),
        from(
            branch("main", &bench.x),
            INVALID,
            &["`source.revision`", "no state of"],
        ),
        from(
            branch("x", &bench.main),
            INVALID,
            &["`source.revision`", "no state of"],
        ),
        from(
            branch("x", &bench.other),
            INVALID,
            &["`source.revision`", "no state of"],
        ),
    ]);
    bench.all_are_told(&all).await;
}

#[tokio::test]
async fn a_bad_merge_is_refused_and_changes_nothing() {
    let bench = Bench::new().await;
    let into = |target: &str, changes: Value, class, words: &[&'static str]| {
        bad(
            Method::POST,
            format!("{TREES}/{target}/merge"),
            merge_of_x(changes),
            class,
            words,
        )
    };
    let main = |changes, class, words: &[&'static str]| into("main", changes, class, words);
    let modes = |modes: Value, words: &[&'static str]| {
        main(json!({"tableMergeModes": modes}), INVALID, words)
    };
    let many: Vec<_> = (0..5000)
        .map(|number| json!({"table": format!("t{}", number % 4999), "mergeMode": "DROP"}))
        .collect();
    let all = [
        into("v", json!({}), CONFLICT, &["tag", "merge into a branch"]),
        into("gone", json!({}), MISSING, &["gone"]),
        into("rev-1", json!({}), MISSING, &["rev-1"]),
        into(
            &format!("rev-{}", bench.main),
            json!({}),
            MISSING,
            &["rev-"],
        ),
        into(&"n".repeat(20_000), json!({}), INVALID, &["`name`", "128"]),
        main(
            json!({"defaultMergeMode": "MAYBE"}),
            INVALID,
            &["`defaultMergeMode`", "NORMAL, FORCE or DROP"],
        ),
        main(
            json!({"defaultMergeMode": "force"}),
            INVALID,
            &["`defaultMergeMode`", "NORMAL, FORCE or DROP"],
        ),
        main(
            json!({"defaultMergeMode": 1}),
            INVALID,
            &["defaultMergeMode"],
        ),
        modes(
            json!([{"table": "t", "mergeMode": "MAYBE"}]),
            &["`tableMergeModes[0].mergeMode`", "FORCE"],
        ),
        modes(
            json!([{"table": "t", "mergeMode": "DROP"}, {"table": "t", "mergeMode": "DROP"}]),
            &["`tableMergeModes`", "twice"],
        ),
        modes(json!(many), &["`tableMergeModes`", "twice"]),
        modes(json!([{"table": "t"}]), &["mergeMode"]),
        modes(json!([{"mergeMode": "DROP"}]), &["table"]),
        modes(json!({"t": "DROP"}), &["tableMergeModes"]),
        modes(json!(["t"]), &["tableMergeModes"]),
        main(json!({"dryRun": "yes"}), INVALID, &["dryRun"]),
        main(
            json!({"expectedRevision": "garbage"}),
            CONFLICT,
            &["not at the expected garbage"],
        ),
        main(
            json!({"expectedRevision": bench.x}),
            CONFLICT,
            &["not at the expected"],
        ),
        main(
            json!({"expectedRevision": -1}),
            INVALID,
            &["expectedRevision"],
        ),
        main(
            json!({"expectedRevision": "soon", "dryRun": true}),
            CONFLICT,
            &["expected soon"],
        ),
        main(
            json!({"source": {"type": "BRANCH", "name": "x", "revision": "-1"}}),
            INVALID,
            &["`source.revision`"],
        ),
        main(
            json!({"source": {"type": "BRANCH", "name": "x", "revision": bench.other}}),
            INVALID,
            &["`source.revision`"],
        ),
        main(
            json!({"source": {"type": "TAG", "name": "v", "revision": bench.x}}),
            INVALID,
            &["`source.revision`"],
        ),
        main(
            json!({"source": {"type": "TAG", "name": "x"}}),
            MISSING,
            &["x"],
        ),
        main(
            json!({"source": {"type": "BRANCH", "name": "gone"}}),
            MISSING,
            &["gone"],
        ),
        main(
            json!({"source": {"type": "BRANCH", "name": "n".repeat(1_000_000)}}),
            INVALID,
            &["`source.name`", "128"],
        ),
        main(
            json!({"expectedRevision": "n".repeat(1_000_000)}),
            CONFLICT,
            &["not at the expected"],
        ),
        main(json!({"source": []}), INVALID, &["source"]),
    ];
    bench.all_are_told(&all).await;
}

#[tokio::test]
async fn a_bad_look_change_or_deletion_is_refused_and_changes_nothing() {
    let bench = Bench::new().await;
    let get = |path: &str, class, words: &[&'static str]| {
        bad(
            Method::GET,
            format!("/v1/catalogs/lake/databases/{path}"),
            "",
            class,
            words,
        )
    };
    let delete = |name: &str, body: Value, class, words: &[&'static str]| {
        bad(
            Method::DELETE,
            format!("{TREES}/{name}"),
            body,
            class,
            words,
        )
    };
    let patch = |body: Value, words: &[&'static str]| {
        bad(Method::PATCH, format!("{TREES}/x"), body, INVALID, words)
    };
    let all = [
        get("gone/trees", MISSING, &["gone"]),
        get("db$branch_x/trees", INVALID, &["selects a reference", "db"]),
        get("db$tag_v/trees", INVALID, &["selects a reference"]),
        get(
            &format!("db$tag_rev-{}/trees", bench.x),
            INVALID,
            &["selects a reference"],
        ),
        get("db$branch_x$tag_v/trees", INVALID, &[]),
        get("$branch_x/trees", INVALID, &["name the database"]),
        get("db/trees?type=leaf", INVALID, &["`type`", "branch or tag"]),
        get("db/trees?maxResults=many", INVALID, &["maxResults"]),
        get("db/trees?maxResults=-1", INVALID, &["maxResults"]),
        get("db/trees?pageToken=garbage", INVALID, &["oken"]),
        get("db/trees/gone", MISSING, &["gone"]),
        get("db/trees/rev-1", MISSING, &["rev-1"]),
        delete("gone", json!({}), MISSING, &["gone"]),
        delete("main", json!({}), CONFLICT, &["main", "protected"]),
        delete("x", json!({"type": "TAG"}), CONFLICT, &["x", "branch"]),
        delete("v", json!({"type": "BRANCH"}), CONFLICT, &["v", "tag"]),
        delete("x", json!({"type": "LEAF"}), INVALID, &["`type`"]),
        delete(
            "x",
            json!({"expectedRevision": "garbage"}),
            CONFLICT,
            &["not at the expected"],
        ),
        delete(
            "x",
            json!({"expectedRevision": bench.main}),
            CONFLICT,
            &["not at the expected"],
        ),
        delete(
            "x",
            json!({"expectedRevision": 1}),
            INVALID,
            &["`expectedRevision`"],
        ),
        delete("x", json!([]), INVALID, &["body"]),
        delete("x", json!("x"), INVALID, &["body"]),
        patch(json!({}), &["protected"]),
        patch(json!({"protected": "yes"}), &["protected"]),
        patch(json!({"protected": true, "name": "y"}), &["name"]),
    ];
    bench.all_are_told(&all).await;
}

#[tokio::test]
async fn a_selector_where_none_belongs_is_refused_and_changes_nothing() {
    const REQUEST: (u16, &str) = (400, "BadRequestException");
    const FORBIDDEN: (u16, &str) = (403, "ForbiddenException");
    const NO_NAMESPACE: (u16, &str) = (404, "NoSuchNamespaceException");
    let bench = Bench::new().await;
    let create = |levels: &[&str], class, words: &[&'static str]| {
        bad(
            Method::POST,
            NAMESPACES,
            json!({"namespace": levels}),
            class,
            words,
        )
    };
    let at = |method, rest: &str, body: Value, class, words: &[&'static str]| {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        bad(method, format!("{NAMESPACES}/{rest}"), body, class, words)
    };
    let pin = format!("db$tag_rev-{}", bench.main);
    let table = || json!({"name": "n", "schema": {"type": "struct", "fields": []}});
    let set = || json!({"removals": [], "updates": {"p": "1"}});
    let all = [
        create(&["db$branch_x"], REQUEST, &["db$branch_x"]),
        create(&["new$branch_x"], REQUEST, &["new$branch_x"]),
        create(&["new$tag_v"], REQUEST, &["new$tag_v"]),
        create(&["db", "in$branch_x"], REQUEST, &["$branch_x"]),
        create(&["db$branch_gone", "in"], REQUEST, &["db$branch_gone"]),
        create(
            &["db$tag_v", "new"],
            FORBIDDEN,
            &["db$tag_v", "never changes"],
        ),
        create(&["$branch_x", "new"], REQUEST, &["name the database"]),
        at(
            Method::DELETE,
            "db$branch_x",
            Value::Null,
            REQUEST,
            &["db$branch_x"],
        ),
        at(
            Method::DELETE,
            "db$tag_v",
            Value::Null,
            FORBIDDEN,
            &["db$tag_v"],
        ),
        at(
            Method::DELETE,
            "db$tag_v%1Fin",
            Value::Null,
            FORBIDDEN,
            &["never changes"],
        ),
        at(
            Method::POST,
            "db$branch_x/properties",
            set(),
            REQUEST,
            &["db$branch_x"],
        ),
        at(
            Method::POST,
            "db$tag_v%1Fin/properties",
            set(),
            FORBIDDEN,
            &["never changes"],
        ),
        at(
            Method::GET,
            "db$branch_x$tag_v",
            Value::Null,
            REQUEST,
            &["name of a reference"],
        ),
        at(
            Method::GET,
            "db%1Fin$branch_x",
            Value::Null,
            REQUEST,
            &["$branch_x"],
        ),
        at(
            Method::GET,
            "db$branch_",
            Value::Null,
            REQUEST,
            &["name of a reference"],
        ),
        at(
            Method::GET,
            "db$tag_rev-garbage/tables",
            Value::Null,
            REQUEST,
            &["rev-"],
        ),
        at(
            Method::GET,
            "db$tag_rev--1/tables",
            Value::Null,
            REQUEST,
            &["rev-"],
        ),
        at(
            Method::GET,
            "db$tag_rev-0-7fffffffffffffff/tables",
            Value::Null,
            NO_NAMESPACE,
            &["rev-"],
        ),
        at(
            Method::GET,
            "db$branch_gone/tables",
            Value::Null,
            NO_NAMESPACE,
            &["db$branch_gone"],
        ),
        at(
            Method::GET,
            "db$branch_v/tables",
            Value::Null,
            NO_NAMESPACE,
            &["db$branch_v"],
        ),
        at(
            Method::GET,
            &format!("other$tag_rev-{}/tables", bench.x),
            Value::Null,
            NO_NAMESPACE,
            &["rev-"],
        ),
        at(
            Method::POST,
            "db$tag_v/tables",
            table(),
            FORBIDDEN,
            &["db$tag_v", "never changes"],
        ),
        at(
            Method::POST,
            &format!("{pin}/tables"),
            table(),
            FORBIDDEN,
            &["never changes"],
        ),
        at(
            Method::POST,
            "db$branch_gone/tables",
            table(),
            NO_NAMESPACE,
            &["db$branch_gone"],
        ),
        at(
            Method::DELETE,
            "db$tag_v/tables/t",
            Value::Null,
            FORBIDDEN,
            &["never changes"],
        ),
    ];
    bench.all_are_told(&all).await;
}
