//! Finding a table and listing a page on branches of branches, against `main`.

use std::time::Instant;

use anabranch_catalog::reference::{MAIN, ReferenceKind};

use super::lake::{Lake, at_branch};
use super::{Reports, Scale};
use crate::failure::Failure;
use crate::fill;
use crate::report::ratios;
use crate::table::progress;

const DEPTHS: [usize; 3] = [1, 4, 16];
/// At any depth against `main`, and at the deepest against the first.
const BAR: f64 = 2.0;
const PAGE: u32 = 100;
/// Tables that each branch changed.
const CHANGED: usize = 5;
/// A table that none of them changed, so that it is sought on all of them.
const SOUGHT: usize = 8;

#[derive(Clone, Copy)]
enum Question {
    Find,
    List,
}

pub(super) async fn measure(
    lake: &Lake,
    scale: &Scale,
    reports: &mut Reports,
) -> Result<(), Failure> {
    let deepest = DEPTHS.into_iter().max().unwrap_or_default();
    let branch = |depth: usize| match depth {
        0 => MAIN.to_owned(),
        depth => format!("depth_{depth}"),
    };
    for depth in 1..=deepest {
        lake.make(ReferenceKind::Branch, &branch(depth), &branch(depth - 1))
            .await?;
        let tables = (0..CHANGED).map(fill::table).collect();
        lake.change(&branch(depth), tables).await?;
    }
    for (what, question) in [("find", Question::Find), ("list", Question::List)] {
        progress(&format!("at depth: {what}"));
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); DEPTHS.len() + 1];
        let mut statements = vec![0.0; times.len()];
        let depths: Vec<String> = [0].into_iter().chain(DEPTHS).map(branch).collect();
        for round in 0..=scale.rounds {
            for (place, name) in depths.iter().enumerate() {
                let before = lake.statements();
                let time = ask(lake, question, &at_branch(name), scale.stretch).await?;
                // The first turn fills what is kept in memory.
                if round > 0 {
                    times[place].push(time);
                }
                statements[place] = (lake.statements() - before) as f64 / scale.stretch as f64;
            }
        }
        let [main, of_depths @ ..] = times.as_slice() else {
            continue;
        };
        for (depth, times) in DEPTHS.into_iter().zip(of_depths) {
            let what = format!("{what}: depth {depth} against main");
            reports.ratios.at_most(&what, BAR, &ratios(times, main));
        }
        if let [first, .., last] = of_depths {
            let what = format!("{what}: depth {deepest} against {}", DEPTHS[0]);
            reports.ratios.at_most(&what, BAR, &ratios(last, first));
        }
        let shown: Vec<String> = statements.iter().map(|one| format!("{one:.0}")).collect();
        reports.counts.note(format!(
            "{what}: statements on main, at depth 1, 4, 16: {}",
            shown.join(", ")
        ));
    }
    for depth in (1..=deepest).rev() {
        lake.delete(&branch(depth)).await?;
    }
    Ok(())
}

async fn ask(
    lake: &Lake,
    question: Question,
    database: &str,
    times: usize,
) -> Result<f64, Failure> {
    let started = Instant::now();
    for _ in 0..times {
        match question {
            Question::Find => lake.look_up(database, &fill::table(SOUGHT)).await?,
            Question::List => {
                let listed = lake.page(database, PAGE).await?;
                if listed == 0 {
                    return Err(Failure::told("nothing is listed"));
                }
            }
        }
    }
    Ok(started.elapsed().as_secs_f64())
}
