//! From a failing history to a short one.

use std::fmt::Write;

use crate::check::Verdict;
use crate::words::Step;

/// A failing history from which nothing can be left out (within the tries), and what is wrong.
pub struct Failure {
    pub seed: u64,
    pub steps: Vec<Step>,
    pub why: String,
}

impl Failure {
    pub fn shown(&self) -> String {
        let mut text = format!("seed {}: {}\n", self.seed, self.why);
        let _ = writeln!(text, "the shortest history found that fails:");
        for step in &self.steps {
            let _ = writeln!(text, "  {step}");
        }
        text
    }
}

/// Leaves out steps, more at a time first, and then what decorates them, as long as it fails.
pub async fn shorten(
    seed: u64,
    steps: Vec<Step>,
    why: String,
    mut tries: usize,
    run: &mut impl AsyncFnMut(&[Step]) -> Verdict,
) -> Failure {
    let mut failure = Failure { seed, steps, why };
    let mut size = failure.steps.len().div_ceil(2);
    loop {
        let mut start = 0;
        let mut is_shorter = false;
        while start < failure.steps.len() && tries > 0 {
            let end = (start + size).min(failure.steps.len());
            let mut fewer = failure.steps.clone();
            fewer.drain(start..end);
            tries -= 1;
            match run(&fewer).await {
                Err(why) => {
                    failure.steps = fewer;
                    failure.why = why;
                    is_shorter = true;
                }
                Ok(()) => start = end,
            }
        }
        if tries == 0 || size == 1 && !is_shorter {
            break;
        }
        size = size.div_ceil(2);
    }
    for place in 0..failure.steps.len() {
        for simpler in simpler(&failure.steps[place]) {
            if tries == 0 {
                return failure;
            }
            let mut steps = failure.steps.clone();
            steps[place] = simpler;
            tries -= 1;
            if let Err(why) = run(&steps).await {
                failure.steps = steps;
                failure.why = why;
            }
        }
    }
    failure
}

/// The step without one of its decorations.
fn simpler(step: &Step) -> Vec<Step> {
    let mut simpler = Vec::new();
    if step.hold.is_some() {
        simpler.push(Step {
            hold: None,
            ..step.clone()
        });
    }
    if step.lost.is_some() {
        simpler.push(Step {
            lost: None,
            ..step.clone()
        });
    }
    if step.keyed {
        simpler.push(Step {
            keyed: false,
            ..step.clone()
        });
    }
    if step.resent {
        simpler.push(Step {
            resent: false,
            ..step.clone()
        });
    }
    simpler
}
