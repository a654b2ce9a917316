//! One run, from the listing to the deletion. Every run begins anew, so a crash in between costs
//! nothing but the time.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

use anabranch_files::{FileEntry, Location};
use anabranch_partition::RunError;
use anabranch_store::{ObjectId, PartitionId, Task};
use futures::StreamExt;
use futures::stream::BoxStream;

use super::body::{FileKind, GcBody, GcFile, GcReport, GcState};
use super::needed::{Reader, Verdict};
use super::places::{Holdings, Place, Places, Reached};
use crate::command::MarkPurge;
use crate::error::CatalogError;
use crate::service::caller::Caller;
use crate::service::jobs::LEASE_MICROS;
use crate::service::{Core, location};

/// Old files that are held in memory at one time; each such portion reads all manifests.
const CANDIDATES_AT_ONCE: usize = 250_000;
/// Files deleted between two looks at the lease.
const DELETED_AT_ONCE: usize = 500;

/// What became of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Collected {
    /// It has ended; in one sentence. It is kept for those who ask.
    Done(String),
    /// It ended before, and was kept long enough.
    Known,
}

/// A run as its server works on it.
struct Run<'a> {
    task: &'a Task,
    server: &'a str,
    body: GcBody,
}

/// Files of one listing, with what lies around them.
struct Listing {
    places: std::vec::IntoIter<Place>,
    files: Option<BoxStream<'static, Result<FileEntry, anabranch_files::FileError>>>,
    edge: SystemTime,
}

impl Core {
    /// Works on a run. `server` leases its task.
    pub(crate) async fn collect(
        &self,
        task: &Task,
        server: &str,
    ) -> Result<Collected, CatalogError> {
        let Some(mut body) = GcBody::read(&task.body) else {
            tracing::error!("the task of a gc can't be read, and is given up");
            return Ok(Collected::Known);
        };
        if body.state == GcState::Done {
            return Ok(Collected::Known);
        }
        body.state = GcState::Running;
        body.report = GcReport {
            removed: body.report.removed,
            ..GcReport::default()
        };
        let mut run = Run { task, server, body };
        // A run that was cut off left its marks.
        self.unmark(&mut run).await?;
        self.collect_all(&mut run).await?;
        run.body.state = GcState::Done;
        self.save(&run).await?;
        let report = &run.body.report;
        Ok(Collected::Done(if run.body.dry_run {
            format!("{} files could be removed", report.garbage.files)
        } else {
            format!("{} files removed", report.removed.files)
        }))
    }

    async fn save(&self, run: &Run<'_>) -> Result<(), CatalogError> {
        let store = self.partitions.store();
        let body = run.body.write();
        let saved = store.save_task(run.task.id, run.server, &body, LEASE_MICROS);
        match saved.await.map_err(|error| RunError::from_store(&error))? {
            true => Ok(()),
            // Another server works on it.
            false => Err(RunError::Stale.into()),
        }
    }

    async fn collect_all(&self, run: &mut Run<'_>) -> Result<(), CatalogError> {
        let holdings = self.holdings().await?;
        let Some(reached) = holdings.catalogs.get(&run.body.catalog).cloned() else {
            return Ok(());
        };
        let places = run.places(&holdings);
        let outermost = places.outermost();
        run.body.report.places = outermost.len() as u64;
        let mut listing = Listing {
            places: outermost.into_iter(),
            files: None,
            edge: self
                .edge_of(Duration::from_millis(run.body.grace_millis))
                .await?,
        };
        loop {
            let report = &mut run.body.report;
            let candidates = self
                .list_old(&mut listing, &reached, &places, report)
                .await?;
            if candidates.is_empty() {
                return Ok(());
            }
            self.collect_some(run, &reached, &places, candidates)
                .await?;
        }
    }

    /// The next old files in the run's places, by their canonical location.
    async fn list_old(
        &self,
        listing: &mut Listing,
        reached: &Reached,
        places: &Places,
        report: &mut GcReport,
    ) -> Result<HashMap<String, Verdict>, CatalogError> {
        let files = self.files.with_settings(&reached.settings);
        let mut candidates = HashMap::new();
        while candidates.len() < CANDIDATES_AT_ONCE {
            let Some(open) = &mut listing.files else {
                let Some(place) = listing.places.next() else {
                    break;
                };
                listing.files = Some(files.list(&place.location));
                continue;
            };
            let Some(file) = open.next().await else {
                listing.files = None;
                continue;
            };
            let file = file.map_err(|error| CatalogError::unreadable(&error))?;
            let canonical = file.location.canonical();
            let Some(place) = places.of(&canonical).filter(|place| place.is_ours) else {
                report.kept.elsewhere += 1;
                continue;
            };
            if file.last_modified >= listing.edge {
                report.kept.young += 1;
            } else if is_hidden(&canonical, &place.location) {
                report.kept.hidden += 1;
            } else {
                let verdict = Verdict {
                    file: file.location,
                    bytes: file.size,
                    is_needed: false,
                    told_removed: false,
                };
                candidates.insert(canonical, verdict);
            }
        }
        Ok(candidates)
    }

