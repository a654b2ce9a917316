//! The protocol as clients see it: the router in this process, on a store and a warehouse of the
//! test's own. Every test ends with an audit of the store.

mod commits;
mod configuration;
mod errors;
mod idempotency;
mod loads;
mod names;
mod namespaces;
mod registration;
mod selectors;
mod server;
mod staging;
mod tables;
mod transactions;
mod versions;
mod views;
