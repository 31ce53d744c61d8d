//! Permutation tests: how extreme a difference is among those that relabelling alone produces.
//!
//! **The idea.** If instrumentation changes nothing, which samples are called *run* is arbitrary:
//! every choice of as many samples is as likely as the one observed. p is the share of choices that
//! differ as much as it does:
//!
//! ```text
//! samples     b b b r r r      observed
//!             b b r b r r      a relabelling ... the statistic of each is computed anew
//! ```
//!
//! With few samples all choices are listed and p is exact; with many, [`LIMIT`] random ones and the
//! observed one (Phipson and Smyth 2010). If there are several comparisons, the largest statistic
//! of each relabelling counts, which controls the error of the whole family even if the comparisons
//! are correlated (Westfall and Young 1993, single step).
//!
//! **Invariants.** The observed labelling is the first of all; baselines come before runs.
//! Statistics are standardised before the largest is taken, so that no metric dominates the family
//! by its scale.

use super::design::Design;
use crate::random::Random;

/// The most relabellings that are listed or drawn.
pub(super) const LIMIT: usize = 10_000;

/// All relabellings, the observed one first. Each lists the indices of the samples called *run*;
/// baselines come before runs.
pub(super) fn relabellings(design: &Design, seed: u64) -> Vec<Vec<usize>> {
    // The observed labelling comes first.
    let observed: Vec<usize> = (design.baselines..design.samples()).collect();
    let mut all = vec![observed.clone()];
    match &design.pairs {
        // Pairs: each may be exchanged by itself, 2^n ways, all of them listed while they are few.
        Some(pairs) if pairs.len() < 14 => {
            all.extend(
                (1..1_usize << pairs.len()).map(|flips| flipped(pairs, |index| flips >> index & 1 == 1)),
            );
        }
        Some(pairs) => {
            // Too many to list: draw as many random ones as the limit allows.
            let mut random = Random::new(seed);
            all.extend((1..LIMIT).map(|_| flipped(pairs, |_| random.bits() & 1 == 1)));
        }
        None if choices(design.samples(), design.runs) <= LIMIT as f64 => {
            combinations(design.samples(), design.runs, &mut |chosen| {
                if chosen != observed {
                    all.push(chosen.to_vec());
                }
            });
        }
        None => {
            let mut random = Random::new(seed);
            let mut order: Vec<usize> = (0..design.samples()).collect();
            all.extend((1..LIMIT).map(|_| {
                random.shuffle(&mut order);
                order[..design.runs].to_vec()
            }));
        }
    }
    all
}

fn flipped(pairs: &[(usize, usize)], mut flip: impl FnMut(usize) -> bool) -> Vec<usize> {
    pairs
        .iter()
        .enumerate()
        .map(|(index, &(baseline, run))| if flip(index) { baseline } else { run })
        .collect()
}

/// Calls `visit` with every set of `k` of `n` indices.
fn combinations(n: usize, k: usize, visit: &mut impl FnMut(&[usize])) {
    let mut chosen: Vec<usize> = (0..k).collect();
    loop {
        visit(&chosen);
        // The last index that can still grow; those behind it follow it closely.
        let Some(place) = (0..k).rev().find(|&place| chosen[place] < n - k + place) else { return };
        chosen[place] += 1;
        for next in place + 1..k {
            chosen[next] = chosen[next - 1] + 1;
        }
    }
}

/// `n` over `k`.
pub(super) fn choices(n: usize, k: usize) -> f64 {
    (0..k.min(n)).map(|i| (n - i) as f64 / (i + 1) as f64).product()
}

/// The smallest p that a two-sided test of this design can give, whatever the data.
pub(super) fn smallest_p(design: &Design) -> f64 {
    let (count, same) = match &design.pairs {
        Some(pairs) => (2_f64.powi(pairs.len() as i32), 2.0),
        // With equal sizes, swapping all labels gives the same statistic.
        None => {
            (choices(design.samples(), design.runs), if design.baselines == design.runs { 2.0 } else { 1.0 })
        }
    };
    let sampled = if count > LIMIT as f64 { 1.0 / LIMIT as f64 } else { 0.0 };
    (same / count).max(sampled).min(1.0)
}

