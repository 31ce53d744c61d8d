//! The screen's first look at records, sixteen at once, with AVX-512, while they are copied.
//!
//! **What.** Copies records out of shared memory, tells the steps of sixteen that pass by kind,
//! size and number alone from doubtful ones, and counts the former by kind. **Why this way.** A
//! copy brings each line of the program's core into registers; to look at it there takes no second
//! load. A register holds the rules of all sixteen kinds, so a step takes some thirty instructions
//! and no branch. **Invariant.** Each byte of shared memory is loaded once: what is looked at is
//! what the copy has, whatever the program writes meanwhile. **Leaves out** records that need a
//! closer look (cuts, and groups but masked accesses, of which string functions make millions) and
//! forged ones: the screen examines their steps in the copy.
//!
//! ```text
//! sixteen records ─▶ 16 × what ─▶ kind ─▶ limit[kind]   ─▶ number below it?  ┐
//!       │          │           ├─▶ size ─▶ sizes[kind]   ─▶ not above it?     ├─ all? else doubtful
//!       ▼          └ 16 × extra ─────────▶ extras[kind]  ─▶ its bits alone?   ┘
//!   the copy                      kind ─▶ addends[kind]  ─▶ added to the sums of the lane
//! ```

use super::kind_counts::{Sums, ADDENDS, KINDS};
use crate::target::memory::RecordSteps;
use event::{Record, RecordKind, COMPLEX_CODE};
use std::arch::x86_64::*;

/// What records of each kind may be.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// The first number that does not exist; 0 if such records need a closer look.
    pub(super) first_missing: [u32; KINDS],
    /// The greatest code of a size.
    pub(super) size_max: [u32; KINDS],
    /// The bits that `extra` must have.
    pub(super) extra_has: [u32; KINDS],
    /// The bits that `extra` may have in addition.
    pub(super) extra: [u32; KINDS],
}

/// What is known of steps that were copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Copied {
    /// Steps that were copied: at most as many as `doubtful` has bits.
    pub(super) steps: usize,
    /// A bit for each step, the lowest for the first: whether it must be examined, and was not
    /// counted.
    pub(super) doubtful: u64,
    /// Events of a tool in the other steps, and records of masked accesses that begin there.
    pub(super) others: usize,
}

/// The most steps that are copied at once.
pub(super) const COPIED_MAX: usize = u64::BITS as usize;

/// Proof that the processor has the instructions.
#[derive(Clone, Copy)]
pub(super) struct Wide(());

impl Wide {
    /// The proof, if there is one.
    pub(super) fn new() -> Option<Wide> {
        let has = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("popcnt");
        has.then_some(Wide(()))
    }

    /// Copies `from` to the beginning of `into`, which has as many records or more. Each step that
    /// passes adds one record to each lane of `sums`.
    pub(super) fn copy(
        self,
        from: &RecordSteps,
        into: &mut [Record],
        rules: &Rules,
        sums: &mut Sums,
    ) -> Copied {
        assert!(from.len() <= COPIED_MAX && from.len() * KINDS <= into.len());
        // SAFETY: `self` proves that the processor has the instructions.
        unsafe { copy(from, into, rules, sums) }
    }
}

/// The event of a tool, which is no plain reference although its kind is that of words of calls.
const EVENT: i32 = (RecordKind::Tool as i32) << 4;

/// Records of a masked access, the only group that passes.
const MASKED_RECORDS: usize = 2;

/// Words of the sums in which kinds that exist have their bytes.
const WORDS: usize = RecordKind::DataPage as usize / 4 + 1;

#[target_feature(enable = "avx512f,popcnt")]
fn copy(from: &RecordSteps, into: &mut [Record], rules: &Rules, sums: &mut Sums) -> Copied {
    let [first_missing, size_max, extra_has, extra_bits] =
        [&rules.first_missing, &rules.size_max, &rules.extra_has, &rules.extra].map(|rule| load(rule));
    // The sums stay in registers meanwhile.
    let addends: [__m512i; WORDS] = std::array::from_fn(|word| load(&ADDENDS[word]));
    let mut counts: [__m512i; WORDS] = std::array::from_fn(|word| load(&sums[word]));
    let has_events = rules.first_missing[RecordKind::Tool as usize] > 0;
    // The third word of each record is `what`, the fourth `extra`: two registers give eight.
    let thirds = _mm512_set_epi32(30, 26, 22, 18, 14, 10, 6, 2, 30, 26, 22, 18, 14, 10, 6, 2);
    let fourths = _mm512_add_epi32(thirds, _mm512_set1_epi32(1));
    let (low_byte, size_bits) = (_mm512_set1_epi32(0xff), _mm512_set1_epi32(0xf));
    let (event, complex) = (_mm512_set1_epi32(EVENT), _mm512_set1_epi32(COMPLEX_CODE.into()));
    let mut copied = Copied { steps: from.len(), ..Copied::default() };
    for (number, into) in into.as_chunks_mut::<KINDS>().0.iter_mut().take(from.len()).enumerate() {
        let quarters = from.load(number);
        for (records, quarter) in into.as_chunks_mut::<{ KINDS / 4 }>().0.iter_mut().zip(quarters) {
            store(quarter, records);
        }
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
        let wrong = _mm512_xor_si512(_mm512_permutexvar_epi32(kind, extra_has), extra);
        let beyond = _mm512_andnot_si512(_mm512_permutexvar_epi32(kind, extra_bits), wrong);
        let passes = _mm512_mask_testn_epi32_mask(fits, beyond, beyond) == u16::MAX;
        // A doubtful step counts nothing here.
        let counted = u16::from(passes).wrapping_neg();
        copied.doubtful |= u64::from(!passes) << number;
        for (count, addends) in counts.iter_mut().zip(addends) {
            *count = _mm512_mask_add_epi32(*count, counted, *count, _mm512_permutexvar_epi32(kind, addends));
        }
        let code = _mm512_and_si512(what, low_byte);
        let groups = _mm512_mask_cmpeq_epi32_mask(counted, code, complex);
        copied.others += groups.count_ones() as usize * MASKED_RECORDS;
        if has_events {
            let events = _mm512_mask_cmpeq_epi32_mask(counted, code, event);
            copied.others += events.count_ones() as usize;
        }
    }
    for (sums, count) in sums.iter_mut().zip(counts) {
        store(count, sums);
    }
    copied
}

/// A register of 64 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
fn load<T: Copy>(bytes: &[T]) -> __m512i {
    assert_eq!(size_of_val(bytes), size_of::<__m512i>());
    // SAFETY: the slice has as many bytes as the register, whose load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Writes a register's 64 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
fn store<T: Copy>(register: __m512i, bytes: &mut [T]) {
    assert_eq!(size_of_val(bytes), size_of::<__m512i>());
    // SAFETY: the slice has as many bytes as the register, whose store needs no alignment, and its
    // elements are records or words, which may have any bytes.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), register) }
}
