//! Time as the store tells it, and the revisions made from it.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Microseconds since 1970-01-01T00:00:00Z by the store's clock, read with the partition lock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct StoreTime(pub i64);

/// 2020-01-01T00:00:00Z in microseconds since 1970: the epoch of revisions. With it a signed
/// 64-bit revision lasts until 2091.
const REVISION_EPOCH_MICROS: i64 = 1_577_836_800_000_000;
const COUNTER_BITS: u32 = 12;

impl StoreTime {
    /// Milliseconds since 1970, as table metadata wants them.
    pub fn millis(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// This instant moved by `micros` microseconds.
    pub fn plus_micros(self, micros: i64) -> StoreTime {
        StoreTime(self.0.saturating_add(micros))
    }
}

/// A hybrid logical timestamp: microseconds since 2020 shifted left by 12 bits, plus a counter.
///
/// Within a partition every accepted command has a revision of its own, strictly above all
/// earlier ones, even if the store's clock steps back.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Revision(pub i64);

impl Revision {
    /// Below every revision that a commit can get.
    pub const ZERO: Revision = Revision(0);
    /// The end of a version that still stands.
    pub const MAX: Revision = Revision(i64::MAX);

    /// The first revision of an instant.
    pub fn at(time: StoreTime) -> Revision {
        let micros = time.0.saturating_sub(REVISION_EPOCH_MICROS).max(0);
        Revision(micros.saturating_mul(1 << COUNTER_BITS))
    }

    /// The instant that this revision's physical part names.
    pub fn time(self) -> StoreTime {
        StoreTime((self.0 >> COUNTER_BITS) + REVISION_EPOCH_MICROS)
    }

    /// The next revision above both the given clock and the store's time.
    pub fn after(clock: Revision, now: StoreTime) -> Revision {
        Revision::at(now).max(Revision(clock.0 + 1))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Names one SQL transaction that changed something; random, so that a restored or failed-over
/// store can't repeat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommitId(pub Uuid);

impl CommitId {
    /// The last commit of a partition that nobody wrote to yet.
    pub const NONE: CommitId = CommitId(Uuid::nil());

    /// A fresh random id.
    pub fn random() -> CommitId {
        CommitId(Uuid::new_v4())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_steps_back_still_rises() {
        let late = Revision::at(StoreTime(1_800_000_000_000_000));
        let early = StoreTime(1_700_000_000_000_000);
        assert_eq!(Revision::after(late, early), Revision(late.0 + 1));
    }

    #[test]
    fn the_physical_part_survives_the_round_trip() {
        let time = StoreTime(1_800_000_000_123_456);
        assert_eq!(Revision::at(time).time(), time);
    }
}