    /// Decides over files that were listed, and removes what nothing needs.
    async fn collect_some(
        &self,
        run: &mut Run<'_>,
        reached: &Reached,
        places: &Places,
        mut candidates: HashMap<String, Verdict>,
    ) -> Result<(), CatalogError> {
        let mut reader = Reader::default();
        // Most is read before the mark is made, so that it stands for a short time only.
        let holdings = self.holdings().await?;
        let report = &mut run.body.report;
        self.take_out_needed(&mut reader, &holdings, places, &mut candidates, report)
            .await;
        self.save(run).await?;
        if run.body.dry_run {
            run.decide(&reader, places, &candidates);
            return Ok(());
        }
        self.mark_places(run, reached).await?;
        let removed = self.remove_unneeded(run, reached, places, reader, candidates);
        let removed = removed.await;
        // Also after a failure: nobody has to wait for the run to be tried again.
        let unmarked = self.unmark(run).await;
        removed.and(unmarked)
    }

    async fn remove_unneeded(
        &self,
        run: &mut Run<'_>,
        reached: &Reached,
        places: &Places,
        mut reader: Reader,
        mut candidates: HashMap<String, Verdict>,
    ) -> Result<(), CatalogError> {
        let holdings = self.holdings().await?;
        let report = &mut run.body.report;
        self.take_out_needed(&mut reader, &holdings, places, &mut candidates, report)
            .await;
        let mut garbage = run
            .decide(&reader, places, &candidates)
            .into_iter()
            .peekable();
        let files = self.files.with_settings(&reached.settings);
        while garbage.peek().is_some() {
            self.save(run).await?;
            for (file, bytes) in garbage.by_ref().take(DELETED_AT_ONCE) {
                let deleted = files.delete(&file).await;
                deleted.map_err(|error| CatalogError::unreadable(&error))?;
                run.body.report.removed.files += 1;
                run.body.report.removed.bytes += bytes;
            }
        }
        self.save(run).await
    }

    /// Keeps metadata from being registered where files are being removed.
    async fn mark_places(&self, run: &mut Run<'_>, reached: &Reached) -> Result<(), CatalogError> {
        let own = std::iter::once(reached.body.location.as_str());
        let prefixes: Vec<&str> = own
            .chain(location::further_prefixes(&reached.body.properties))
            .collect();
        run.body.marks = u32::try_from(prefixes.len()).unwrap_or(u32::MAX);
        self.save(run).await?;
        for (number, prefix) in (0..).zip(prefixes) {
            self.mark_place(run.task, number, Some(prefix.to_owned()))
                .await?;
        }
        Ok(())
    }

    /// Lets it be registered again; also tells that the run goes on. Who has lost the task leaves
    /// the marks to the server that has it now.
    async fn unmark(&self, run: &mut Run<'_>) -> Result<(), CatalogError> {
        self.save(run).await?;
        for number in 0..run.body.marks {
            self.mark_place(run.task, number, None).await?;
        }
        run.body.marks = 0;
        self.save(run).await
    }

    async fn mark_place(
        &self,
        task: &Task,
        number: u32,
        location: Option<String>,
    ) -> Result<(), CatalogError> {
        let (_, low) = task.id.0.as_u64_pair();
        let command = MarkPurge {
            table: ObjectId::new(low.wrapping_add(u64::from(number))),
            mark: ObjectId::new(rand::random()),
            location,
        };
        let partitions = vec![PartitionId::ROOT];
        self.run(&Caller::server(), partitions, command).await?;
        Ok(())
    }
}

impl Run<'_> {
    fn places(&self, holdings: &Holdings) -> Places {
        holdings.places(|kept| {
            kept.catalog == self.body.catalog
                && self.body.database.is_none_or(|only| only == kept.database)
        })
    }

    /// What may go, with its bytes, in the order of the locations; the report is told of all.
    fn decide(
        &mut self,
        reader: &Reader,
        places: &Places,
        candidates: &HashMap<String, Verdict>,
    ) -> Vec<(Location, u64)> {
        let report = &mut self.body.report;
        let mut garbage = Vec::new();
        let ordered: BTreeMap<_, _> = candidates.iter().collect();
        for (canonical, verdict) in ordered {
            let Some(place) = places.of(canonical) else {
                continue;
            };
            if verdict.is_needed {
                report.kept.needed += 1;
            } else if reader.keeps(canonical) {
                report.kept.unreadable += 1;
            } else {
                let name = canonical.rsplit('/').next().unwrap_or_default();
                report.found(GcFile {
                    location: canonical.clone(),
                    bytes: verdict.bytes,
                    kind: FileKind::of(name),
                    told_removed: verdict.told_removed,
                    table: place.table.clone(),
                });
                garbage.push((verdict.file.clone(), verdict.bytes));
            }
        }
        garbage
    }
}

/// Whether a part of the path below the place begins with `_` or `.`: such files are left to
/// whoever put them there.
fn is_hidden(canonical: &str, place: &Location) -> bool {
    let below = canonical.strip_prefix(&place.canonical());
    below.is_none_or(|below| below.split('/').any(|part| part.starts_with(['_', '.'])))
}
