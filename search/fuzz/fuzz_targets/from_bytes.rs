//! Any bytes at all: an index or an error, and an index answers without crashing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use search::{BytesIndex, Index, Key};

fn query<K: Key>(bytes: &[u8], queries: &[K]) {
    if let Ok(index) = Index::<K>::from_bytes(bytes) {
        let mut ranks = vec![0; queries.len()];
        index.batch(queries, &mut ranks);
        assert!(ranks.iter().all(|&rank| rank <= index.len()));
        assert!(queries.iter().zip(&ranks).all(|(&q, &rank)| index.lower_bound(q) == rank));
    }
}

fuzz_target!(|bytes: &[u8]| {
    query(bytes, &[0u32, 1, u32::MAX / 2, u32::MAX]);
    query(bytes, &[0u64, 1, u64::MAX / 2, u64::MAX]);
    query(bytes, &[f64::NAN, -0.0, 1.0]);
    query(bytes, &[0u128, 1 << 100, u128::MAX]);
    if let Ok(index) = BytesIndex::from_bytes(bytes) {
        index.lower_bound(b"some string");
    }
});
