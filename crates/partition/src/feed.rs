//! The ordered change feed: every partition's change log behind one opaque cursor.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anabranch_store::{Change, CommitId, FeedPosition, PartitionId, PartitionRow, Revision};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

use crate::error::RunError;
use crate::executor::Partitions;
use crate::refusal::{Reason, Refusal};

const CURSOR_VERSION: u8 = 1;
const POSITION_BYTES: usize = 8 + 8 + 4 + 16;
const POLL: Duration = Duration::from_millis(100);

/// Where a consumer is, in every partition that it has seen changes of. Opaque outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    positions: BTreeMap<PartitionId, (Revision, i32, CommitId)>,
}

/// A page of the feed.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedPage {
    /// In order; all of one partition in the order in which they happened.
    pub changes: Vec<Change>,
    /// Where to go on.
    pub next: Cursor,
}

impl Cursor {
    /// The cursor as text, safe in a URL.
    pub fn encode(&self) -> String {
        let mut bytes = vec![CURSOR_VERSION];
        for (partition, (revision, place, commit)) in &self.positions {
            bytes.extend(partition.0.to_be_bytes());
            bytes.extend(revision.0.to_be_bytes());
            bytes.extend(place.to_be_bytes());
            bytes.extend(commit.0.as_bytes());
        }
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads back what [`Cursor::encode`] wrote.
    pub fn decode(text: &str) -> Result<Cursor, Refusal> {
        let refused =
            || Refusal::invalid("`after` is no cursor of this feed; use a `next` from it");
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refused())?;
        let (version, positions) = bytes.split_first().ok_or_else(refused)?;
        if *version != CURSOR_VERSION || positions.len() % POSITION_BYTES != 0 {
            return Err(refused());
        }
        let mut cursor = Cursor::default();
        for chunk in positions.chunks_exact(POSITION_BYTES) {
            let long = |from: usize| {
                let mut eight = [0; 8];
                eight.copy_from_slice(&chunk[from..from + 8]);
                i64::from_be_bytes(eight)
            };
            let place = i32::from_be_bytes([chunk[16], chunk[17], chunk[18], chunk[19]]);
            let commit = Uuid::from_slice(&chunk[20..36]).map_err(|_| refused())?;
            cursor.positions.insert(
                PartitionId(long(0)),
                (Revision(long(8)), place, CommitId(commit)),
            );
        }
        Ok(cursor)
    }

    fn position(&self, row: &PartitionRow, from_start: bool) -> FeedPosition {
        match self.positions.get(&row.id) {
            Some((revision, place, commit)) => FeedPosition {
                partition: row.id,
                revision: *revision,
                place: *place,
                commit: (*commit != CommitId::NONE).then_some(*commit),
            },
            None => FeedPosition {
                partition: row.id,
                revision: if from_start {
                    row.horizon
                } else {
                    Revision::ZERO
                },
                place: if from_start { -1 } else { i32::MAX },
                commit: None,
            },
        }
    }

    /// Notes where each partition that was pruned begins, so that what went before isn't missed.
    fn start_at_horizons(&mut self, rows: &[PartitionRow]) {
        let pruned = rows.iter().filter(|row| row.horizon > Revision::ZERO);
        self.positions
            .extend(pruned.map(|row| (row.id, (row.horizon, -1, CommitId::NONE))));
    }

    fn advance(&mut self, change: &Change) {
        self.positions.insert(
            change.key.partition,
            (change.revision, change.place, change.commit),
        );
    }
}

impl Partitions {
    /// The next changes behind a cursor, of all partitions or of those at and below one; waits up
    /// to `wait` for the first. Without a cursor the feed starts with the oldest change kept.
    ///
    /// A consumer that goes on from `next` misses none and gets none twice. A cursor from before
    /// the horizon, or from a store that was restored since, is refused as gone.
    pub async fn feed(
        &self,
        below: Option<PartitionId>,
        after: Option<&Cursor>,
        limit: u32,
        wait: Duration,
    ) -> Result<FeedPage, RunError> {
        let started = Instant::now();
        loop {
            let page = self.feed_now(below, after, limit).await?;
            if !page.changes.is_empty() || started.elapsed() >= wait {
                return Ok(page);
            }
            tokio::time::sleep(POLL.min(wait.saturating_sub(started.elapsed()))).await;
        }
    }

    async fn feed_now(
        &self,
        below: Option<PartitionId>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<FeedPage, RunError> {
        let store = &self.core.store;
        let rows = store.feed_partitions(below).await;
        let rows = rows.map_err(|error| RunError::from_store(&error))?;
        let start = Cursor::default();
        let cursor = after.unwrap_or(&start);
        let positions: Vec<FeedPosition> = rows
            .iter()
            .map(|row| cursor.position(row, after.is_none()))
            .collect();
        let feed = store.feed(&positions, limit).await;
        let feed = feed.map_err(|error| RunError::from_store(&error))?;
        if !feed.lost.is_empty() {
            return Err(Refusal::new(
                Reason::Gone,
                "changes behind this cursor are no longer kept; read the current state, then \
                 follow the feed from its start",
            )
            .into());
        }
        let mut next = cursor.clone();
        if after.is_none() {
            next.start_at_horizons(&rows);
        }
        for change in &feed.changes {
            next.advance(change);
        }
        Ok(FeedPage {
            changes: feed.changes,
            next,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_the_round_trip() {
        let mut cursor = Cursor::default();
        cursor.positions.insert(
            PartitionId::ROOT,
            (Revision(77), 3, CommitId(Uuid::from_u128(9))),
        );
        assert_eq!(Cursor::decode(&cursor.encode()), Ok(cursor));
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        for text in ["", "AA", "!!", "AQ=", "AQEB"] {
            assert!(Cursor::decode(text).is_err(), "{text}");
        }
    }
}
