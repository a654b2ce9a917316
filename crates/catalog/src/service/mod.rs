//! The service: names in, outcomes out; everything that is I/O around the pure commands.

mod caller;
mod committer;
mod creation;
mod doctor;
mod document;
mod gc;
mod inventory;
mod jobs;
mod listing;
mod location;
mod lookup;
mod namespaces;
mod pointers;
mod prepare;
mod purge;
mod reach;
mod reference_reads;
mod references;
mod retire;
mod selectors;
mod states;
mod sweep;
mod tables;
mod target;
mod views;
mod warehouses;

use std::sync::Arc;
use std::time::Duration;

use anabranch_files::{CacheStats, Files, Location, MetadataCache};
use anabranch_partition::Partitions;

pub use caller::{Caller, Changed};
pub use document::{Content, Document};
pub use gc::{
    FileKind, GcBody, GcFile, GcKept, GcReport, GcRun, GcState, GcUnreadable, NewGc, Total,
};
pub use jobs::{DueGc, JobReport};
pub use listing::{Listing, Page};
pub use lookup::reference_revision;
pub use namespaces::NamespaceInfo;
pub use pointers::{Pointer, PointerKind, Unregistered};
pub use prepare::{Committed, TableChange};
pub use references::{NewMerge, NewReference, SourceReference};
pub use tables::NewTable;
pub use views::NewView;
pub use warehouses::{CatalogInfo, NewCatalog};

use committer::Committer;

/// Limits and times of the service.
#[derive(Clone, Debug)]
pub struct Limits {
    /// One metadata document, in bytes.
    pub document_bytes: u64,
    /// All metadata documents in memory, in bytes.
    pub cached_bytes: u64,
    /// How long ended versions and the change log stay readable.
    pub history_retention: Duration,
    /// How old a file must be before it can count as left over. A change prepared longer ago than
    /// half of it is prepared again, so that no file is swept away that a commit will name.
    pub sweep_grace: Duration,
    /// How often the recurring jobs run.
    pub job_interval: Duration,
    /// The local folders that catalogs may lie in; anywhere if `None`. A server that others can
    /// reach should name them: whoever may create a catalog has it read, written and deleted in.
    pub local_roots: Option<Vec<Location>>,
    /// Tables in one multi-table commit.
    pub tables_per_commit: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            document_bytes: 256 << 20,
            cached_bytes: 32 << 20,
            history_retention: Duration::from_secs(24 * 3600),
            sweep_grace: Duration::from_secs(24 * 3600),
            job_interval: Duration::from_secs(300),
            local_roots: None,
            tables_per_commit: 1000,
        }
    }
}

/// The catalog service of one server. Cheap to clone.
#[derive(Clone)]
pub struct Catalog {
    pub(crate) core: Arc<Core>,
    committer: Arc<Committer>,
}

pub(crate) struct Core {
    pub(crate) partitions: Partitions,
    pub(crate) files: Files,
    pub(crate) documents: MetadataCache<Document>,
    pub(crate) limits: Limits,
}

impl Catalog {
    /// A service over an executor and the files that the catalogs' settings reach.
    pub fn new(partitions: Partitions, files: Files, limits: Limits) -> Catalog {
        let documents =
            MetadataCache::new(files.clone(), limits.cached_bytes, limits.document_bytes);
        let core = Arc::new(Core {
            partitions,
            files,
            documents,
            limits,
        });
        Catalog {
            committer: Arc::new(Committer::new(core.clone())),
            core,
        }
    }

    /// The executor underneath.
    pub fn partitions(&self) -> &Partitions {
        &self.core.partitions
    }

    /// How often metadata documents were found in memory, and what is held there.
    pub fn document_cache(&self) -> CacheStats {
        self.core.documents.stats()
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.core.limits
    }
}
