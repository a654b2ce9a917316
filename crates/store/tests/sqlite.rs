//! The behaviour of every store, on SQLite.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use anabranch_store::Store;
use anabranch_store::fault::{FaultStore, Faults};
use anabranch_store::testing::sqlite_store;

async fn with_store<F: Future<Output = ()>>(test: impl FnOnce(Arc<dyn Store>) -> F) {
    let folder = tempfile::tempdir().unwrap();
    test(sqlite_store(folder.path()).unwrap()).await;
}

async fn with_faulty_store<F: Future<Output = ()>>(test: impl FnOnce(Arc<dyn Store>) -> F) {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::new();
    faults.random(7, 0.1);
    let store = FaultStore::new(sqlite_store(folder.path()).unwrap(), faults);
    test(Arc::new(store)).await;
}

mod bare {
    anabranch_store::store_suite!(super::with_store);
    anabranch_store::calm_suite!(super::with_store);
}

mod under_faults {
    anabranch_store::store_suite!(super::with_faulty_store);
}
