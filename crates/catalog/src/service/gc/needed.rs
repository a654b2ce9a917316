//! Takes what kept versions name out of the candidates.

use std::collections::{HashMap, HashSet};

use anabranch_files::{Files, Location};
use anabranch_iceberg::TableMetadata;
use anabranch_manifests::{ManifestError, Status, read_manifest, read_manifest_list};
use anabranch_store::ObjectId;
use bytes::Bytes;
use futures::StreamExt;
use serde::Deserialize;

use super::OfCatalog;
use super::body::{GcReport, GcUnreadable};
use super::places::{Holdings, Kept, Places};
use crate::service::Core;
use crate::service::document::Content;

/// Files read side by side, at most.
const READS_AT_ONCE: usize = 8;

/// What is known of a candidate.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) file: Location,
    pub(super) bytes: u64,
    pub(super) is_needed: bool,
    /// A kept manifest tells that it was removed.
    pub(super) told_removed: bool,
}

/// Reads what is kept, each file once, also over several calls.
#[derive(Default)]
pub(super) struct Reader {
    documents: HashSet<OfCatalog>,
    lists: HashSet<OfCatalog>,
    manifests: HashSet<OfCatalog>,
    /// In which other places an object has files.
    elsewhere: HashMap<ObjectId, HashSet<String>>,
    /// Places of which all files stay, because something there can't be read.
    unreadable: HashSet<String>,
    unreadable_objects: HashSet<ObjectId>,
}

/// What a document names.
#[derive(Default)]
struct Named {
    files: Vec<String>,
    lists: Vec<String>,
    manifests: Vec<String>,
}

/// Why something can't be read, as the report says it.
type Problem = String;

impl Reader {
    /// Whether the file lies in a place of which all files stay.
    pub(super) fn keeps(&self, canonical: &str) -> bool {
        let mut folder = canonical;
        while let Some((above, _)) = folder.rsplit_once('/') {
            if self.unreadable.contains(above) {
                return true;
            }
            folder = above;
        }
        false
    }
}

impl Core {
    /// Takes what the holdings need out of the candidates; what an earlier call read isn't read
    /// again, so give all calls of a reader the same candidates.
    pub(super) async fn take_out_needed(
        &self,
        reader: &mut Reader,
        holdings: &Holdings,
        places: &Places,
        candidates: &mut HashMap<String, Verdict>,
        report: &mut GcReport,
    ) {
        for kept in &holdings.kept {
            let location = &kept.held.pointer.metadata_location;
            if reader.documents.contains(&(kept.catalog, location.clone())) {
                continue;
            }
            let mut seen = Seen {
                reader,
                kept,
                places,
                candidates,
            };
            match self.read_kept(&mut seen, holdings, report).await {
                Ok(()) => {
                    let document = (kept.catalog, location.clone());
                    reader.documents.insert(document);
                }
                Err((location, problem)) => {
                    report.cannot_read(GcUnreadable {
                        table: holdings.label(kept),
                        location,
                        problem,
                    });
                    reader.unreadable_objects.insert(kept.held.object);
                    let place = Location::parse(&kept.held.pointer.location);
                    let place = place.map(|place| place.canonical());
                    reader.unreadable.extend(place);
                }
            }
        }
        for object in &reader.unreadable_objects {
            let elsewhere = reader.elsewhere.get(object);
            reader
                .unreadable
                .extend(elsewhere.into_iter().flatten().cloned());
        }
    }

    async fn read_kept(
        &self,
        seen: &mut Seen<'_>,
        holdings: &Holdings,
        report: &mut GcReport,
    ) -> Result<(), (String, Problem)> {
        let kept = seen.kept;
        let at = &kept.held.pointer.metadata_location;
        let in_document = |problem: Problem| (at.clone(), problem);
        let Some(reached) = holdings.catalogs.get(&kept.catalog) else {
            return Err(in_document("its catalog is gone".to_owned()));
        };
        seen.needed(at).map_err(in_document)?;
        let files = self.files.with_settings(&reached.settings);
        let document = self.stored_document(at, &reached.settings).await;
        let document = document.map_err(|error| in_document(error.to_string()))?;
        let content = document.content(kept.held.kind);
        report.documents += 1;
        let named = match content.map_err(|error| in_document(error.to_string()))? {
            Content::Table(metadata) => names_of(&metadata).map_err(in_document)?,
            Content::View(_) => Named::default(),
        };
        for file in &named.files {
            seen.needed(file).map_err(in_document)?;
        }
        let mut manifests = named.manifests;
        let mut lists = Vec::new();
        for list in named.lists {
            seen.needed(&list).map_err(in_document)?;
            if !seen.reader.lists.contains(&(kept.catalog, list.clone())) {
                lists.push(list);
            }
        }
        let limit = self.limits.document_bytes;
        let mut reads = futures::stream::iter(lists)
            .map(|list| read(&files, limit, list, manifests_in))
            .buffer_unordered(READS_AT_ONCE);
        let mut read_lists = Vec::new();
        while let Some(found) = reads.next().await {
            let (list, found) = found?;
            report.manifests += 1;
            manifests.extend(found);
            read_lists.push((kept.catalog, list));
        }
        drop(reads);
        for manifest in &manifests {
            seen.needed(manifest).map_err(in_document)?;
        }
        manifests.sort_unstable();
        manifests.dedup();
        manifests.retain(|manifest| {
            let of_catalog = (kept.catalog, manifest.clone());
            !seen.reader.manifests.contains(&of_catalog)
        });
        let mut reads = futures::stream::iter(manifests)
            .map(|manifest| read(&files, limit, manifest, files_in))
            .buffer_unordered(READS_AT_ONCE);
        while let Some(found) = reads.next().await {
            let (manifest, found) = found?;
            report.manifests += 1;
            for (file, status) in found {
                let in_manifest = |problem| (manifest.clone(), problem);
                match status {
                    Status::Live => seen.needed(&file).map_err(in_manifest)?,
                    Status::Deleted => seen.told_removed(&file),
                }
            }
            seen.reader.manifests.insert((kept.catalog, manifest));
        }
        // Only now: what one of its manifests lacks must be missed by everyone who names the list.
        seen.reader.lists.extend(read_lists);
        Ok(())
    }
}

