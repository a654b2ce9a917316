//! Merging a branch that changed some tables into a `main` that changed another one meanwhile.

use std::time::Instant;

use anabranch_catalog::reference::{MAIN, ReferenceKind};

use super::lake::{Lake, TEMPLATE};
use super::{Reports, Scale};
use crate::failure::Failure;
use crate::fill;
use crate::report::ratios;
use crate::table::{number, progress};

const BAR: f64 = 1.5;
/// Of ten times as many tables.
const GROWTH: f64 = 12.0;
/// Merges of one table in a turn; of more tables fewer.
const MERGES: usize = 10;

/// What one merge cost.
#[derive(Clone, Copy)]
struct Cost {
    time: f64,
    statements: u64,
    rows: i64,
}

pub(super) async fn measure(
    lakes: [&Lake; 2],
    scale: &Scale,
    reports: &mut Reports,
) -> Result<(), Failure> {
    // Times by how many tables changed, of each of the two stores.
    let mut times = vec![[Vec::new(), Vec::new()]; scale.changed.len()];
    for (place, changed) in scale.changed.iter().enumerate() {
        progress(&format!("merging {changed}"));
        let mut last = [None; 2];
        for _ in 0..=scale.rounds {
            for (side, lake) in lakes.iter().enumerate() {
                let merges = (MERGES / changed).max(1);
                let mut time = 0.0;
                for _ in 0..merges {
                    let cost = merge(lake, *changed).await?;
                    time += cost.time;
                    last[side] = Some(cost);
                }
                times[place][side].push(time / merges as f64);
            }
        }
        // The first turn fills what is kept in memory.
        for times in &mut times[place] {
            times.remove(0);
        }
        let counts = |of: fn(&Cost) -> f64| {
            last.iter()
                .map(move |cost| cost.as_ref().map_or(f64::NAN, of))
        };
        let statements = counts(|cost| cost.statements as f64);
        let rows = counts(|cost| cost.rows as f64);
        for (of, counts) in [
            ("statements", statements.map(number).collect::<Vec<_>>()),
            ("rows", rows.map(number).collect()),
        ] {
            let cells = [format!("merge {changed}: {of}"), String::new()];
            reports.counts.row(cells.into_iter().chain(counts));
        }
        let [some, many] = &times[place];
        let what = format!(
            "merge {changed}: {} against {}",
            scale.sizes[2], scale.sizes[1]
        );
        reports.ratios.at_most(&what, BAR, &ratios(many, some));
    }
    for (place, changed) in scale.changed.iter().enumerate().skip(1) {
        let before = scale.changed[place - 1];
        let what = format!("merge {changed} against {before}");
        let growth = ratios(&times[place][1], &times[place - 1][1]);
        reports.ratios.at_most(&what, GROWTH, &growth);
    }
    Ok(())
}

async fn merge(lake: &Lake, changed: usize) -> Result<Cost, Failure> {
    let name = lake.fresh("source");
    lake.make(ReferenceKind::Branch, &name, MAIN).await?;
    let tables = (0..changed).map(fill::table);
    lake.change(&name, tables.collect()).await?;
    lake.change(MAIN, vec![TEMPLATE.to_owned()]).await?;
    let (statements, rows) = (lake.statements(), lake.rows().await?);
    let started = Instant::now();
    let merged = lake.merge(&name).await?;
    let time = started.elapsed().as_secs_f64();
    if merged != changed {
        let words = format!("a merge of {changed} tables brought {merged}");
        return Err(Failure::told(words));
    }
    let cost = Cost {
        time,
        statements: lake.statements() - statements,
        rows: lake.rows().await? - rows,
    };
    lake.delete(&name).await?;
    Ok(cost)
}
