//! Limits of the executor.

use std::time::Duration;

/// Limits of one server's executor. None of them decides what is correct.
#[derive(Clone, Debug)]
pub struct Config {
    /// Commands in one SQL transaction, at most.
    pub batch: usize,
    /// Commands that wait in this server, at most; one more is answered "overloaded".
    pub queue: usize,
    /// How often a batch that lost a race is run again.
    pub attempts: u32,
    /// The first pause after a lost race; doubled each time up to 32 times this, with jitter.
    pub backoff: Duration,
    /// How long a lost COMMIT answer is asked for before the outcome is reported unknown.
    pub resolve_for: Duration,
    /// Decoded rows kept in memory; 0 turns the cache off.
    pub cached_rows: usize,
    /// How long operation records are kept.
    pub operation_retention: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            batch: 128,
            queue: 4096,
            attempts: 24,
            backoff: Duration::from_millis(2),
            resolve_for: Duration::from_secs(20),
            cached_rows: 50_000,
            operation_retention: Duration::from_secs(25 * 3600),
        }
    }
}
