//! Counts records by kind beside their simulation.
//!
//! **Why a file of its own.** A report tells what the observer had to read, and counting may not
//! slow it down. With one table, additions to a count wait for each other: a third of a nanosecond
//! for each record. Here sixteen records are counted at once: each has a lane, and a lane holds a
//! count of eight bits for each of eight kinds.
//!
//! ```text
//! kind 2 of a record:    lane += 1 << (8 * 2)        0 … 0 | 0 | 1 | 0 | 0
//! ```
//!
//! **Invariant.** Lanes are added up before a count can exceed eight bits. **Leaves out** what a
//! record means.

use crate::kernel::{Kernel, Pass, Vectors};
use crate::touch::STEP;
use event::{Counter, Record, Sink};

/// Adds `records` to `counter`; cost: a tenth of a nanosecond for each record with AVX-512.
pub fn count_kinds(records: &[Record], counter: &mut Counter) {
    let steps = records.len() / STEP * STEP;
    counter.add(&Kernel::fastest().pass(CountKinds { records: &records[..steps] }));
    counter.records(0, &records[steps..]);
}

/// Steps after which no lane's count exceeds eight bits.
const STEPS_MAX: usize = u8::MAX as usize;

/// Kinds that a lane counts.
const KINDS: usize = 8;

struct CountKinds<'a> {
    /// Whole steps.
    records: &'a [Record],
}

impl Pass for CountKinds<'_> {
    type Output = [u64; 16];

    /// The loop has no operation of a kernel: it is compiled for the kernel's instructions.
    #[inline(always)]
    fn run<K: Vectors>(self, _kernel: K) -> [u64; 16] {
        let mut counts = [0; 16];
        for records in self.records.chunks(STEPS_MAX * STEP) {
            let mut lanes = [[0_u64; STEP]; 2];
            for step in records.chunks_exact(STEP) {
                for (lane, record) in step.iter().enumerate() {
                    let kind = u64::from(record.what >> 4 & 15);
                    // A shift by 64 and more leaves nothing: such a kind is in the other half.
                    lanes[0][lane] += shifted(8 * kind);
                    lanes[1][lane] += shifted((8 * kind).wrapping_sub(64));
                }
            }
            for (half, lanes) in lanes.iter().enumerate() {
                for (kind, count) in counts[half * KINDS..][..KINDS].iter_mut().enumerate() {
                    *count += lanes.iter().map(|lane| lane >> (8 * kind) & 0xff).sum::<u64>();
                }
            }
        }
        counts
    }
}

#[inline(always)]
fn shifted(bits: u64) -> u64 {
    if bits < 64 {
        1 << bits
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn kernels_count_as_one_table_does(what in prop::collection::vec(any::<u32>(), 0..9000), repeats in 1_usize..4) {
            let record = |what: &u32| Record { address: 7, what: *what, extra: *what };
            let records: Vec<Record> = what.iter().map(record).collect::<Vec<_>>().repeat(repeats);
            let mut slow = Counter::default();
            slow.records(0, &records);
            let steps = records.len() / STEP * STEP;
            for kernel in Kernel::all() {
                let mut fast = Counter::default();
                fast.add(&kernel.pass(CountKinds { records: &records[..steps] }));
                fast.records(0, &records[steps..]);
                prop_assert_eq!(&fast, &slow);
            }
        }
    }

    #[test]
    fn one_kind_fills_no_lane_beyond_its_count() {
        for kind in 0..16 {
            let records = vec![Record { address: 0, what: kind << 4, extra: 0 }; 3 * STEPS_MAX * STEP];
            for kernel in Kernel::all() {
                let counts = kernel.pass(CountKinds { records: &records });
                assert_eq!(counts[kind as usize], records.len() as u64);
                assert_eq!(counts.iter().sum::<u64>(), records.len() as u64);
            }
        }
    }
}
