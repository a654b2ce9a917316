//! From the settings to an open store and the catalog on it.

use std::sync::Arc;
use std::time::Duration;

use anabranch_catalog::{Catalog, Limits};
use anabranch_files::{Files, FilesOptions, Location};
use anabranch_partition::{Config as PartitionConfig, Partitions};
use anabranch_store::{OpenOptions, PostgresOptions, Store};

use crate::config::Config;
use crate::failure::Failure;

/// An operation record outlives the advertised lifetime of its key by this, so that a client that
/// trusts the lifetime to the second is still protected.
const RECORD_MARGIN: Duration = Duration::from_secs(3600);

/// Why the store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To serve: alone where the engine serves only one, and with this program's schema.
    Serve,
    /// To look at it, also while it is served.
    Look,
}

/// Opens the store.
pub async fn store(config: &Config, purpose: Purpose) -> Result<Arc<dyn Store>, Failure> {
    if purpose == Purpose::Serve
        && let Some(folder) = config.store_folder()
    {
        std::fs::create_dir_all(&folder).map_err(|error| {
            let folder = folder.display();
            Failure::setup(format!(
                "can't make the folder {folder} for the store: {error}; choose another with \
                 --data-dir or --store"
            ))
        })?;
    }
    let options = OpenOptions {
        migrate: purpose == Purpose::Serve,
        exclusive: purpose == Purpose::Serve,
        postgres: PostgresOptions {
            pool_size: config.postgres_connections,
            ..PostgresOptions::default()
        },
        ..OpenOptions::default()
    };
    let opened = anabranch_store::open(&config.store, &options).await;
    let store = opened.map_err(|error| Failure::store(&error, &config.shown_store()))?;
    #[cfg(feature = "fault-points")]
    let store = match purpose {
        Purpose::Serve => crate::points::around_store(store).await,
        Purpose::Look => store,
    };
    Ok(store)
}

/// Where catalogs may lie on this machine: what the operator named, and nothing else.
fn local_roots(config: &Config) -> Vec<Location> {
    let own = [Some(&config.warehouse), config.catalogs_location.as_ref()];
    let named = own.into_iter().flatten().chain(&config.local_folders);
    named
        .filter_map(|text| Location::parse(text).ok())
        .collect()
}

/// The catalog service on a store.
pub fn catalog(config: &Config, store: Arc<dyn Store>) -> Catalog {
    let partitions = PartitionConfig {
        queue: config.queue_limit,
        cached_rows: config.row_cache,
        operation_retention: config.idempotency_lifetime + RECORD_MARGIN,
        ..PartitionConfig::default()
    };
    let limits = Limits {
        document_bytes: config.document_limit,
        cached_bytes: config.metadata_cache,
        history_retention: config.history_retention,
        sweep_grace: config.sweep_grace,
        job_interval: config.job_interval,
        local_roots: Some(local_roots(config)),
        ..Limits::default()
    };
    let files = Files::new(FilesOptions::default());
    #[cfg(feature = "fault-points")]
    let files = crate::points::around_files(files);
    Catalog::new(Partitions::new(store, partitions), files, limits)
}
