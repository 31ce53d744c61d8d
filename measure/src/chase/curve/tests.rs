//! Curves with planted sizes, noise and outliers: the sizes are found, or the curve is refused.

use super::*;
use crate::random::Random;
use proptest::prelude::*;

/// Sizes of 4 KiB to 64 MiB, eight an octave.
fn sizes() -> Vec<u64> {
    (12..26).flat_map(|octave| (8..16).map(move |part| part << (octave - 3))).collect()
}

/// A curve with a tread of each latency up to its size, and softness of risers: the part of an
/// octave over which a rise is spread to both sides.
fn planted(levels: &[(u64, f64)], softness: f64) -> Vec<f64> {
    let latency = |size: u64| {
        let mut latency = levels[0].1;
        for pair in levels.windows(2) {
            let ((holds, _), (_, next)) = (pair[0], pair[1]);
            let octaves = (size as f64 / holds as f64).log2();
            // Nothing misses at the size itself if the riser is sharp.
            let missing = match softness {
                0.0 => f64::from(u8::from(size > holds)),
                _ => (0.5 + octaves / (2.0 * softness)).clamp(0.0, 1.0),
            };
            latency += missing * (next - pair[0].1);
        }
        latency
    };
    sizes().into_iter().map(latency).collect()
}

/// Trials of each point, each up to `noise` slower than the curve, and some of them outliers.
fn trials(curve: &[f64], noise: f64, outliers: f64, seed: u64) -> Vec<Point> {
    let mut random = Random::new(seed);
    let mut trial = |latency: f64| {
        let factor = if random.unit() < outliers { 2.0 + 30.0 * random.unit() } else { 1.0 };
        latency * factor * (1.0 + noise * random.unit())
    };
    let point =
        |(size, latency): (u64, &f64)| Point { size, nanoseconds: (0..7).map(|_| trial(*latency)).collect() };
    sizes().into_iter().zip(curve).map(point).collect()
}

const LEVELS: [(u64, f64); 4] = [(48 << 10, 1.2), (2 << 20, 4.0), (16 << 20, 30.0), (0, 110.0)];

fn fits(stairs: &Stairs) -> Vec<u64> {
    stairs.risers.iter().map(|riser| riser.fits).collect()
}

#[test]
fn sharp_risers_are_found_to_the_point() {
    let found = stairs(&trials(&planted(&LEVELS, 0.0), 0.02, 0.0, 1)).unwrap();
    assert_eq!(fits(&found), [48 << 10, 2 << 20, 16 << 20]);
    assert_eq!((found.risers[0].begins, found.risers[0].ends), (48 << 10, 52 << 10));
    assert!(found.risers[0].agrees_with(48 << 10) && !found.risers[0].agrees_with(32 << 10));
    let latencies: Vec<f64> = found.treads.iter().map(|tread| tread.nanoseconds.median).collect();
    for (found, (_, planted)) in latencies.iter().zip(LEVELS) {
        assert!((found / planted - 1.0).abs() < 0.03, "{latencies:?}");
    }
    assert_eq!(found.unsettled_from, None);
}

#[test]
fn a_flat_curve_has_one_tread() {
    let found = stairs(&trials(&planted(&LEVELS[..1], 0.0), 0.05, 0.0, 2)).unwrap();
    assert_eq!((found.treads.len(), found.risers.len()), (1, 0));
}

#[test]
fn a_small_rise_is_no_level() {
    // As of TLB misses within a cache.
    let levels = [(48 << 10, 1.2), (384 << 10, 4.4), (2 << 20, 5.7), (0, 35.0)];
    let found = stairs(&trials(&planted(&levels, 0.0), 0.02, 0.0, 3)).unwrap();
    assert_eq!(fits(&found), [48 << 10, 2 << 20]);
}

#[test]
fn a_rise_that_does_not_end_is_no_size() {
    let mut curve = planted(&LEVELS[..2], 0.0);
    let from = curve.len() - 6;
    for (step, latency) in curve[from..].iter_mut().enumerate() {
        *latency *= 1.0 + 0.4 * step as f64;
    }
    let found = stairs(&trials(&curve, 0.02, 0.0, 4)).unwrap();
    assert_eq!(fits(&found), [48 << 10]);
    assert_eq!(found.treads.len(), 2);
    assert_eq!(found.unsettled_from, Some(sizes()[from]));
}

#[test]
fn trials_that_disagree_are_refused() {
    let error = stairs(&trials(&planted(&LEVELS, 0.0), 3.0, 0.0, 5)).unwrap_err();
    assert!(matches!(error, Unclear::Unsteady { .. }), "{error}");
    let error = stairs(&trials(&planted(&LEVELS, 0.0), 0.02, 0.5, 6)).unwrap_err();
    assert!(matches!(error, Unclear::Unsteady { .. }), "{error}");
}