struct Seen<'a> {
    reader: &'a mut Reader,
    kept: &'a Kept,
    places: &'a Places,
    candidates: &'a mut HashMap<String, Verdict>,
}

impl Seen<'_> {
    /// The file at this path stays.
    fn needed(&mut self, path: &str) -> Result<(), Problem> {
        let canonical = canonical(path)?;
        if let Some(verdict) = self.candidates.get_mut(&canonical) {
            verdict.is_needed = true;
            if let Some(place) = self.places.of(&canonical) {
                let object = self.kept.held.object;
                let elsewhere = self.reader.elsewhere.entry(object).or_default();
                let place = place.location.canonical();
                if !elsewhere.contains(&place) {
                    elsewhere.insert(place);
                }
            }
        }
        Ok(())
    }

    fn told_removed(&mut self, path: &str) {
        let verdict = canonical(path).ok();
        let verdict = verdict.and_then(|canonical| self.candidates.get_mut(&canonical));
        if let Some(verdict) = verdict {
            verdict.told_removed = true;
        }
    }
}

/// The one spelling of a path; one that can't be understood might name any file.
fn canonical(path: &str) -> Result<String, Problem> {
    let parsed = match path.starts_with('/') {
        true => Location::parse(&format!("file://{path}")),
        false => Location::parse(path),
    };
    match parsed {
        Ok(location) => Ok(location.canonical()),
        // What lies in a store that no catalog reaches is no candidate.
        Err(_) if is_of_another_store(path) => Ok(path.to_owned()),
        Err(error) => Err(format!("it names {path:?}: {error}")),
    }
}

fn is_of_another_store(path: &str) -> bool {
    path.split_once("://").is_some_and(|(scheme, _)| {
        let ours = ["file", "s3", "s3a", "s3n"];
        !ours.contains(&scheme.to_ascii_lowercase().as_str())
    })
}

fn names_of(metadata: &TableMetadata) -> Result<Named, Problem> {
    #[derive(Deserialize)]
    struct OldSnapshot {
        manifests: Option<Vec<String>>,
    }
    let mut named = Named::default();
    for snapshot in metadata.snapshots() {
        match snapshot.manifest_list() {
            Some(list) => named.lists.push(list),
            None => {
                // Version 1 may name its manifests in the metadata itself.
                let old = serde_json::from_str::<OldSnapshot>(snapshot.json().get());
                let manifests = old.ok().and_then(|old| old.manifests);
                let id = snapshot.snapshot_id();
                let missing = || format!("snapshot {id} names no manifest list");
                named.manifests.extend(manifests.ok_or_else(missing)?);
            }
        }
    }
    let log = metadata.metadata_log().iter();
    named
        .files
        .extend(log.map(|entry| entry.metadata_file.clone()));
    let statistics = metadata.statistics().iter();
    let statistics = statistics.map(|one| one.statistics_path().to_owned());
    named.files.extend(statistics);
    let statistics = metadata.partition_statistics().iter();
    let statistics = statistics.map(|one| one.statistics_path().to_owned());
    named.files.extend(statistics);
    Ok(named)
}

fn manifests_in(bytes: &Bytes, limit: usize) -> Result<Vec<String>, ManifestError> {
    let mut found = Vec::new();
    read_manifest_list(bytes, limit, |path| found.push(path.to_owned()))?;
    Ok(found)
}

fn files_in(bytes: &Bytes, limit: usize) -> Result<Vec<(String, Status)>, ManifestError> {
    let mut found = Vec::new();
    read_manifest(bytes, limit, |path, status| {
        found.push((path.to_owned(), status));
    })?;
    Ok(found)
}

/// Reads a file and what it names; decoding is work, and so off the async threads.
async fn read<T: Send + 'static>(
    files: &Files,
    limit: u64,
    path: String,
    decode: fn(&Bytes, usize) -> Result<T, ManifestError>,
) -> Result<(String, T), (String, Problem)> {
    let spelled = match path.starts_with('/') {
        true => format!("file://{path}"),
        false => path.clone(),
    };
    let got = async {
        let location = Location::parse(&spelled).map_err(|error| error.to_string())?;
        let bytes = files.get(&location, limit).await;
        let bytes = bytes.map_err(|error| error.to_string())?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let decoded = tokio::task::spawn_blocking(move || decode(&bytes, limit)).await;
        match decoded {
            Ok(decoded) => decoded.map_err(|error| error.to_string()),
            Err(_) => Err("it can't be decoded".to_owned()),
        }
    };
    match got.await {
        Ok(decoded) => Ok((path, decoded)),
        Err(problem) => Err((path, problem)),
    }
}
