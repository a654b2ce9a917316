//! What a run was asked to do and what it found, as its task keeps it.

use anabranch_store::PartitionId;
use serde::{Deserialize, Serialize};

/// The job.
pub(crate) const GC_TASK: &str = "gc";

/// Files that a report names, at most; totals count them all.
const MOST_FILES: usize = 10_000;
/// Problems that a report names, at most.
const MOST_UNREADABLE: usize = 1000;

/// A run: its task's body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GcBody {
    pub(crate) catalog: PartitionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) database: Option<PartitionId>,
    /// Whether it only says what would be removed.
    pub dry_run: bool,
    /// How old a file must be to go.
    pub grace_millis: u64,
    /// How many places it has marked.
    #[serde(default)]
    pub(crate) marks: u32,
    /// How far it is.
    pub state: GcState,
    /// What it found and did so far.
    pub report: GcReport,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum GcState {
    /// No server took it yet.
    Queued,
    /// A server works on it, or died at it and another one will go on.
    Running,
    /// It has ended.
    Done,
}

/// Files and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// How many.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Files that stay, by the first reason that holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GcKept {
    /// Younger than the grace period.
    pub young: u64,
    /// In a folder, or with a name, that begins with `_` or `.`.
    pub hidden: u64,
    /// A table lies there that isn't part of the run, or may not be purged.
    pub elsewhere: u64,
    /// A version that is kept names them.
    pub needed: u64,
    /// Of a table whose metadata can't be read in full.
    pub unreadable: u64,
}

/// What a run found and did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GcReport {
    /// Locations of tables that were looked through.
    pub places: u64,
    /// Metadata documents read.
    pub documents: u64,
    /// Manifest lists and manifests read.
    pub manifests: u64,
    /// What nothing needs.
    pub garbage: Total,
    /// What this run deleted; after a crash, at least.
    pub removed: Total,
    /// What stays.
    pub kept: GcKept,
    /// What nothing needs, the first of it.
    pub files: Vec<GcFile>,
    /// What could not be read, and so keeps all files of its table.
    pub unreadable: Vec<GcUnreadable>,
}

/// A file that nothing needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GcFile {
    /// Where it is.
    pub location: String,
    /// Its size.
    pub bytes: u64,
    /// What it is by its name.
    pub kind: FileKind,
    /// Whether manifests that are kept tell that it was removed.
    pub told_removed: bool,
    /// A table in whose location it lies.
    pub table: String,
}

/// What a file is by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FileKind {
    /// A metadata document.
    Metadata,
    /// A manifest list.
    ManifestList,
    /// A manifest.
    Manifest,
    /// Statistics, or deletion vectors.
    Puffin,
    /// Anything else: data and delete files, partition statistics.
    Data,
}

/// A table whose files all stay because something of it can't be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GcUnreadable {
    /// The table.
    pub table: String,
    /// What can't be read.
    pub location: String,
    /// Why.
    pub problem: String,
}

impl FileKind {
    pub(crate) fn of(name: &str) -> FileKind {
        if name.contains(".metadata.json") {
            FileKind::Metadata
        } else if name.ends_with(".avro") && name.starts_with("snap-") {
            FileKind::ManifestList
        } else if name.ends_with(".avro") {
            FileKind::Manifest
        } else if name.ends_with(".puffin") || name.ends_with(".stats") {
            FileKind::Puffin
        } else {
            FileKind::Data
        }
    }
}

impl GcFile {
    /// Why nothing needs it, in one sentence.
    pub fn why(&self) -> &'static str {
        if self.told_removed {
            return "kept manifests only tell that it was removed";
        }
        match self.kind {
            FileKind::Metadata => "no kept version is this document, and no log of one names it",
            FileKind::ManifestList => "no snapshot of a kept version names it",
            FileKind::Manifest => "no manifest list of a kept version names it",
            FileKind::Puffin => "no kept version names it as statistics or deletes",
            FileKind::Data => "no manifest of a kept version names it",
        }
    }
}

impl GcBody {
    pub(crate) fn write(&self) -> String {
        // Plain fields always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(crate) fn read(text: &str) -> Option<GcBody> {
        serde_json::from_str(text).ok()
    }
}

impl GcReport {
    pub(crate) fn found(&mut self, file: GcFile) {
        self.garbage.files += 1;
        self.garbage.bytes += file.bytes;
        if self.files.len() < MOST_FILES {
            self.files.push(file);
        }
    }

    pub(crate) fn cannot_read(&mut self, what: GcUnreadable) {
        if self.unreadable.len() < MOST_UNREADABLE && !self.unreadable.contains(&what) {
            self.unreadable.push(what);
        }
    }
}
