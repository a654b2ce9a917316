//! The store's clock gives every change its revision: one that is far off would poison every
//! partition it touches.

use std::time::{SystemTime, UNIX_EPOCH};

use anabranch_store::{Store, StoreTime};

use crate::failure::Failure;

/// Hours that the store's clock and this machine's may be apart.
const TOLERATED_HOURS: i64 = 24;
const MICROS_PER_HOUR: i64 = 3_600_000_000;

/// Refuses a store whose clock is more than a day away from this machine's.
pub async fn check(store: &dyn Store) -> Result<(), Failure> {
    let theirs = store.now().await;
    let theirs = theirs.map_err(|error| Failure::store(&error, "the store"))?;
    let ours = SystemTime::now().duration_since(UNIX_EPOCH);
    let ours = ours.map_or(0, |since| {
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    });
    compare(theirs, StoreTime(ours))
}

fn compare(theirs: StoreTime, ours: StoreTime) -> Result<(), Failure> {
    let hours = theirs.0.saturating_sub(ours.0) / MICROS_PER_HOUR;
    if hours.abs() < TOLERATED_HOURS {
        return Ok(());
    }
    let direction = if hours > 0 { "ahead of" } else { "behind" };
    let apart = hours.abs();
    Err(Failure::setup(format!(
        "the store's clock is {apart} hours {direction} this machine's; set the one that is wrong \
         (every change is stamped with the store's time), then start again"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_tolerated_and_a_year_is_not() {
        let ours = StoreTime(1_800_000_000_000_000);
        for (hours, is_tolerated) in [(1, true), (-1, true), (8760, false), (-8760, false)] {
            let theirs = ours.plus_micros(hours * MICROS_PER_HOUR);
            assert_eq!(compare(theirs, ours).is_ok(), is_tolerated, "{hours}");
        }
    }
}
