//! Marks the windows of 64 positions at a time: AVX-512 with VBMI, VBMI2 and GFNI.
//!
//! Shapes: positions `from..end`, a multiple of 64 and at most a chunk; marks are offsets from `from`, ascending. Reads up to 67 bytes behind the
//! last position. Cost: about 25 instructions for 64 positions that the filter drops, a gather of 16 lanes for each 16 that it does not.

use super::{Tables, CHUNK_BYTES, MARGIN_BYTES, MULTIPLIER};
use core::arch::x86_64::*;

/// How far ahead of the positions the text is asked for.
const AHEAD_BYTES: usize = 4096;

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("gfni")
}

/// Marks the windows at `from..end` that the tables let pass; their number.
///
/// # Panics
/// When the range is not a chunk with its margin, as the comment above has it.
pub(super) fn mark(
    tables: &Tables,
    text: &[u8],
    from: usize,
    end: usize,
    marked: &mut [u16; CHUNK_BYTES + 64],
) -> usize {
    assert!(from <= end && (end - from).is_multiple_of(64) && end - from <= CHUNK_BYTES);
    assert!(end + MARGIN_BYTES <= text.len() && tables.bitmap.len() == 1 << (tables.bitmap_bits - 5));
    // SAFETY: `Words::new` made the tables after `is_available`, and the ranges were checked just now.
    unsafe {
        match &tables.filter {
            Some(filter) => filtered(tables, filter, text, from, end, marked),
            None => hashed(tables, text, from, end, marked),
        }
    }
}

/// Filter first, then the bitmap for what passed.
///
/// # Safety
/// As `mark` checks.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,gfni")]
unsafe fn filtered(
    tables: &Tables,
    filter: &[u8; 256],
    text: &[u8],
    from: usize,
    end: usize,
    marked: &mut [u16; CHUNK_BYTES + 64],
) -> usize {
    let mut passed = [0u16; CHUNK_BYTES + 64];
    let mut count = 0;
    let quarter = |at: usize| load(&filter[64 * at..]);
    let quarters = [quarter(0), quarter(1), quarter(2), quarter(3)];
    let rows = tables.rows.map(|matrix| _mm512_set1_epi64(matrix.cast_signed()));
    let bits = tables.bits.map(|matrix| _mm512_set1_epi64(matrix.cast_signed()));
    let places: [u8; 64] = std::array::from_fn(|at| at as u8);
    let (places, powers) = (load(&places), _mm512_set1_epi64(0x8040_2010_0804_0201_u64.cast_signed()));
    for at in (from..end).step_by(64) {
        _mm_prefetch(text.as_ptr().wrapping_add(at + AHEAD_BYTES).cast(), _MM_HINT_T0);
        let bytes = [load(&text[at..]), load(&text[at + 1..]), load(&text[at + 2..]), load(&text[at + 3..])];
        let row = sum(bytes, rows);
        let bit = _mm512_and_si512(sum(bytes, bits), _mm512_set1_epi8(7));
        let low = _mm512_permutex2var_epi8(quarters[0], row, quarters[1]);
        let high = _mm512_permutex2var_epi8(quarters[2], row, quarters[3]);
        let found = _mm512_mask_blend_epi8(_mm512_movepi8_mask(row), low, high);
        let mask = _mm512_test_epi8_mask(found, _mm512_shuffle_epi8(powers, bit));
        if mask == 0 {
            continue;
        }
        let offsets = _mm512_maskz_compress_epi8(mask, places);
        let base = _mm512_set1_epi16((at - from) as i16);
        let words = |half| _mm512_add_epi16(base, _mm512_cvtepu8_epi16(half));
        store(&mut passed[count..], words(_mm512_castsi512_si256(offsets)));
        let number = mask.count_ones() as usize;
        if number > 32 {
            store(&mut passed[count + 32..], words(_mm512_extracti64x4_epi64::<1>(offsets)));
        }
        count += number;
    }
    let mut kept = 0;
    for first in (0..count).step_by(16) {
        // SAFETY: 16 entries from `first` on lie within the array, which has 64 more than a chunk.
        let offsets = unsafe { _mm256_loadu_si256(passed.as_ptr().add(first).cast()) };
        let wide = _mm512_cvtepu16_epi32(offsets);
        // Entries behind the last one may be stale; they are offsets all the same.
        let wide = _mm512_min_epu32(wide, _mm512_set1_epi32((end - from) as i32));
        // SAFETY: each lane reads four bytes at an offset within the chunk or right behind it, inside the margin.
        let windows = unsafe { _mm512_i32gather_epi32::<1>(wide, text.as_ptr().add(from).cast()) };
        let left = u32::MAX >> (32 - (count - first).min(16));
        let mask = hash_passes(tables, windows) & left as u16;
        let compressed = _mm256_maskz_compress_epi16(mask, offsets);
        // SAFETY: `kept` never exceeds `first`, so 16 entries fit as above.
        unsafe { _mm256_storeu_si256(marked.as_mut_ptr().add(kept).cast(), compressed) };
        kept += mask.count_ones() as usize;
    }
    kept
}

