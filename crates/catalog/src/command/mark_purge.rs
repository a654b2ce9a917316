//! Marks a place whose files are being removed, and takes the mark away.
//!
//! A table that is registered refers to files that are there already: whoever registers one holds
//! the root partition too, and is refused where it would meet a mark.

use anabranch_partition::{Command, Context, Reason, Refusal, Stop, View};
use anabranch_store::{BranchId, Class, Kind, ObjectId, PartitionId, Read};
use serde::{Deserialize, Serialize};

use crate::body;
use crate::place::purge_key;

/// Marks at one time, at most, that are looked through.
const MOST: u32 = 10_000;

/// What a mark holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PurgeBody {
    /// The place, as the table named it.
    pub(crate) location: String,
}

/// Locks the root partition.
pub(crate) struct MarkPurge {
    /// The table that was dropped.
    pub(crate) table: ObjectId,
    /// An id for the mark.
    pub(crate) mark: ObjectId,
    /// The place; `None` takes the mark away.
    pub(crate) location: Option<String>,
}

impl Command for MarkPurge {
    type Outcome = ();

    fn name(&self) -> &'static str {
        "mark_purge"
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(purge_key(self.table))]
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<(), Stop> {
        let key = purge_key(self.table);
        let standing = view.get(&key)?;
        match (&self.location, standing) {
            (Some(location), None) => {
                let location = location.clone();
                let body = body::write(&PurgeBody { location });
                view.put(key, Kind::Purge, self.mark, body)?;
            }
            (None, Some(_)) => {
                view.remove(key)?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// What the guard wants to read.
pub(crate) fn marks_read() -> Read {
    Read::Range {
        partition: PartitionId::ROOT,
        branch: BranchId::MAIN,
        scope: String::new(),
        class: Class::Purge,
        kinds: Vec::new(),
        after: None,
        limit: MOST,
    }
}

/// Refuses if files in the place are being removed. Holds the root partition.
pub(crate) fn guard_against_purge(
    view: &View<'_>,
    overlaps: impl Fn(&str) -> bool,
) -> Result<(), Stop> {
    view.partition(PartitionId::ROOT)?;
    let root = PartitionId::ROOT;
    for (_, mark) in view.range(root, BranchId::MAIN, "", Class::Purge, MOST)? {
        let body = serde_json::from_str::<PurgeBody>(&mark.body);
        if body.is_ok_and(|body| overlaps(&body.location)) {
            return Err(Refusal::new(
                Reason::Conflict,
                "files in this place are being removed, by a gc or because their table was dropped \
                 with a purge; what is still there afterwards can be registered later",
            )
            .into());
        }
    }
    Ok(())
}
