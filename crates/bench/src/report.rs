//! Ratios with their bars: the median of the turns, the lowest and the highest.

use crate::numbers::median;
use crate::table::{Table, number, verdict};

/// One row: what, the bar, what was measured.
pub struct Report {
    pub table: Table,
}

const COLUMNS: &[&str] = &["what", "bar", "measured", "lowest", "highest", ""];

impl Report {
    pub fn new(title: impl Into<String>) -> Report {
        Report {
            table: Table::new(title, COLUMNS),
        }
    }

    pub fn at_least(&mut self, what: &str, bar: f64, ratios: &[f64]) {
        let measured = median(ratios.iter().copied());
        self.ratio(what, format!("≥ {bar}"), measured >= bar, ratios);
    }

    pub fn at_most(&mut self, what: &str, bar: f64, ratios: &[f64]) {
        let measured = median(ratios.iter().copied());
        self.ratio(what, format!("≤ {bar}"), measured <= bar, ratios);
    }

    fn ratio(&mut self, what: &str, bar: String, is_met: bool, ratios: &[f64]) {
        let lowest = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.table.row([
            what.to_owned(),
            bar,
            number(median(ratios.iter().copied())),
            number(lowest),
            number(highest),
            verdict(is_met),
        ]);
    }

    pub fn rates(&mut self, rates: &[(&str, &[f64])]) {
        let rate =
            |(who, rates): &(&str, &[f64])| format!("{who} {:.0}", median(rates.iter().copied()));
        let all: Vec<String> = rates.iter().map(rate).collect();
        self.table.note("commits/s of this run:");
        for few in all.chunks(3) {
            self.table.note(format!("  {}", few.join(", ")));
        }
    }
}

/// Turn by turn, one side over the other.
pub fn ratios(upper: &[f64], lower: &[f64]) -> Vec<f64> {
    upper
        .iter()
        .zip(lower)
        .map(|(upper, lower)| upper / lower)
        .collect()
}
