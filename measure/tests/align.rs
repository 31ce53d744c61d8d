//! Alignment against its slow twin, on known warps, and beside what dtaidistance says.

use lightfoot_measure::align::{align, cost, normalised, reference, Band};
use proptest::prelude::*;

/// A smooth series with a seed: sums of sines, so that a warp can be told from noise.
fn wave(n: usize, seed: u64) -> Vec<f64> {
    let phase = |k: f64| (seed as f64 * 1.7 + k * 0.9).sin() * 3.0;
    let at =
        |x: f64| (1..8).map(|k| (x * f64::from(k) * 0.021 + phase(f64::from(k))).sin() / f64::from(k)).sum();
    (0..n).map(|i| at(i as f64)).collect()
}

fn columns(dimensions: usize, n: usize) -> impl Strategy<Value = Vec<Vec<f64>>> {
    // Few different values, so that paths meet equal costs.
    let value = prop_oneof![(-3..4_i32).prop_map(f64::from), -2.0..2.0_f64];
    prop::collection::vec(prop::collection::vec(value, n), dimensions)
}

fn band() -> impl Strategy<Value = Band> {
    prop_oneof![
        Just(Band::Whole),
        (0.0..0.6_f64).prop_map(Band::Slanted),
        (0..40_usize).prop_map(Band::Parallel)
    ]
}

fn agree(a: &[Vec<f64>], b: &[Vec<f64>], band: Band) -> Result<(), TestCaseError> {
    let (fast, slow) = (align(a, b, band), reference::align(a, b, band));
    prop_assert_eq!(fast.cost.to_bits(), slow.cost.to_bits(), "{:?}: {} {}", band, fast.cost, slow.cost);
    prop_assert_eq!(&fast, &slow);
    prop_assert_eq!(cost(a, b, band), fast.cost);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn small_traces_agree(
        (a, b) in (1..9_usize, 1..50_usize, 1..50_usize).prop_flat_map(|(d, n, m)| (columns(d, n), columns(d, m))),
        band in band(),
    ) {
        agree(&a, &b, band)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Several strips and blocks, of which the last are never whole.
    #[test]
    fn long_traces_agree(n in 200..900_usize, m in 200..900_usize, d in 1..4_usize, seed in 0..1000_u64, band in band()) {
        let side = |n, salt| (0..d as u64).map(|k| wave(n, seed + 10 * k + salt)).collect::<Vec<_>>();
        agree(&side(n, 0), &side(m, 1), band)?;
    }
}

#[test]
fn multiples_of_the_strip_agree() {
    for n in [1, 255, 256, 257, 511, 512, 513, 1100] {
        for m in [1, 3, 255, 256, 257, 512, 1300] {
            for band in
                [Band::Whole, Band::Slanted(0.05), Band::Slanted(0.0), Band::Slanted(0.3), Band::Parallel(3)]
            {
                agree(&[wave(n, 1)], &[wave(m, 2)], band).unwrap();
            }
        }
    }
}

#[test]
fn a_trace_is_at_distance_0_from_itself() {
    let x = wave(700, 3);
    let aligned = align(std::slice::from_ref(&x), std::slice::from_ref(&x), Band::Whole);
    assert_eq!((aligned.cost, aligned.path.len(), aligned.warp().0), (0.0, 700, 0.0));
}

#[test]
fn a_known_warp_is_recovered_within_a_hundredth() {
    let (n, m) = (2000_usize, 2400_usize);
    // Record j of the second trace shows what the first showed at this time.
    let time = |j: f64| {
        let x = j / (m as f64 - 1.0);
        (n as f64 - 1.0) * (x + 0.06 * (std::f64::consts::TAU * x).sin())
    };
    let metric = |seed: u64| {
        let a = wave(n, seed);
        let b = (0..m).map(|j| {
            let t = time(j as f64);
            let low = (t as usize).min(n - 2);
            a[low] + (a[low + 1] - a[low]) * (t - low as f64)
        });
        let b: Vec<f64> = b.collect();
        (normalised(&a), normalised(&b))
    };
    let (a, b): (Vec<_>, Vec<_>) = [metric(1), metric(2), metric(3)].into_iter().unzip();
    for band in [Band::Whole, Band::Slanted(0.1)] {
        let aligned = align(&a, &b, band);
        let off = aligned.path.iter().map(|&(i, j)| (f64::from(i) - time(f64::from(j))).abs() / n as f64);
        let worst = off.fold(0.0, f64::max);
        assert!(worst < 0.01, "{band:?}: {worst}");
        assert_eq!(aligned.at_edge, 0);
        assert!((aligned.warp().0 - 0.06).abs() < 0.01, "{:?}", aligned.warp());
    }
    assert!(align(&a, &b, Band::Slanted(0.03)).at_edge > 100, "a band that is too narrow says so");
}

#[test]
fn normalised_series_have_mean_0_and_deviation_1() {
    let x = normalised(&[1.0, 2.0, 3.0, 6.0]);
    assert!(x.iter().sum::<f64>().abs() < 1e-12);
    assert!((x.iter().map(|x| x * x).sum::<f64>() - 4.0).abs() < 1e-12);
    assert_eq!(normalised(&[5.0, 5.0, f64::NAN]), [0.0, 0.0, 0.0]);
}
