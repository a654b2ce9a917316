//! The change log and the feed of it.

use std::collections::BTreeMap;

use anabranch_store::{Change, Key, PartitionId};

use super::{Finished, Verdict};
use crate::log::Log;

/// The changes of a revision in a partition are one command's, and counted from 0.
pub(super) fn check_places(log: &Log) -> Verdict {
    for (partition, changes) in &log.raw {
        let mut before: Option<&Change> = None;
        for change in changes {
            let same = before.filter(|before| before.revision == change.revision);
            let place = same.map_or(0, |before| before.place + 1);
            let is_one = same.is_none_or(|before| {
                before.commit == change.commit && before.principal == change.principal
            });
            if change.place != place || !is_one {
                return Err(format!("{partition:?} has a gap before {change:?}"));
            }
            before = Some(change);
        }
    }
    Ok(())
}

/// The feed is the change log, nothing missed and nothing twice, and what is made of it is what
/// stands.
pub(super) fn check_feed(run: &Finished) -> Verdict {
    let mut consumed: BTreeMap<PartitionId, Vec<&Change>> = BTreeMap::new();
    for change in &run.consumed {
        consumed
            .entry(change.key.partition)
            .or_default()
            .push(change);
    }
    for (partition, logged) in &run.log.raw {
        let logged: Vec<&Change> = logged.iter().collect();
        let read = consumed.remove(partition).unwrap_or_default();
        if read != logged {
            return Err(format!(
                "the feed shows {} changes of {partition:?} where the log has {}:\n    \
                 {read:?}\n    {logged:?}",
                read.len(),
                logged.len()
            ));
        }
    }
    let mut rebuilt: BTreeMap<&Key, &Change> = BTreeMap::new();
    for change in &run.consumed {
        match change.after {
            Some(_) => rebuilt.insert(&change.key, change),
            None => rebuilt.remove(&change.key),
        };
    }
    let rebuilt: Vec<_> = rebuilt
        .into_iter()
        .map(|(key, change)| (key, change.object, change.after.as_ref(), change.revision))
        .collect();
    let stands: Vec<_> = run
        .log
        .rows
        .iter()
        .map(|(key, row)| (key, row.object, Some(&row.body), row.from))
        .collect();
    if rebuilt != stands {
        return Err(format!(
            "from the feed comes {rebuilt:?}, and there is {stands:?}"
        ));
    }
    Ok(())
}
