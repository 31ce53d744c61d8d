//! The segmentation of traces against its slow twin.

use lightfoot_measure::phase::{phases, reference, segment};
use proptest::prelude::*;

/// One to three series of up to 11 values, with few levels, so that pieces of equal cost occur.
fn series() -> impl Strategy<Value = Vec<Vec<f64>>> {
    (1..12_usize, 1..4_usize).prop_flat_map(|(values, metrics)| {
        let value = prop_oneof![(0..4_i32).prop_map(f64::from), -50.0..50.0_f64];
        prop::collection::vec(prop::collection::vec(value, values), metrics)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_cut_is_cheaper(series in series(), penalty in 0.01..200.0_f64, least in 1..4_usize) {
        let values = series[0].len();
        let starts = segment(&series, values, penalty, least);
        let (cheapest, _) = reference::segment(&series, values, penalty, least);
        let cost = reference::cost(&series, values, penalty, &starts);
        prop_assert!((cost - cheapest).abs() <= 1e-6 * cheapest.max(1.0), "{starts:?}: {cost}, {cheapest}");
        prop_assert!(starts.len() == 1 || starts.windows(2).all(|pair| pair[1] - pair[0] >= least));
    }

    #[test]
    fn phases_cover_the_trace(series in series(), most in 1..6_usize) {
        let found = phases(&series, most);
        prop_assert!(found.len() <= most);
        prop_assert_eq!(found[0].start, 0);
        prop_assert_eq!(found[found.len() - 1].end, series[0].len());
        prop_assert!(found.windows(2).all(|pair| pair[0].end == pair[1].start));
    }
}