#[test]
fn a_curve_that_falls_is_refused() {
    // Something slowed every trial of the first third.
    let mut curve = planted(&LEVELS, 0.0);
    let third = curve.len() / 3;
    curve[..third].iter_mut().for_each(|latency| *latency *= 9.0);
    let error = stairs(&trials(&curve, 0.02, 0.0, 7)).unwrap_err();
    assert!(matches!(error, Unclear::Falls { .. }), "{error}");
}

#[test]
fn points_without_trials_are_refused() {
    let mut points = trials(&planted(&LEVELS, 0.0), 0.02, 0.0, 8);
    points.iter_mut().step_by(5).for_each(|point| point.nanoseconds.clear());
    assert_eq!(stairs(&points), Err(Unclear::Disturbed));
    assert_eq!(stairs(&[]), Err(Unclear::Disturbed));
    assert_eq!(stairs(&points[1..4]), Err(Unclear::Disturbed));
}

#[test]
fn quartiles_of_few_values() {
    let spread = |values: &[f64]| Spread::of(values).map(|spread| (spread.low, spread.median, spread.high));
    assert_eq!(spread(&[]), None);
    assert_eq!(spread(&[3.0]), Some((3.0, 3.0, 3.0)));
    assert_eq!(spread(&[5.0, 1.0, 4.0, 2.0, 3.0]), Some((2.0, 3.0, 4.0)));
}

#[test]
fn the_nearest_curve_that_never_falls() {
    let kept = never_falling(&[1.0, 2.0, 3.0]);
    assert!(kept.iter().zip([1.0, 2.0, 3.0]).all(|(kept, value)| (kept - value).abs() < 1e-9), "{kept:?}");
    let pooled = never_falling(&[1.0, 8.0, 2.0, 16.0]);
    assert!((pooled[1] - 4.0).abs() < 1e-9 && (pooled[2] - 4.0).abs() < 1e-9, "{pooled:?}");
    assert_eq!(without_outliers(&[1.0, 90.0, 1.0, 1.0, 2.0, 50.0]), [1.0, 1.0, 1.0, 1.0, 2.0, 2.0]);
}

proptest! {
    /// Sizes on the grid of the sweep, at least an octave and a half apart, with any latencies that
    /// differ by a factor of two or more.
    #[test]
    fn planted_sizes_are_found(
        first in 8usize..32,
        gaps in prop::collection::vec(12usize..28, 0..3),
        ratios in prop::collection::vec(2.0f64..6.0, 3),
        softness in prop::sample::select(vec![0.0, 0.15, 0.3]),
        noise in 0.0f64..0.12,
        outliers in 0.0f64..0.05,
        seed: u64,
    ) {
        let grid = sizes();
        let mut places = vec![first];
        for gap in gaps {
            places.push(places[places.len() - 1] + gap);
        }
        places.retain(|place| place + 10 < grid.len());
        let mut levels = vec![];
        let mut latency = 1.0;
        for (place, ratio) in places.iter().zip(&ratios) {
            levels.push((grid[*place], latency));
            latency *= ratio;
        }
        levels.push((0, latency));
        let found = stairs(&trials(&planted(&levels, softness), noise, outliers, seed)).unwrap();
        prop_assert_eq!(found.risers.len(), places.len(), "{:?} in {:?}", found.risers, levels);
        prop_assert_eq!(found.treads.len(), places.len() + 1);
        for (riser, (size, _)) in found.risers.iter().zip(&levels) {
            let off = (riser.fits as f64 / *size as f64).log2().abs();
            prop_assert!(off <= 0.2 + softness, "{} for {}: {:?}", riser.fits, size, riser);
            prop_assert!(riser.begins <= riser.fits && riser.fits < riser.ends, "{:?}", riser);
            prop_assert!(riser.begins as f64 <= *size as f64 * 1.2, "{:?} {}", riser, size);
            prop_assert!(riser.ends as f64 * 1.2 >= *size as f64, "{:?} {}", riser, size);
        }
    }

    /// Whatever the times are: sorted, positive and within the sizes, or refused; never a panic.
    #[test]
    fn any_times_give_ordered_stairs(times in prop::collection::vec(
        prop::collection::vec(0.1f64..1e6, 0..6), 0..60)) {
        let points: Vec<Point> = times
            .into_iter()
            .zip(sizes())
            .map(|(nanoseconds, size)| Point { size, nanoseconds })
            .collect();
        if let Ok(found) = stairs(&points) {
            prop_assert_eq!(found.treads.len(), found.risers.len() + 1);
            prop_assert!(found.risers.iter().all(|riser| riser.begins < riser.ends));
            prop_assert!(found.risers.windows(2).all(|pair| pair[0].begins < pair[1].begins));
        }
    }

    /// Noise that doubles and halves every trial by chance never passes for a machine.
    #[test]
    fn pure_noise_is_refused(seed: u64) {
        let flat = vec![5.0; sizes().len()];
        prop_assert!(stairs(&trials(&flat, 4.0, 0.0, seed)).is_err());
    }
}
