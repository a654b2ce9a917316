//! What is left of all cases, when a long time has gone by and the jobs have gone over it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::matrix::Wrong;
use crate::point::after;
use crate::requests::{Answer, Request, load_table, load_view};
use crate::server::Server;
use crate::trees::{at, on};
use crate::world::World;

/// Nothing is retained, and every file is old.
const HASTY: [&str; 6] = [
    "--history-retention",
    "1ms",
    "--sweep-grace",
    "1ms",
    "--job-interval",
    "20ms",
];
const DATA_FILE: &str = "data/0.parquet";

#[derive(Default)]
pub struct Aftermath {
    /// Places of what was taken out of the catalog and whose files stay.
    left: Vec<PathBuf>,
    /// Data files that were put into tables.
    data: Vec<PathBuf>,
}

/// What a live table or view needs.
#[derive(Default)]
struct Needed {
    files: BTreeSet<PathBuf>,
    tables: Vec<PathBuf>,
}

impl Aftermath {
    /// Notes a table or view of a setup, and puts a data file into a table, as its writer would.
    pub fn add(&mut self, answer: &Value, leaves_files: bool) {
        let metadata = &answer["metadata"];
        let is_staged = answer["metadata-location"].is_null();
        let Some(location) = metadata["location"].as_str().filter(|_| !is_staged) else {
            return;
        };
        let place = path_of(location);
        if metadata["table-uuid"].is_string() {
            let file = place.join(DATA_FILE);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "data").unwrap();
            self.data.push(file);
        }
        if leaves_files {
            self.left.push(place);
        }
    }

    pub async fn check(&self, world: &World) -> Result<(), Wrong> {
        let due = "UPDATE task SET due = 0, lease_until = NULL";
        world.run_sql(due).await;
        let server = world.server_with("hasty", &HASTY, "").await;
        let jobs = jobs_to_their_end(world, &server).await;
        let needed = needed(&server).await;
        server.stop().await;
        jobs?;
        let mut present = BTreeSet::new();
        list(&path_of(&world.warehouse()), &mut present);
        self.compare(&needed?, &present)
    }

    /// What is needed is there, and what is there is needed.
    fn compare(&self, needed: &Needed, present: &BTreeSet<PathBuf>) -> Result<(), Wrong> {
        let table_of = |file: &PathBuf| needed.tables.iter().find(|table| file.starts_with(table));
        let data = self.data.iter().filter(|file| table_of(file).is_some());
        let missing = needed
            .files
            .iter()
            .chain(data)
            .find(|file| !present.contains(*file));
        if let Some(missing) = missing {
            return Err(format!("a live table needs {}", missing.display()));
        }
        let may_stay = |file: &PathBuf| match table_of(file) {
            Some(_) => needed.files.contains(file) || self.data.contains(file),
            None => self.left.iter().any(|place| file.starts_with(place)),
        };
        match present.iter().find(|file| !may_stay(file)) {
            None => Ok(()),
            Some(file) => Err(format!("nothing needs {}", file.display())),
        }
    }
}

/// Waits until nothing but the recurring jobs is to be done, and these were done after all else.
async fn jobs_to_their_end(world: &World, server: &Server) -> Result<(), Wrong> {
    let others = "SELECT count(*) FROM task WHERE kind NOT IN ('prune', 'sweep')";
    loop {
        rounds(server, 1).await;
        if world.log().contains("failed, and is tried again") {
            return Err("a job failed".to_owned());
        }
        if world.count(others).await == 0 {
            break;
        }
    }
    // What is pruned in one round is swept in the next.
    rounds(server, 3).await;
    Ok(())
}

/// Waits until the two recurring jobs, which take turns, were done so often.
async fn rounds(server: &Server, count: u64) {
    let done = server.pause(after("postpone_task").nth(2 * count)).await;
    assert!(done.reached().await, "the server ended");
    done.resume().await;
}

/// Loads all that there is.
async fn needed(server: &Server) -> Result<Needed, Wrong> {
    let mut needed = Needed::default();
    let catalogs = get(server, "/v1/catalogs".to_owned()).await?;
    for catalog in texts(&catalogs["catalogs"], "name") {
        let base = format!("/iceberg/v1/{catalog}/namespaces");
        let mut parents = vec![None];
        while let Some(parent) = parents.pop() {
            let query = parent.map_or(String::new(), |levels: String| format!("?parent={levels}"));
            let inner = get(server, format!("{base}{query}")).await?;
            for namespace in inner["namespaces"].as_array().into_iter().flatten() {
                let levels: Vec<String> = namespace
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|level| Some(level.as_str()?.to_owned()))
                    .collect();
                parents.push(Some(levels.join("%1F")));
                needed.add_all_of(server, &catalog, &levels).await?;
                if let [database] = &levels[..] {
                    for selected in selected(server, &catalog, database).await? {
                        parents.push(Some(selected.clone()));
                        needed.add_all_of(server, &catalog, &[selected]).await?;
                    }
                }
            }
        }
    }
    Ok(needed)
}

