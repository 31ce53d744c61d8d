//! The screen's first look at sixteen records at once, with AVX-512.
//!
//! **What.** Counts leading records that pass by kind, size and number alone, in steps of sixteen,
//! and counts them by kind. **Why this way.** The screen's look-up by low byte takes a third of a
//! nanosecond for each record; here a register holds the rules of all sixteen kinds, so that a step
//! takes some twenty instructions and one branch. Counting the kinds here takes six instructions
//! more, and no other pass. **Leaves out** records that need a closer look (groups, cuts) and
//! forged ones: the first of them ends the leading ones, and the screen decides.
//!
//! ```text
//! sixteen records ─▶ 16 × what ─▶ kind ─▶ limit[kind]   ─▶ number below it?  ┐
//!                  │           ├─▶ size ─▶ sizes[kind]   ─▶ not above it?     ├─ all ─▶ the next step
//!                  └ 16 × extra ─────────▶ extras[kind]  ─▶ no other bit?     ┘
//!                                 kind ─▶ addends[kind]  ─▶ added to the sums of the lane
//! ```

use super::kind_counts::{Sums, ADDENDS, KINDS};
use event::{Record, RecordKind};
use std::arch::x86_64::*;

/// What records of each kind may be.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// The first number that does not exist; 0 if such records need a closer look.
    pub(super) first_missing: [u32; KINDS],
    /// The greatest code of a size.
    pub(super) size_max: [u32; KINDS],
    /// The bits that `extra` may have.
    pub(super) extra: [u32; KINDS],
}

/// Leading records that pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leading {
    /// All of them.
    pub(super) records: usize,
    /// Those that are events of a tool.
    pub(super) events: usize,
}

/// Proof that the processor has the instructions.
#[derive(Clone, Copy)]
pub(super) struct Wide(());

impl Wide {
    /// The proof, if there is one.
    pub(super) fn new() -> Option<Wide> {
        let has = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("popcnt");
        has.then_some(Wide(()))
    }

    /// The leading records that pass, in at most `steps` steps. Each step adds one record to each
    /// lane of `sums`.
    pub(super) fn leading(
        self,
        records: &[Record],
        rules: &Rules,
        (sums, steps): (&mut Sums, usize),
    ) -> Leading {
        // SAFETY: `self` proves that the processor has the instructions.
        unsafe { leading(&records[..records.len().min(steps * KINDS)], rules, sums) }
    }
}

/// The event of a tool, which is no plain reference although its kind is that of words of calls.
const EVENT: i32 = (RecordKind::Tool as i32) << 4;

/// Words of the sums in which kinds that exist have their bytes.
const WORDS: usize = RecordKind::DataPage as usize / 4 + 1;

#[target_feature(enable = "avx512f,popcnt")]
fn leading(records: &[Record], rules: &Rules, sums: &mut Sums) -> Leading {
    let [first_missing, size_max, extra_bits] =
        [&rules.first_missing, &rules.size_max, &rules.extra].map(|rule| load(rule));
    // The sums stay in registers meanwhile.
    let addends: [__m512i; WORDS] = std::array::from_fn(|word| load(&ADDENDS[word]));
    let mut counts: [__m512i; WORDS] = std::array::from_fn(|word| load(&sums[word]));
    let has_events = rules.first_missing[RecordKind::Tool as usize] > 0;
    // The third word of each record is `what`, the fourth `extra`: two registers give eight.
    let thirds = _mm512_set_epi32(30, 26, 22, 18, 14, 10, 6, 2, 30, 26, 22, 18, 14, 10, 6, 2);
    let fourths = _mm512_add_epi32(thirds, _mm512_set1_epi32(1));
    let (low_byte, size_bits) = (_mm512_set1_epi32(0xff), _mm512_set1_epi32(0xf));
    let event = _mm512_set1_epi32(EVENT);
    let mut passed = Leading { records: 0, events: 0 };
    for step in records.chunks_exact(KINDS) {
        let quarters: [__m512i; 4] = std::array::from_fn(|quarter| load(&step[4 * quarter..][..4]));
        let column = |words| {
            let low = _mm512_permutex2var_epi32(quarters[0], words, quarters[1]);
            let high = _mm512_permutex2var_epi32(quarters[2], words, quarters[3]);
            _mm512_mask_blend_epi32(0xff00, low, high)
        };
        let (what, extra) = (column(thirds), column(fourths));
        // A look-up by kind takes the lowest four bits of each lane.
        let kind = _mm512_srli_epi32::<4>(what);
        let exists = _mm512_cmplt_epu32_mask(
            _mm512_srli_epi32::<8>(what),
            _mm512_permutexvar_epi32(kind, first_missing),
        );
        let size = _mm512_and_si512(what, size_bits);
        let fits = _mm512_mask_cmple_epu32_mask(exists, size, _mm512_permutexvar_epi32(kind, size_max));
        let beyond = _mm512_andnot_si512(_mm512_permutexvar_epi32(kind, extra_bits), extra);
        if _mm512_mask_testn_epi32_mask(fits, beyond, beyond) != 0xffff {
            break;
        }
        for (count, addends) in counts.iter_mut().zip(addends) {
            *count = _mm512_add_epi32(*count, _mm512_permutexvar_epi32(kind, addends));
        }
        if has_events {
            let events = _mm512_cmpeq_epi32_mask(_mm512_and_si512(what, low_byte), event);
            passed.events += events.count_ones() as usize;
        }
        passed.records += KINDS;
    }
    for (sums, count) in sums.iter_mut().zip(counts) {
        store(count, sums);
    }
    passed
}

/// A register of 64 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
fn load<T: Copy>(bytes: &[T]) -> __m512i {
    assert_eq!(size_of_val(bytes), size_of::<__m512i>());
    // SAFETY: the slice has as many bytes as the register, whose load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Writes a register's sixteen lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn store(register: __m512i, lanes: &mut [u32; KINDS]) {
    assert_eq!(size_of_val(lanes), size_of::<__m512i>());
    // SAFETY: the array has as many bytes as the register, whose store needs no alignment.
    unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), register) }
}
