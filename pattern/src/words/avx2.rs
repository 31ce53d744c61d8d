//! Marks the windows of 32 or of eight positions at a time: AVX2.
//!
//! Positions are those of the AVX-512 kernel; of marks that are no words it has some more, and
//! lacks others. AVX2 has no linear maps over bits, so the filters, which are such maps, are left
//! out. The windows of few words are told by tables of nibbles, 32 positions at a time. For more
//! words each position is hashed and looked up in the first bitmap by a gather. Positions that
//! pass are looked up in the bitmaps, one by one. Cost: about 36 instructions for 32 positions, or
//! 12 and a gather for eight.

use super::marks::{Marks, CHUNK_BYTES, MARGIN_BYTES};
use super::tables::{window_at, Nibbles, Tables, MULTIPLIERS};
use crate::vectors::{allows, Vectors};

use core::arch::x86_64::*;

/// How many bytes ahead of the positions the text is prefetched.
const AHEAD_BYTES: usize = 4096;

pub(super) fn is_available() -> bool {
    allows(Vectors::Avx2) && is_x86_feature_detected!("avx2")
}

/// Marks the windows at `from..end` that pass the tables, and returns their number.
///
/// # Panics
/// When the range is not a chunk with its margin.
pub(super) fn mark(tables: &Tables, text: &[u8], from: usize, end: usize, marks: &mut Marks) -> usize {
    assert!(from <= end && (end - from).is_multiple_of(64) && end - from <= CHUNK_BYTES);
    assert!(end + MARGIN_BYTES <= text.len());
    assert!(tables.bitmaps[0].len() == 1 << (tables.bitmap_bits - 5));
    // SAFETY: kernels are chosen after `is_available`, and the ranges were checked just now.
    unsafe { mark_chunk(tables, text, from, end, marks) }
}

/// Marks the windows that pass the nibbles, if there are any, and the bitmaps.
///
/// # Safety
/// The processor has AVX2, and the chunk with its margin lies within the text.
#[target_feature(enable = "avx2")]
unsafe fn mark_chunk(tables: &Tables, text: &[u8], from: usize, end: usize, marks: &mut Marks) -> usize {
    let mut count = 0;
    for at in (from..end).step_by(64) {
        // SAFETY: 64 positions of the chunk and its margin of more than eight bytes.
        let mut mask = unsafe {
            match &tables.nibbles {
                Some(nibbles) => of_groups(nibbles, tables.fold, text, at),
                None => passed(tables, text, at),
            }
        };
        while mask != 0 {
            let place = at + mask.trailing_zeros() as usize;
            mask &= mask - 1;
            let window = tables.folded(window_at(text, place));
            if tables.passes_bitmaps(window) {
                marks[count] = (place - from) as u16;
                count += 1;
            }
        }
    }
    count
}

/// The windows at `at..at + 64` that pass the nibbles, as a mask.
///
/// # Safety
/// The processor must have AVX2, and the text 72 bytes from `at` on.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn of_groups(nibbles: &Nibbles, fold: u8, text: &[u8], at: usize) -> u64 {
    _mm_prefetch(text.as_ptr().wrapping_add(at + AHEAD_BYTES).cast(), _MM_HINT_T0);
    let (fold, low) = (_mm256_set1_epi8(fold.cast_signed()), _mm256_set1_epi8(15));
    let mut mask = 0;
    for half in 0..2 {
        let mut groups = _mm256_set1_epi8(-1);
        for byte in 0..4 {
            // SAFETY: 32 bytes from `at + 35` on at most, within the 72 that the caller vouches
            // for.
            let bytes = unsafe { _mm256_loadu_si256(text.as_ptr().add(at + 32 * half + byte).cast()) };
            let bytes = _mm256_or_si256(bytes, fold);
            let lower = _mm256_shuffle_epi8(twice(&nibbles.lower[byte]), _mm256_and_si256(bytes, low));
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

/// The windows at `at..at + 64` that pass the first bitmap, as a mask.
///
/// # Safety
/// The processor must have AVX2, and the text 72 bytes from `at` on.
#[target_feature(enable = "avx2")]
unsafe fn passed(tables: &Tables, text: &[u8], at: usize) -> u64 {
    _mm_prefetch(text.as_ptr().wrapping_add(at + AHEAD_BYTES).cast(), _MM_HINT_T0);
    // Each of eight lanes gets four bytes: lane `k` gets bytes `k` to `k + 3`. The upper half
    // begins at byte 4.
    let spread = _mm256_setr_epi8(
        0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6, 4, 5, 6, 7, 5, 6, 7, 8, 6, 7, 8, 9, 7, 8, 9, 10,
    );
    let fold = _mm256_set1_epi8(tables.fold.cast_signed());
    let window_mask = _mm256_set1_epi32(tables.mask.cast_signed());
    let multiplier = _mm256_set1_epi32(MULTIPLIERS[0].cast_signed());
    let shift = _mm_cvtsi32_si128(32 - tables.bitmap_bits as i32);
    let mut mask = 0;
    for group in 0..8 {
        // SAFETY: 16 bytes from `at + 56` on at most, within the 72 that the caller vouches for.
        let bytes = unsafe { _mm_loadu_si128(text.as_ptr().add(at + 8 * group).cast()) };
        let windows = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), spread);
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
