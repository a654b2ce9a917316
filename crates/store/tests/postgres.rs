//! The behaviour of every store, on PostgreSQL.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use anabranch_store::fault::{FaultStore, Faults};
use anabranch_store::testing::with_postgres_store;
use anabranch_store::{LockMode, Store};

const MODE: LockMode = LockMode::Pessimistic;

async fn with_store<F: Future<Output = ()>>(test: impl FnOnce(Arc<dyn Store>) -> F) {
    with_postgres_store(MODE, test).await;
}

async fn with_faulty_store<F: Future<Output = ()>>(test: impl FnOnce(Arc<dyn Store>) -> F) {
    let faults = Faults::new();
    faults.random(7, 0.1);
    with_postgres_store(MODE, |store| test(Arc::new(FaultStore::new(store, faults)))).await;
}

mod bare {
    anabranch_store::store_suite!(super::with_store);
    anabranch_store::calm_suite!(super::with_store);
}

mod under_faults {
    anabranch_store::store_suite!(super::with_faulty_store);
}
