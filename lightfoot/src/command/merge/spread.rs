//! What the numbers of one column in several reports are together.

use crate::cli::Statistic;
use serde::Serialize;

/// The numbers of one column in all reports.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Spread {
    /// The sum.
    pub(super) sum: u64,
    /// The arithmetic mean.
    pub(super) mean: f64,
    /// The standard deviation of a sample, with n - 1 in its denominator; 0 of one report.
    pub(super) deviation: f64,
    /// The median; of an even number of reports the lower one of the two in the middle, so that it
    /// is a number that was counted.
    pub(super) median: u64,
    /// The least number.
    pub(super) least: u64,
    /// The greatest number.
    pub(super) most: u64,
}

impl Spread {
    /// The statistics of `values`, of which there is one of each report. A report without the row
    /// counts as 0. The sum stops at the greatest 64-bit number.
    pub(super) fn of(values: &[u64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let sum = values.iter().fold(0u64, |sum, value| sum.saturating_add(*value));
        let count = values.len().max(1) as f64;
        let mean = values.iter().map(|value| *value as f64).sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (*value as f64 - mean).powi(2)).sum();
        let (least, most) = (sorted.first().copied().unwrap_or(0), sorted.last().copied().unwrap_or(0));
        // Equal numbers have no deviation, whatever their mean was rounded to.
        let deviation = if least == most { 0.0 } else { (squares / (count - 1.0)).sqrt() };
        let mean = if least == most { least as f64 } else { mean };
        Spread { sum, mean, deviation, median: middle(&sorted), least, most }
    }

    /// The number that the merged report has. A mean is rounded to a whole number.
    pub(super) fn value(&self, statistic: Statistic) -> u64 {
        match statistic {
            Statistic::Sum => self.sum,
            Statistic::Mean => self.mean.round() as u64,
            Statistic::Median => self.median,
        }
    }

    /// The greatest number less the least one, in percent of the mean; `None` where all are 0.
    pub(super) fn percent(&self) -> Option<f64> {
        (self.mean > 0.0).then(|| (self.most - self.least) as f64 * 100.0 / self.mean)
    }

    /// Whether the reports have one number.
    pub(super) fn is_equal(&self) -> bool {
        self.least == self.most
    }
}

fn middle(sorted: &[u64]) -> u64 {
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn statistics_of_four_reports() {
        let spread = Spread::of(&[7, 1, 3, 5]);
        let deviation = (20.0f64 / 3.0).sqrt();
        assert_eq!(spread, Spread { sum: 16, mean: 4.0, deviation, median: 3, least: 1, most: 7 });
        assert_eq!(
            [Statistic::Sum, Statistic::Mean, Statistic::Median].map(|of| spread.value(of)),
            [16, 4, 3]
        );
        assert_eq!(spread.percent(), Some(150.0));
        assert_eq!(Spread::of(&[0, 0]).percent(), None);
        assert_eq!(Spread::of(&[u64::MAX, 1]).sum, u64::MAX);
    }

    proptest! {
        #[test]
        fn equal_reports_have_no_spread(value in any::<u64>(), count in 1usize..9) {
            let spread = Spread::of(&vec![value; count]);
            prop_assert!(spread.is_equal() && spread.deviation == 0.0 && spread.mean == value as f64);
            prop_assert!(spread.percent().is_none_or(|percent| percent == 0.0));
            prop_assert_eq!(spread.median, value);
        }

        #[test]
        fn the_middle_lies_between_the_ends(values in prop::collection::vec(0u64..1 << 40, 1..9)) {
            let spread = Spread::of(&values);
            prop_assert_eq!(spread.sum, values.iter().sum::<u64>());
            prop_assert!(values.contains(&spread.median));
            let below = values.iter().filter(|value| **value < spread.median).count();
            let above = values.iter().filter(|value| **value > spread.median).count();
            prop_assert!(2 * below < values.len() && 2 * above <= values.len());
            prop_assert!(spread.least as f64 <= spread.mean && spread.mean <= spread.most as f64);
        }
    }
}
