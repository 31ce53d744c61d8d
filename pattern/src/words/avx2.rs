//! Marks the windows of 32 or of eight positions at a time: AVX2.
//!
//! Positions are those of the AVX-512 kernel; of marks that are no words it has some more, and
//! lacks others. AVX2 has no linear maps over bits, so the filters, which are such maps, are left
//! out. The windows of few words are told by tables of nibbles, 32 positions at a time. For more
//! words each position, or every second one, is hashed and looked up in the first bitmap by a
//! gather. Positions that pass are put side by side, and looked up in the bitmaps without a branch:
//! which of them pass cannot be predicted. Cost: about 28 instructions for 32 positions, or 12 and
//! a gather for eight looked-up ones; about twelve for each that passes.

use super::marks::{Marks, CHUNK_BYTES, MARGIN_BYTES};
use super::tables::{window_at, Nibbles, Tables, MULTIPLIERS};
use crate::vectors::{allows, Vectors};

use core::arch::x86_64::*;

/// How many bytes ahead of the positions the text is prefetched.
const AHEAD_BYTES: usize = 4096;

/// So many marks are stored without a look at how many there are.
const MARKS_AT_ONCE: usize = 4;

pub(super) fn is_available() -> bool {
    allows(Vectors::Avx2)
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("popcnt")
}

/// Marks the windows at `from..end` that pass the tables, and returns their number.
///
/// # Panics
/// When the range is not a chunk with its margin.
pub(super) fn mark(tables: &Tables, text: &[u8], from: usize, end: usize, marks: &mut Marks) -> usize {
    assert!(from <= end && (end - from).is_multiple_of(64) && end - from <= CHUNK_BYTES);
    assert!(end + MARGIN_BYTES <= text.len());
    assert!(tables.bitmaps.iter().all(|bitmap| bitmap.len() == 1 << (tables.bitmap_bits - 5)));
    // SAFETY: kernels are chosen after `is_available`, and the ranges were checked just now.
    unsafe {
        match &tables.nibbles {
            Some(nibbles) if nibbles.is_ascii => by_nibbles::<true>(tables, nibbles, text, from, end, marks),
            Some(nibbles) => by_nibbles::<false>(tables, nibbles, text, from, end, marks),
            None if tables.step == 2 => hashed::<2>(tables, text, from, end, marks),
            None => hashed::<1>(tables, text, from, end, marks),
        }
    }
}

/// Marks windows by the nibbles, then drops those that do not pass the bitmaps.
///
/// # Safety
/// The processor has the instructions, and the chunk with its margin lies within the text. `mark`
/// checks both.
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn by_nibbles<const ASCII: bool>(
    tables: &Tables,
    nibbles: &Nibbles,
    text: &[u8],
    from: usize,
    end: usize,
    marks: &mut Marks,
) -> usize {
    let mut count = 0;
    for at in (from..end).step_by(64) {
        // SAFETY: 64 positions of the chunk and its margin of more than eight bytes.
        let mask = unsafe { of_groups::<ASCII>(nibbles, text, at) };
        count = append::<1>(marks, count, at - from, mask);
    }
    looked_up::<true>(tables, text, from, marks, count)
}

/// The windows at `at..at + 64` that pass the nibbles, as a mask.
///
/// # Safety
/// The processor must have AVX2, and the text 72 bytes from `at` on.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn of_groups<const ASCII: bool>(nibbles: &Nibbles, text: &[u8], at: usize) -> u64 {
    _mm_prefetch(text.as_ptr().wrapping_add(at + AHEAD_BYTES).cast(), _MM_HINT_T0);
    let low = _mm256_set1_epi8(15);
    let mut mask = 0;
    for half in 0..2 {
        let mut groups = _mm256_set1_epi8(-1);
        for byte in 0..4 {
            // SAFETY: 32 bytes from `at + 35` on at most, within the 72 that the caller vouches
            // for.
            let bytes = unsafe { _mm256_loadu_si256(text.as_ptr().add(at + 32 * half + byte).cast()) };
            // A byte beyond ASCII finds nothing, which is right where windows are ASCII.
            let lower = if ASCII { bytes } else { _mm256_and_si256(bytes, low) };
            let lower = _mm256_shuffle_epi8(twice(&nibbles.lower[byte]), lower);
            let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), low);
            let upper = _mm256_shuffle_epi8(twice(&nibbles.upper[byte]), upper);
            groups = _mm256_and_si256(groups, _mm256_and_si256(lower, upper));
        }
        let none = _mm256_cmpeq_epi8(groups, _mm256_setzero_si256());
        mask |= u64::from(!_mm256_movemask_epi8(none).cast_unsigned()) << (32 * half);
    }
    mask
}

/// A table in both halves of a vector.
#[target_feature(enable = "avx2")]
#[inline]
fn twice(table: &[u8; 16]) -> __m256i {
    // SAFETY: the table is 16 readable bytes, and the load needs no alignment.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(table.as_ptr().cast()) })
}

