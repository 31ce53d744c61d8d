//! Errors of predictions, and what many of them come to.

use serde::{Deserialize, Serialize};

/// The error of a prediction relative to what was measured; below 0 where too little was predicted.
///
/// Nothing is relative to a figure of 0.
pub(super) fn relative(predicted: f64, measured: f64) -> Option<f64> {
    let error = predicted / measured - 1.0;
    (measured > 0.0 && error.is_finite()).then_some(error)
}

/// Some errors in brief, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Summary {
    pub(super) points: usize,
    /// Mean of the errors without their sign.
    pub(super) mean: f64,
    pub(super) median: f64,
    /// Nine tenths are no larger.
    pub(super) ninth_decile: f64,
    pub(super) largest: f64,
    /// Mean of the errors with their sign.
    pub(super) bias: f64,
}

impl Summary {
    /// Of some relative errors, if there are any.
    pub(super) fn of(errors: &[f64]) -> Option<Summary> {
        let mut sizes: Vec<f64> = errors.iter().map(|error| 100.0 * error.abs()).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        let largest = *sizes.last()?;
        let count = sizes.len();
        // The least value that nine tenths do not exceed.
        let ninth = (9 * count).div_ceil(10) - 1;
        Some(Summary {
            points: count,
            mean: sizes.iter().sum::<f64>() / count as f64,
            median: crate::race::median(&sizes)?,
            ninth_decile: sizes[ninth],
            largest,
            bias: 100.0 * errors.iter().sum::<f64>() / count as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_relative_to_what_was_measured() {
        assert!((relative(9.0, 10.0).unwrap() + 0.1).abs() < 1e-12);
        assert!((relative(12.0, 10.0).unwrap() - 0.2).abs() < 1e-12);
        assert_eq!(relative(1.0, 0.0), None);
        assert_eq!(relative(f64::NAN, 1.0), None);
    }

    #[test]
    fn a_summary_has_the_mean_the_middle_and_the_end() {
        let errors = [0.01, -0.02, 0.03, -0.04, 0.10];
        let summary = Summary::of(&errors).unwrap();
        let near = |is: f64, should: f64| assert!((is - should).abs() < 1e-9, "{summary:?}");
        near(summary.mean, 4.0);
        near(summary.median, 3.0);
        near(summary.ninth_decile, 10.0);
        near(summary.largest, 10.0);
        near(summary.bias, 1.6);
        let ten: Vec<f64> = (1..=10).map(|percent| f64::from(percent) / 100.0).collect();
        near(Summary::of(&ten).unwrap().ninth_decile, 9.0);
        assert_eq!(Summary::of(&[]), None);
    }
}
