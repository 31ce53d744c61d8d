//! Any records are grouped and decoded: no panic, and what decodes encodes to the same records.
#![no_main]

use event::{Groups, Record, Step};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut groups = Groups::default();
    let mut recent = Vec::new();
    for chunk in bytes.chunks_exact(16) {
        let word = |at: usize| u32::from_le_bytes([chunk[at], chunk[at + 1], chunk[at + 2], chunk[at + 3]]);
        let address = u64::from(word(0)) | u64::from(word(4)) << 32;
        let record = Record { address, what: word(8), extra: word(12) };
        recent.push(record);
        if let Step::Whole(site, complex) = groups.push(&record) {
            let mut again = Vec::new();
            complex.encode(site as u32, &mut again);
            assert!(recent.ends_with(&again));
            // Strings may be long: only the others are expanded.
            if complex.iterations() < 1 << 20 {
                complex.references(&event::StateLayout::default(), |_, size_bytes, _| assert!(size_bytes > 0));
            }
        }
    }
});
