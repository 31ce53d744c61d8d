//! Rank correlation, order of pairs, and errors after one scale.

use crate::race::median;
use present::order::SortRows;

/// Spearman's rank correlation: Pearson's of the ranks, where equal values share their mean rank.
///
/// None of fewer than two values, or where all of one side are equal.
pub(super) fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    let (a, b) = (ranks(a), ranks(b));
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len().max(1) as f64;
    let (mean_a, mean_b) = (mean(&a), mean(&b));
    let sum = |of: &mut dyn Iterator<Item = f64>| of.sum::<f64>();
    let both = sum(&mut a.iter().zip(&b).map(|(a, b)| (a - mean_a) * (b - mean_b)));
    let square = |of: &[f64], mean: f64| sum(&mut of.iter().map(|value| (value - mean).powi(2)));
    let size = (square(&a, mean_a) * square(&b, mean_b)).sqrt();
    (a.len() > 1 && size > 0.0).then(|| both / size)
}

/// The rank of each value from 1; equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_rows(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let equal = |place: &&usize| values[**place] == values[order[start]];
        let end = start + order[start..].iter().take_while(equal).count();
        let shared = (start + 1 + end) as f64 / 2.0;
        order[start..end].iter().for_each(|&place| ranks[place] = shared);
        start = end;
    }
    ranks
}

/// Pairs in the order of `measured`, among those whose measured values differ by more than
/// `apart` of the smaller one: how many are predicted in that order, and how many there are.
pub(super) fn pairs(predicted: &[f64], measured: &[f64], apart: f64) -> (usize, usize) {
    let (mut right, mut all) = (0, 0);
    for second in 0..measured.len() {
        for first in 0..second {
            let (low, high) =
                if measured[first] < measured[second] { (first, second) } else { (second, first) };
            if measured[high] > measured[low] * (1.0 + apart) {
                all += 1;
                right += usize::from(predicted[low] < predicted[high]);
            }
        }
    }
    (right, all)
}

/// The scale with which as many predictions are too large as are too small.
pub(super) fn scale(predicted: &[f64], measured: &[f64]) -> Option<f64> {
    let ratios: Vec<f64> = predicted
        .iter()
        .zip(measured)
        .map(|(predicted, measured)| measured / predicted)
        .filter(|ratio| ratio.is_finite())
        .collect();
    median(&ratios)
}

/// The middle of the relative errors, in percent, after a scale.
pub(super) fn median_error(predicted: &[f64], measured: &[f64], scale: f64) -> Option<f64> {
    let error = |(predicted, measured): (&f64, &f64)| 100.0 * (scale * predicted / measured - 1.0).abs();
    let errors: Vec<f64> = predicted.iter().zip(measured).map(error).collect();
    median(&errors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use search::sample::Random;

    /// Ranks as they are defined: one more than the values below, and half of the others that are
    /// equal.
    fn naive_ranks(values: &[f64]) -> Vec<f64> {
        let rank = |value: &f64| {
            let below = values.iter().filter(|other| *other < value).count() as f64;
            let equal = values.iter().filter(|other| *other == value).count() as f64;
            1.0 + below + (equal - 1.0) / 2.0
        };
        values.iter().map(rank).collect()
    }

    #[test]
    fn spearman_is_pearsons_correlation_of_the_ranks() {
        let mut random = Random::new(1);
        for count in [2, 3, 10, 57] {
            // Few different values, so that many are equal.
            let draw =
                |random: &mut Random| -> Vec<f64> { (0..count).map(|_| random.below(6) as f64).collect() };
            let (a, b) = (draw(&mut random), draw(&mut random));
            let (ranks_a, ranks_b) = (naive_ranks(&a), naive_ranks(&b));
            let n = count as f64;
            let sum = |of: &dyn Fn(usize) -> f64| (0..count).map(of).sum::<f64>();
            let covariance =
                n * sum(&|i| ranks_a[i] * ranks_b[i]) - sum(&|i| ranks_a[i]) * sum(&|i| ranks_b[i]);
            let spread = |ranks: &Vec<f64>| n * sum(&|i| ranks[i] * ranks[i]) - sum(&|i| ranks[i]).powi(2);
            let size = (spread(&ranks_a) * spread(&ranks_b)).sqrt();
            match spearman(&a, &b) {
                Some(found) => assert!((found - covariance / size).abs() < 1e-9, "{a:?} {b:?}"),
                None => assert!(size == 0.0, "{a:?} {b:?}"),
            }
        }
    }

    #[test]
    fn without_equal_values_it_is_the_textbooks_formula() {
        let measured = [1.0, 5.0, 3.0, 9.0, 7.0];
        let predicted = [2.0, 4.0, 9.0, 80.0, 70.0];
        // Ranks 1 3 2 5 4 and 1 2 3 5 4: squares of differences add up to 2.
        let expected = 1.0 - 6.0 * 2.0 / (5.0 * 24.0);
        assert!((spearman(&measured, &predicted).unwrap() - expected).abs() < 1e-12);
        assert_eq!(spearman(&measured, &[1.0; 5]), None);
        assert_eq!(spearman(&[1.0], &[1.0]), None);
    }

    #[test]
    fn pairs_that_are_not_told_apart_do_not_count() {
        let measured = [100.0, 103.0, 150.0, 200.0];
        assert_eq!(pairs(&[1.0, 2.0, 3.0, 4.0], &measured, 0.05), (5, 5));
        assert_eq!(pairs(&[1.0, 2.0, 4.0, 3.0], &measured, 0.05), (4, 5));
        // What is predicted equal is not in the right order.
        assert_eq!(pairs(&[1.0; 4], &measured, 0.05), (0, 5));
        assert_eq!(pairs(&[4.0, 3.0, 2.0, 1.0], &measured, 0.0), (0, 6));
    }

    #[test]
    fn a_scale_splits_the_ratios_and_errors_are_relative() {
        let (predicted, measured) = ([1.0, 2.0, 3.0], [2.0, 4.0, 12.0]);
        let scale = scale(&predicted, &measured).unwrap();
        assert!((scale - 2.0).abs() < 1e-12);
        let error = median_error(&predicted, &measured, scale).unwrap();
        assert!(error.abs() < 1e-9);
        let error = median_error(&predicted[2..], &measured[2..], scale).unwrap();
        assert!((error - 50.0).abs() < 1e-9);
    }
}