/// The database's name with each of its branches and tags selected, but for `main`.
async fn selected(server: &Server, catalog: &str, database: &str) -> Result<Vec<String>, Wrong> {
    let path = format!("/v1/catalogs/{catalog}/databases/{database}/trees");
    let listed = get(server, path).await?;
    let references = listed["references"].as_array().into_iter().flatten();
    let names = references.filter_map(|reference| {
        let name = reference["name"].as_str().filter(|name| *name != "main")?;
        match reference["type"].as_str()? {
            "TAG" => Some(at(database, name)),
            _ => Some(on(database, name)),
        }
    });
    Ok(names.collect())
}

impl Needed {
    /// Adds the tables and views of a namespace.
    async fn add_all_of(
        &mut self,
        server: &Server,
        catalog: &str,
        levels: &[String],
    ) -> Result<(), Wrong> {
        let name = levels.join(".");
        let path = format!("/iceberg/v1/{catalog}/namespaces/{}", levels.join("%1F"));
        let tables = get(server, format!("{path}/tables")).await?;
        for table in texts(&tables["identifiers"], "name") {
            let load = load_table(&name, &table).of(catalog);
            self.add(&asked(server, &load).await?.body);
        }
        let views = get(server, format!("{path}/views")).await?;
        for view in texts(&views["identifiers"], "name") {
            let load = load_view(&name, &view).of(catalog);
            self.add(&asked(server, &load).await?.body);
        }
        Ok(())
    }

    fn add(&mut self, loaded: &Value) {
        let metadata = &loaded["metadata"];
        let table = path_of(metadata["location"].as_str().expect("a location"));
        let log = texts(&metadata["metadata-log"], "metadata-file");
        let current = loaded["metadata-location"].as_str().expect("a location");
        self.files.extend(log.iter().map(|file| path_of(file)));
        self.files.insert(path_of(current));
        self.tables.push(table);
    }
}

async fn get(server: &Server, path: String) -> Result<Value, Wrong> {
    Ok(asked(server, &Request::get(path)).await?.body)
}

async fn asked(server: &Server, request: &Request) -> Result<Answer, Wrong> {
    let answer = server.send(request).await;
    match answer {
        Some(answer) if answer.is_success() => Ok(answer),
        other => Err(format!(
            "{}: {}",
            request.path,
            super::observation::short(&other)
        )),
    }
}

fn texts(values: &Value, member: &str) -> Vec<String> {
    let values = values.as_array().into_iter().flatten();
    let texts = values.filter_map(|value| value[member].as_str());
    texts.map(str::to_owned).collect()
}

fn path_of(url: &str) -> PathBuf {
    PathBuf::from(url.strip_prefix("file://").expect("a local place"))
}

/// All files below a folder, which may be absent.
fn list(folder: &Path, files: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => list(&entry.path(), files),
            false => {
                files.insert(entry.path());
            }
        }
    }
}

#[test]
fn a_missing_and_a_left_over_file_are_noticed() {
    let path = |path: &str| PathBuf::from(path);
    let files = |paths: &[&str]| paths.iter().map(|&one| path(one)).collect::<BTreeSet<_>>();
    let needed = Needed {
        files: files(&["/w/t/metadata/1.json"]),
        tables: vec![path("/w/t")],
    };
    let aftermath = Aftermath {
        left: vec![path("/w/dropped")],
        data: vec![
            path("/w/t/data/0.parquet"),
            path("/w/purged/data/0.parquet"),
        ],
    };
    let right = [
        "/w/t/metadata/1.json",
        "/w/t/data/0.parquet",
        "/w/dropped/metadata/1.json",
    ];
    let found = |present: &[&str]| aftermath.compare(&needed, &files(present));
    assert_eq!(found(&right), Ok(()));
    for missing in [&right[1..], &right[..1]] {
        assert!(
            found(missing)
                .unwrap_err()
                .starts_with("a live table needs")
        );
    }
    for too_much in [
        "/w/t/metadata/2.json",
        "/w/never/metadata/1.json",
        "/w/purged/data/0.parquet",
    ] {
        let present = [&right[..], &[too_much]].concat();
        assert_eq!(found(&present), Err(format!("nothing needs {too_much}")));
    }
}
