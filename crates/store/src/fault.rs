//! A decorator that makes things go wrong at named calls, for tests.
//!
//! A call has two points: before it reaches the engine, and after the engine did it. At either,
//! once or at random, there can be an error, a lost answer, a pause or a crash. Calls of the store
//! have the names of its methods (`begin`, `read`, `resolve`, `feed`, …), calls of a transaction
//! too, but for `tx.read`.

/// The names of all calls that have points.
pub const CALLS: [&str; 24] = [
    "begin",
    "resolve",
    "read",
    "now",
    "feed",
    "feed_partitions",
    "changes_between",
    "prune",
    "retire",
    "expire_operations",
    "history_page",
    "current_page",
    "lease_task",
    "finish_task",
    "postpone_task",
    "save_task",
    "task",
    "ensure_task",
    "backup",
    "lock",
    "tx.read",
    "changed_since",
    "holds_commit",
    "commit",
];

mod points;
mod store;
mod transaction;

pub use points::{Fault, Faults, Pause, Straggler, When};
pub use store::FaultStore;