/// Marks windows by the first bitmap, at every position or every second one of the text, then drops
/// those that do not pass the second.
///
/// # Safety
/// The processor has the instructions, and the chunk with its margin lies within the text. `mark`
/// checks both.
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn hashed<const STEP: usize>(
    tables: &Tables,
    text: &[u8],
    from: usize,
    end: usize,
    marks: &mut Marks,
) -> usize {
    let skipped = from.next_multiple_of(STEP) - from;
    let mut count = 0;
    for at in (from + skipped..end).step_by(64) {
        // SAFETY: up to 64 positions of the chunk, or one behind it, and its margin.
        let mask = unsafe { passed::<STEP>(tables, text, at) };
        count = append::<STEP>(marks, count, at - from, mask);
    }
    looked_up::<false>(tables, text, from, marks, count)
}

/// The windows at every position of `at..at + 64`, or every second one, that pass the first bitmap,
/// as a mask with a bit for each.
///
/// # Safety
/// The processor must have AVX2, and the text 80 bytes from `at` on.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn passed<const STEP: usize>(tables: &Tables, text: &[u8], at: usize) -> u64 {
    _mm_prefetch(text.as_ptr().wrapping_add(at + AHEAD_BYTES).cast(), _MM_HINT_T0);
    // Each of four lanes gets four bytes: lane `k` gets those from `STEP * k` on.
    let spread: [u8; 16] = std::array::from_fn(|at| (STEP * (at / 4) + at % 4) as u8);
    let spread = twice(&spread);
    let fold = _mm256_set1_epi8(tables.fold.cast_signed());
    let window_mask = _mm256_set1_epi32(tables.mask.cast_signed());
    let multiplier = _mm256_set1_epi32(MULTIPLIERS[0].cast_signed());
    let shift = _mm_cvtsi32_si128(32 - tables.bitmap_bits as i32);
    let mut mask = 0;
    for group in 0..8 / STEP {
        // SAFETY: 16 bytes from `at + 60` on at most, within the 80 that the caller vouches for.
        let bytes = unsafe {
            let bytes = text.as_ptr().add(at + 8 * STEP * group);
            _mm256_loadu2_m128i(bytes.add(4 * STEP).cast(), bytes.cast())
        };
        let windows = _mm256_shuffle_epi8(bytes, spread);
        let windows = _mm256_and_si256(_mm256_or_si256(windows, fold), window_mask);
        let hash = _mm256_srl_epi32(_mm256_mullo_epi32(windows, multiplier), shift);
        // SAFETY: a hash has `bitmap_bits` bits, and the bitmap a word for each 32 of them.
        let words = unsafe {
            _mm256_i32gather_epi32::<4>(tables.bitmaps[0].as_ptr().cast(), _mm256_srli_epi32::<5>(hash))
        };
        // The looked-up bit goes to the sign position: it is shifted by 31 minus its number, which
        // is the number with its lower five bits inverted.
        let to_sign = _mm256_andnot_si256(hash, _mm256_set1_epi32(31));
        let signs = _mm256_castsi256_ps(_mm256_sllv_epi32(words, to_sign));
        mask |= (_mm256_movemask_ps(signs) as u64) << (8 * group);
    }
    mask
}

/// Appends the offsets of a mask's bits to the marks, a bit for `STEP` positions from `base` on;
/// the new number of marks.
#[target_feature(enable = "avx2,bmi1,popcnt")]
#[inline]
fn append<const STEP: usize>(marks: &mut Marks, count: usize, base: usize, mask: u64) -> usize {
    let (mut left, mut at) = (mask, count);
    loop {
        // Behind the last one, entries are overwritten later.
        let some: &mut [u16; MARKS_AT_ONCE] =
            marks[at..].first_chunk_mut().expect("room for 64 marks behind a chunk's");
        for mark in some {
            *mark = (base + STEP * left.trailing_zeros() as usize) as u16;
            left &= left.wrapping_sub(1);
        }
        at += MARKS_AT_ONCE;
        if left == 0 {
            return count + mask.count_ones() as usize;
        }
    }
}

/// Keeps those of the first `count` marks whose windows pass both bitmaps, or only the second one
/// unless `BOTH`, and returns their number.
#[target_feature(enable = "avx2,bmi1,popcnt")]
#[inline]
fn looked_up<const BOTH: bool>(
    tables: &Tables,
    text: &[u8],
    from: usize,
    marks: &mut Marks,
    count: usize,
) -> usize {
    let mut kept = 0;
    for at in 0..count {
        let mark = marks[at];
        let window = tables.folded(window_at(text, from + usize::from(mark)));
        let first = if BOTH { tables.bit::<0>(window) } else { 1 };
        marks[kept] = mark;
        kept += (first & tables.bit::<1>(window)) as usize;
    }
    kept
}
