//! Medians and percentiles.

use std::time::Duration;

/// Times of single operations.
#[derive(Clone, Debug, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    pub fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub fn absorb(&mut self, others: Times) {
        self.0.extend(others.0);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The time below which this part of the operations stays, in milliseconds.
    pub fn percentile(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let place = (part * sorted.len() as f64).ceil() as usize;
        let time = sorted.get(place.saturating_sub(1).min(sorted.len().saturating_sub(1)));
        time.copied().unwrap_or_default().as_secs_f64() * 1000.0
    }
}

/// The middle value; the lower one of two.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len().saturating_sub(1) / 2;
    sorted.get(middle).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let mut times = Times::default();
        for millis in (1..=100).rev() {
            times.add(Duration::from_millis(millis));
        }
        assert_eq!(times.percentile(0.5), 50.0);
        assert_eq!(times.percentile(0.99), 99.0);
        assert_eq!(times.percentile(1.0), 100.0);
        assert_eq!(Times::default().percentile(0.5), 0.0);
    }

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median([9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median([4.0, 1.0]), 1.0);
    }
}
