//! What goes wrong, and where.

use std::collections::BTreeMap;
use std::fmt;

use crate::point::{Point, When, after, before};

/// What happens to a call at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process gets SIGKILL.
    Kill,
    /// The call is not made: an error that is known not applied.
    Fail,
    /// The request or its answer is lost.
    Lose,
    /// The call takes its time, and another client comes.
    Delay,
}

/// One command with one fault at one point.
#[derive(Clone, Debug)]
pub struct Case {
    /// The answer to COMMIT is lost before, and the fault is on the way of finding out.
    pub after_lost_commit: bool,
    pub fault: Fault,
    pub point: Point,
}

/// How often each call came to each side.
pub type Hits = BTreeMap<(String, When), u64>;

/// Calls of background jobs, which no client's command makes.
const OF_JOBS: [&str; 3] = ["lease_task", "finish_task", "postpone_task"];

impl Case {
    /// Every case at the points that a command came to behind those of `earlier`.
    pub fn all(hits: &Hits, earlier: &Hits, after_lost_commit: bool) -> Vec<Case> {
        let mut cases = Vec::new();
        for ((call, when), count) in hits {
            if OF_JOBS.contains(&call.as_str()) {
                continue;
            }
            let first = earlier.get(&(call.clone(), *when)).copied().unwrap_or(0) + 1;
            for nth in (first..=*count).filter(|nth| is_one_of_its_own(call, *nth, *count)) {
                let next = match when {
                    When::Before => before(call),
                    When::After => after(call),
                };
                let point = next.nth(nth);
                cases.extend(faults(&point).iter().map(|&fault| Case {
                    after_lost_commit,
                    fault,
                    point: point.clone(),
                }));
            }
        }
        cases
    }

    /// The one scenario where each takes minutes in all.
    pub fn at_commit(hits: &Hits) -> Vec<Case> {
        let of_commit = |case: &Case| {
            let is_told = matches!(
                (case.fault, case.point.when),
                (Fault::Fail, When::Before) | (Fault::Lose, When::After) | (Fault::Kill, _)
            );
            case.point.call == "commit" && is_told
        };
        let mut cases = Case::all(hits, &Hits::new(), false);
        cases.retain(of_commit);
        cases
    }

    /// Whether others of the same database wait while a command stops at its point: what was begun
    /// holds its partitions, or the one writer.
    pub fn holds_others(&self) -> bool {
        const HELD: [&str; 6] = [
            "begin",
            "lock",
            "tx.read",
            "changed_since",
            "holds_commit",
            "commit",
        ];
        HELD.contains(&self.point.call.as_str())
    }
}

/// A transaction that reads many times changes nothing meanwhile: but for the first two times and
/// the last, one is like another.
fn is_one_of_its_own(call: &str, nth: u64, count: u64) -> bool {
    call != "tx.read" || nth <= 2 || nth == count
}

/// A file call that isn't made and one whose request is lost are one; behind a call there is no
/// error but the lost answer.
fn faults(point: &Point) -> &'static [Fault] {
    use Fault::{Delay, Fail, Kill, Lose};
    let is_file_call = point.call.starts_with("file.");
    match (is_file_call, point.when) {
        (true, When::Before) => &[Kill, Delay, Fail],
        (false, When::Before) => &[Kill, Delay, Fail, Lose],
        (_, When::After) => &[Kill, Delay, Lose],
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.after_lost_commit {
            write!(f, "lose after commit 1, then ")?;
        }
        write!(f, "{:?} {}", self.fault, self.point)
    }
}
