//! Creating a branch or a tag of a database with few, some and many tables.

use std::time::Instant;

use anabranch_catalog::reference::{MAIN, ReferenceKind};

use super::lake::Lake;
use super::{Reports, Scale};
use crate::failure::Failure;
use crate::report::ratios;
use crate::table::{number, progress};

const BAR: f64 = 1.5;

pub(super) async fn measure(
    lakes: [&Lake; 3],
    scale: &Scale,
    reports: &mut Reports,
) -> Result<(), Failure> {
    for (what, kind) in [
        ("branch", ReferenceKind::Branch),
        ("tag", ReferenceKind::Tag),
    ] {
        progress(&format!("creating: {what}"));
        let mut counted = (Vec::new(), Vec::new());
        for lake in lakes {
            // The first one fills what is kept in memory.
            for name in create(lake, kind, 1).await?.1 {
                lake.delete(&name).await?;
            }
            let (statements, rows) = (lake.statements(), lake.rows().await?);
            let made = create(lake, kind, scale.stretch).await?.1;
            let each = made.len() as f64;
            counted
                .0
                .push(number((lake.statements() - statements) as f64 / each));
            counted
                .1
                .push(number((lake.rows().await? - rows) as f64 / each));
            for name in made {
                lake.delete(&name).await?;
            }
        }
        for (of, counts) in [("statements", counted.0), ("rows", counted.1)] {
            let what = format!("create {what}: {of}");
            reports.counts.row(std::iter::once(what).chain(counts));
        }
        let mut times: [Vec<f64>; 3] = Default::default();
        for _ in 0..scale.rounds {
            for (lake, times) in lakes.iter().zip(&mut times) {
                let (time, made) = create(lake, kind, scale.stretch).await?;
                times.push(time);
                for name in made {
                    lake.delete(&name).await?;
                }
            }
        }
        let [few, some, many] = times;
        for (size, times) in [(scale.sizes[1], some), (scale.sizes[2], many)] {
            let what = format!("create {what}: {size} against {}", scale.sizes[0]);
            reports.ratios.at_most(&what, BAR, &ratios(&times, &few));
        }
    }
    Ok(())
}

/// How long it took, and what was made.
async fn create(
    lake: &Lake,
    kind: ReferenceKind,
    count: usize,
) -> Result<(f64, Vec<String>), Failure> {
    let names: Vec<String> = (0..count).map(|_| lake.fresh("made")).collect();
    let started = Instant::now();
    for name in &names {
        lake.make(kind, name, MAIN).await?;
    }
    Ok((started.elapsed().as_secs_f64(), names))
}