/// The bitmap for every position: with thousands of words the filter would pass nearly everything.
///
/// # Safety
/// As `mark` checks.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,gfni")]
unsafe fn hashed(
    tables: &Tables,
    text: &[u8],
    from: usize,
    end: usize,
    marked: &mut [u16; CHUNK_BYTES + 64],
) -> usize {
    // Lane k of 16 gets bytes k to k + 3.
    let spread: [u8; 64] = std::array::from_fn(|at| (at / 4 + at % 4) as u8);
    let places: [u8; 64] = std::array::from_fn(|at| at as u8);
    let (spread, places) = (load(&spread), load(&places));
    let mut kept = 0;
    for at in (from..end).step_by(64) {
        _mm_prefetch(text.as_ptr().wrapping_add(at + AHEAD_BYTES).cast(), _MM_HINT_T0);
        let mut mask = 0u64;
        for quarter in 0..4 {
            let bytes = load(&text[at + 16 * quarter..]);
            let windows = _mm512_permutexvar_epi8(spread, bytes);
            mask |= u64::from(hash_passes(tables, windows)) << (16 * quarter);
        }
        if mask == 0 {
            continue;
        }
        let offsets = _mm512_maskz_compress_epi8(mask, places);
        let base = _mm512_set1_epi16((at - from) as i16);
        let words = |half| _mm512_add_epi16(base, _mm512_cvtepu8_epi16(half));
        store(&mut marked[kept..], words(_mm512_castsi512_si256(offsets)));
        let number = mask.count_ones() as usize;
        if number > 32 {
            store(&mut marked[kept + 32..], words(_mm512_extracti64x4_epi64::<1>(offsets)));
        }
        kept += number;
    }
    kept
}

/// Which of 16 windows the bitmap has.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,gfni")]
#[inline]
fn hash_passes(tables: &Tables, windows: __m512i) -> __mmask16 {
    let windows = _mm512_and_si512(windows, _mm512_set1_epi32(tables.mask.cast_signed()));
    let hash = _mm512_mullo_epi32(windows, _mm512_set1_epi32(MULTIPLIER.cast_signed()));
    let hash = _mm512_srl_epi32(hash, _mm_cvtsi32_si128(32 - tables.bitmap_bits as i32));
    // SAFETY: a hash has `bitmap_bits` bits, and the bitmap a word for each 32 of them.
    let words =
        unsafe { _mm512_i32gather_epi32::<4>(_mm512_srli_epi32::<5>(hash), tables.bitmap.as_ptr().cast()) };
    let bit = _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_and_si512(hash, _mm512_set1_epi32(31)));
    _mm512_test_epi32_mask(words, bit)
}

/// The sum of four matrices times four bytes, in each lane.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,gfni")]
#[inline]
fn sum(bytes: [__m512i; 4], matrices: [__m512i; 4]) -> __m512i {
    let product = |at: usize| _mm512_gf2p8affine_epi64_epi8::<0>(bytes[at], matrices[at]);
    let three = _mm512_ternarylogic_epi64::<0x96>(product(0), product(1), product(2));
    _mm512_xor_si512(three, product(3))
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load(bytes: &[u8]) -> __m512i {
    debug_assert!(bytes.len() >= 64);
    // SAFETY: every caller's slice has 64 bytes: a table of that size, or the text with its margin.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn store(to: &mut [u16], words: __m512i) {
    assert!(to.len() >= 32);
    // SAFETY: 32 entries were just checked.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), words) };
}
