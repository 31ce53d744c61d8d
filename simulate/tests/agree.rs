//! The fast hierarchy against its slow twin: any machine, any stream, any cut into batches.

mod common;

use common::{deeds, full, levels};
use proptest::prelude::*;
use simulate::reference::Naive;
use simulate::{Counts, Hierarchy};

/// The fields that both must agree on, whatever the write-back accounting.
fn misses(counts: &Counts) -> Counts {
    Counts { write_backs: None, complex: Vec::new(), ..counts.clone() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_fast_hierarchy_is_the_slow_one(levels in levels(), deeds in deeds(), batch in 1usize..200) {
        let records = full(&deeds);
        let mut fast = Hierarchy::new(&levels).unwrap();
        let mut slow = Naive::new(&levels);
        for batch in records.chunks(batch) {
            fast.records(0, batch);
            slow.records(0, batch);
        }
        prop_assert_eq!(misses(&fast.counts()), misses(&slow.counts()));
    }

    #[test]
    fn threads_share_what_is_shared(levels in levels(), one in deeds(), two in deeds()) {
        let streams = [full(&one), full(&two)];
        let mut fast = Hierarchy::new(&levels).unwrap();
        let mut slow = Naive::new(&levels);
        for round in 0..4 {
            for (thread, stream) in streams.iter().enumerate() {
                let quarter = stream.len() / 4;
                let batch = &stream[round * quarter..(round + 1) * quarter];
                fast.records(thread as u32, batch);
                slow.records(thread as u32, batch);
            }
        }
        prop_assert_eq!(misses(&fast.counts()), misses(&slow.counts()));
    }
}