/// Divides each comparison by its root mean square over all relabellings, so that all comparisons
/// of a family have the same weight.
pub(super) fn standardise(statistics: &mut [Vec<f64>]) {
    for column in 0..statistics.first().map_or(0, Vec::len) {
        let squares: f64 = statistics.iter().map(|row| row[column] * row[column]).sum();
        let scale = (squares / statistics.len() as f64).sqrt();
        for row in statistics.iter_mut() {
            row[column] = if scale > 1e-12 { row[column] / scale } else { 0.0 };
        }
    }
}

/// The value that a standardised statistic must reach for an adjusted p of at most `alpha`; `None`
/// if there are too few relabellings for any.
pub(super) fn critical(statistics: &[Vec<f64>], alpha: f64) -> Option<f64> {
    // Of each relabelling only the largest statistic counts: that controls the whole family.
    let mut largest: Vec<f64> =
        statistics.iter().map(|row| row.iter().copied().fold(0.0, f64::max)).collect();
    largest.sort_unstable_by(|a, b| b.total_cmp(a));
    let rank = (alpha * largest.len() as f64 + 1e-9) as usize;
    rank.checked_sub(1).map(|rank| largest[rank])
}

/// p of each comparison, adjusted for all of them: `statistics[relabelling][comparison]`, the
/// observed one first, larger is more extreme.
pub(super) fn adjusted(statistics: &[Vec<f64>]) -> Vec<f64> {
    let largest: Vec<f64> = statistics.iter().map(|row| row.iter().copied().fold(0.0, f64::max)).collect();
    let Some(observed) = statistics.first() else { return Vec::new() };
    // Sums in another order may differ in the last digits.
    let as_extreme = |t: f64| largest.iter().filter(|&&other| other >= t - 1e-9 * t.abs()).count();
    observed.iter().map(|&t| as_extreme(t) as f64 / largest.len() as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpaired(baselines: usize, runs: usize) -> Design {
        Design { baselines, runs, pairs: None }
    }

    #[test]
    fn few_samples_are_listed_and_many_are_drawn() {
        let all = relabellings(&unpaired(5, 5), 1);
        assert_eq!(all.len(), 252);
        assert_eq!(all[0], [5, 6, 7, 8, 9]);
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), 252);
        assert_eq!(relabellings(&unpaired(20, 20), 1).len(), LIMIT);
        let pairs = Design { baselines: 3, runs: 3, pairs: Some(vec![(0, 4), (1, 3), (2, 5)]) };
        let all = relabellings(&pairs, 1);
        assert_eq!((all.len(), &all[7]), (8, &vec![0, 1, 2]));
    }

    #[test]
    fn the_smallest_p_is_said() {
        assert!((smallest_p(&unpaired(26, 1)) - 1.0 / 27.0).abs() < 1e-12);
        assert!((smallest_p(&unpaired(5, 5)) - 2.0 / 252.0).abs() < 1e-12);
        let pairs = Design { baselines: 6, runs: 6, pairs: Some((0..6).map(|i| (i, i + 6)).collect()) };
        assert!((smallest_p(&pairs) - 2.0 / 64.0).abs() < 1e-12);
        assert_eq!(smallest_p(&unpaired(30, 30)), 1e-4);
    }

    #[test]
    fn what_is_significant_reaches_the_critical_value() {
        let rows: Vec<Vec<f64>> = (0..40).map(|row| vec![f64::from(row % 7), f64::from(39 - row)]).collect();
        let critical = critical(&rows, 0.05).unwrap();
        assert_eq!(critical, 38.0, "the second largest of forty");
        let mut observed = rows.clone();
        observed[0] = vec![0.0, critical];
        assert!(adjusted(&observed)[1] <= 0.05);
        assert_eq!(super::critical(&rows[..10], 0.05), None);
    }

    #[test]
    fn statistics_of_any_scale_weigh_alike() {
        let mut rows = [vec![1000.0, 0.001], vec![-1000.0, 0.003], vec![0.0, 0.0]];
        standardise(&mut rows);
        let squares = |column: usize| rows.iter().map(|row| row[column] * row[column]).sum::<f64>() / 3.0;
        assert!((squares(0) - 1.0).abs() < 1e-12 && (squares(1) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_largest_of_the_family_counts() {
        let statistics = [vec![3.0, 1.0], vec![0.0, 2.0], vec![2.5, 0.0], vec![0.5, 0.5]];
        assert_eq!(adjusted(&statistics), [0.25, 0.75]);
    }
}
