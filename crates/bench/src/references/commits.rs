//! How many commits a second, by as many callers: on `main`, on one branch, on ten branches.

use std::time::Duration;

use anabranch_catalog::reference::{MAIN, ReferenceKind};

use super::lake::{Lake, at_branch};
use super::{Reports, Scale};
use crate::core::{Rate, drive};
use crate::failure::Failure;
use crate::report::ratios;
use crate::table::progress;

const CALLERS: usize = 32;
const BRANCHES: usize = 10;
/// Of the rate on `main` only.
const BAR: f64 = 0.8;

fn table(caller: usize) -> String {
    format!("committed_{caller}")
}

pub(super) async fn measure(
    lake: &Lake,
    scale: &Scale,
    reports: &mut Reports,
) -> Result<(), Failure> {
    for caller in 0..CALLERS {
        lake.create_table(&table(caller)).await?;
    }
    let branches: Vec<String> = (0..BRANCHES).map(|one| format!("written_{one}")).collect();
    for branch in &branches {
        lake.make(ReferenceKind::Branch, branch, MAIN).await?;
    }
    let main = [MAIN.to_owned()];
    let sides: [&[String]; 3] = [&main, &branches[..1], &branches];
    let turn = Duration::from_secs_f64(scale.commits);
    // Each table gets its first version on each branch.
    for side in sides {
        commit_on(lake, side, turn / 2).await?;
    }
    let mut rates: [Vec<Rate>; 3] = Default::default();
    for round in 0..scale.rounds {
        progress(&format!(
            "committing, round {} of {}",
            round + 1,
            scale.rounds
        ));
        for (side, rates) in sides.into_iter().zip(&mut rates) {
            rates.push(commit_on(lake, side, turn).await?);
        }
    }
    let [main, one, ten] = rates;
    let rates = &mut reports.ratios;
    rates.at_least("rate on one branch against main", BAR, &ratios(&one, &main));
    let what = format!("rate on {BRANCHES} branches against main");
    rates.at_least(&what, BAR, &ratios(&ten, &main));
    rates.table.note(format!(
        "rate: commits/s of {CALLERS} callers on tables of their own"
    ));
    rates.rates(&[
        ("main", &main),
        ("one branch", &one),
        ("ten branches", &ten),
    ]);
    for branch in &branches {
        lake.delete(branch).await?;
    }
    Ok(())
}

/// Each caller has a table of its own, on one of the branches.
async fn commit_on(lake: &Lake, branches: &[String], turn: Duration) -> Result<Rate, Failure> {
    drive(CALLERS, turn, async |caller| {
        let branch = &branches[caller % branches.len()];
        lake.commit(&at_branch(branch), &table(caller)).await
    })
    .await
}
