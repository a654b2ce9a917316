//! Tables with real manifest lists and manifests, written by hand.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anabranch_catalog::{CatalogError, Committed, PointerKind, TableChange};
use apache_avro::types::{Record, Value};
use apache_avro::{Schema, Writer};
use serde_json::json;

use super::{Server, caller, table, update};

const LIST: &str = r#"{"type": "record", "name": "manifest_file", "fields": [
    {"name": "manifest_path", "type": "string", "field-id": 500},
    {"name": "manifest_length", "type": "long", "field-id": 501}]}"#;

const MANIFEST: &str = r#"{"type": "record", "name": "manifest_entry", "fields": [
    {"name": "status", "type": "int", "field-id": 0},
    {"name": "data_file", "field-id": 2, "type": {"type": "record", "name": "r2", "fields": [
        {"name": "content", "type": "int", "field-id": 134},
        {"name": "file_path", "type": "string", "field-id": 100}]}}]}"#;

/// Live in the manifest.
pub const ADDED: i32 = 1;
/// Only told to be removed.
pub const DELETED: i32 = 2;

/// The folder of a table.
pub async fn folder_of(server: &Server, database: &str, name: &str) -> PathBuf {
    let at = table(&[database], name);
    let pointer = server
        .catalog
        .pointer(&server.lake, &at, PointerKind::Table);
    let location = pointer.await.unwrap().location;
    PathBuf::from(location.strip_prefix("file://").unwrap())
}

/// Writes a file below a folder; answers its URL.
pub fn put(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    format!("file://{}", path.display())
}

/// A manifest with entries of a status, a content (0 data, 1 and 2 deletes) and a path.
pub fn put_manifest(folder: &Path, name: &str, entries: &[(i32, i32, &str)]) -> String {
    let schema = Schema::parse_str(MANIFEST).unwrap();
    let mut writer = Writer::new(&schema, Vec::new());
    for (status, content, path) in entries {
        let mut record = Record::new(&schema).unwrap();
        record.put("status", *status);
        let file = vec![
            ("content".to_owned(), Value::Int(*content)),
            ("file_path".to_owned(), Value::String((*path).to_owned())),
        ];
        record.put("data_file", Value::Record(file));
        writer.append(record).unwrap();
    }
    put(folder, name, &writer.into_inner().unwrap())
}

pub fn put_list(folder: &Path, name: &str, manifests: &[&str]) -> String {
    let schema = Schema::parse_str(LIST).unwrap();
    let mut writer = Writer::new(&schema, Vec::new());
    for manifest in manifests {
        let mut record = Record::new(&schema).unwrap();
        record.put("manifest_path", *manifest);
        record.put("manifest_length", 1_i64);
        writer.append(record).unwrap();
    }
    put(folder, name, &writer.into_inner().unwrap())
}

impl Server {
    /// Makes a snapshot the current one of a table's `main`.
    pub async fn add_snapshot(
        &self,
        database: &str,
        name: &str,
        snapshot: i64,
        list: &str,
    ) -> Result<Committed, CatalogError> {
        let added = json!({
            "snapshot-id": snapshot,
            "sequence-number": snapshot,
            "timestamp-ms": 1_800_000_000_000_i64 + snapshot,
            "manifest-list": list,
            "summary": {"operation": "append"},
            "schema-id": 0
        });
        self.apply(
            database,
            name,
            vec![
                json!({"action": "add-snapshot", "snapshot": added}),
                json!({"action": "set-snapshot-ref", "ref-name": "main", "type": "branch",
                   "snapshot-id": snapshot}),
            ],
        )
        .await
    }

    /// Commits updates to a table, as JSON.
    pub async fn apply(
        &self,
        database: &str,
        name: &str,
        updates: Vec<serde_json::Value>,
    ) -> Result<Committed, CatalogError> {
        let change = TableChange {
            identifier: table(&[database], name),
            requirements: Vec::new(),
            updates: updates.into_iter().map(update).collect(),
        };
        self.commit(&caller(), change).await
    }

    /// What expiring snapshots is to a catalog.
    pub async fn expire(&self, database: &str, name: &str, ids: &[i64]) {
        let removed = json!({"action": "remove-snapshots", "snapshot-ids": ids});
        self.apply(database, name, vec![removed]).await.unwrap();
    }
}

/// Everything below a folder, with slashes, sorted.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    found.sort();
    found
}

/// Makes everything below a folder older than any grace period.
pub fn age_all(folder: &Path) {
    let old = SystemTime::now() - std::time::Duration::from_secs(30 * 24 * 3600);
    for path in files_below(folder) {
        let file = std::fs::File::options().append(true).open(path).unwrap();
        file.set_modified(old).unwrap();
    }
}
