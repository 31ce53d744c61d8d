//! Marks the windows of 64 positions at a time: AVX-512 with VBMI, VBMI2 and GFNI.
//!
//! Shapes: positions `from..end`, a multiple of 64 and at most a chunk; marks are offsets from
//! `from`, ascending. Reads up to 67 bytes behind the last position. Cost: 64 positions that one
//! filter drops take about 30 instructions, with two filters 45. Each 16 positions that pass the
//! filters take two gathers of 16 lanes. Without filters, 64 positions take four gathers.

use super::marks::{Marks, CHUNK_BYTES, MARGIN_BYTES};
use super::tables::{Filter, Tables, MULTIPLIERS};
use crate::vectors::{allows, Vectors};

use core::arch::x86_64::*;

/// How many bytes ahead of the positions the text is prefetched.
const AHEAD_BYTES: usize = 4096;

pub(super) fn is_available() -> bool {
    allows(Vectors::Avx512)
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("gfni")
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
        match (&tables.filters[..], tables.fold) {
            ([], _) if tables.step == 2 => hashed::<2>(tables, text, from, end, marks),
            ([], _) => hashed::<1>(tables, text, from, end, marks),
            ([one], 0) => filtered::<1, 0>(tables, [one, one], text, from, end, marks),
            ([one], _) => filtered::<1, 0x20>(tables, [one, one], text, from, end, marks),
            ([one, two, ..], 0) => filtered::<2, 0>(tables, [one, two], text, from, end, marks),
            ([one, two, ..], _) => filtered::<2, 0x20>(tables, [one, two], text, from, end, marks),
        }
    }
}

/// Marks windows by the filters, then drops those that do not pass the bitmaps.
///
/// # Safety
/// The processor has the instructions, and the chunk with its margin lies within the text. `mark`
/// checks both.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,gfni,popcnt")]
unsafe fn filtered<const FILTERS: usize, const FOLD: u8>(
    tables: &Tables,
    filters: [&Filter; 2],
    text: &[u8],
    from: usize,
    end: usize,
    marks: &mut Marks,
) -> usize {
    let mut count = 0;
    let quarters = filters.map(|filter| quarters(&filter.bytes));
    let rows = filters.map(|filter| filter.rows.map(|matrix| _mm512_set1_epi64(matrix.cast_signed())));
    let place_map = tables.places.map(|matrix| _mm512_set1_epi64(matrix.cast_signed()));
    let fold = _mm512_set1_epi8(FOLD.cast_signed());
    let (powers, seven) = (_mm512_set1_epi64(0x8040_2010_0804_0201_u64.cast_signed()), _mm512_set1_epi8(7));
    for at in (from..end).step_by(64) {
        _mm_prefetch(text.as_ptr().wrapping_add(at + AHEAD_BYTES).cast(), _MM_HINT_T0);
        let mut bytes =
            [load(&text[at..]), load(&text[at + 1..]), load(&text[at + 2..]), load(&text[at + 3..])];
        if FOLD != 0 {
            for bytes in &mut bytes {
                *bytes = _mm512_or_si512(*bytes, fold);
            }
        }
        let places = sum(bytes, place_map);
        let bit = _mm512_shuffle_epi8(powers, _mm512_and_si512(places, seven));
        let mut mask = _mm512_test_epi8_mask(row_at(quarters[0], sum(bytes, rows[0])), bit);
        if FILTERS == 2 {
            let bit = _mm512_shuffle_epi8(powers, _mm512_and_si512(_mm512_srli_epi16::<4>(places), seven));
            mask = _mm512_mask_test_epi8_mask(mask, row_at(quarters[1], sum(bytes, rows[1])), bit);
        }
        // Appends without asking whether there are any marks: a branch here cannot be predicted,
        // and costs more than it saves.
        count = append::<1>(marks, count, (at - from) as i16, mask);
    }
    // SAFETY: the marks are those of windows in the chunk, `count` of them.
    unsafe { looked_up::<true>(tables, text, from, marks, count) }
}

/// A filter's bytes in four vectors.
#[target_feature(enable = "avx512f")]
#[inline]
fn quarters(bytes: &[u8; 256]) -> [__m512i; 4] {
    [load(&bytes[..]), load(&bytes[64..]), load(&bytes[128..]), load(&bytes[192..])]
}

/// The filter's byte for each row number.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
#[inline]
fn row_at(quarters: [__m512i; 4], row: __m512i) -> __m512i {
    let low = _mm512_permutex2var_epi8(quarters[0], row, quarters[1]);
    let high = _mm512_permutex2var_epi8(quarters[2], row, quarters[3]);
    _mm512_mask_blend_epi8(_mm512_movepi8_mask(row), low, high)
}

/// Marks windows by the first bitmap, at every position or every second one of the text, then drops
/// those that do not pass the second. With thousands of words, filters would pass nearly
/// everything.
///
/// # Safety
/// The processor has the instructions, and the chunk with its margin lies within the text. `mark`
/// checks both.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,gfni,popcnt")]
unsafe fn hashed<const STEP: usize>(
    tables: &Tables,
    text: &[u8],
    from: usize,
    end: usize,
    marks: &mut Marks,
) -> usize {
    // Lane `k` of 16 gets the four bytes from `STEP * k` on.
    let spread: [u8; 64] = std::array::from_fn(|at| (STEP * (at / 4) + at % 4) as u8);
    let spread = load(&spread);
    let skipped = from.next_multiple_of(STEP) - from;
    let mut count = 0;
    for at in (from + skipped..end).step_by(64) {
        _mm_prefetch(text.as_ptr().wrapping_add(at + AHEAD_BYTES).cast(), _MM_HINT_T0);
        let mut mask = 0u64;
        for group in 0..4 / STEP {
            let bytes = load(&text[at + 16 * STEP * group..]);
            let windows = _mm512_permutexvar_epi8(spread, bytes);
            let passed = bitmap_passes::<0>(tables, folded(tables, windows), u16::MAX);
            mask |= u64::from(passed) << (16 * group);
        }
        count = append::<STEP>(marks, count, (at - from) as i16, mask);
    }
    // SAFETY: the marks are those of windows in the chunk, `count` of them.
    unsafe { looked_up::<false>(tables, text, from, marks, count) }
}

/// Keeps those of the first `count` marks whose windows pass both bitmaps, or only the second one
/// unless `BOTH`, and returns their number.
///
/// # Safety
/// The processor has the instructions, the chunk and its margin lie within the text, and marks are
/// offsets within the chunk. `mark` checks all three.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,gfni,popcnt")]
#[inline]
unsafe fn looked_up<const BOTH: bool>(
    tables: &Tables,
    text: &[u8],
    from: usize,
    marks: &mut Marks,
    count: usize,
) -> usize {
    let mut kept = 0;
    for first in (0..count).step_by(16) {
        // SAFETY: 16 entries from `first` on lie within the array, which has 64 more than a chunk.
        let offsets = unsafe { _mm256_loadu_si256(marks.as_ptr().add(first).cast()) };
        // Entries behind the last one may be stale or overwritten. As offsets they are still below
        // a chunk's length.
        let wide =
            _mm512_min_epu32(_mm512_cvtepu16_epi32(offsets), _mm512_set1_epi32(CHUNK_BYTES as i32 - 1));
        let left = (u32::MAX >> (32 - (count - first).min(16))) as u16;
        // SAFETY: lanes in `left` read four bytes at an offset within the chunk, which lie inside
        // the margin; no other lane reads.
        let windows = unsafe {
            let none = _mm512_setzero_si512();
            _mm512_mask_i32gather_epi32::<1>(none, left, wide, text.as_ptr().add(from).cast())
        };
        let windows = folded(tables, windows);
        let mut mask = left;
        if BOTH {
            mask = bitmap_passes::<0>(tables, windows, mask);
        }
        if mask != 0 {
            mask = bitmap_passes::<1>(tables, windows, mask);
        }
        let compressed = _mm256_maskz_compress_epi16(mask, offsets);
        // SAFETY: `kept` never exceeds `first`, so 16 entries lie within the array, which has 64
        // more than a chunk. Only entries that were read already are overwritten.
        unsafe { _mm256_storeu_si256(marks.as_mut_ptr().add(kept).cast(), compressed) };
        kept += mask.count_ones() as usize;
    }
    kept
}

/// The windows with their case bits set where the tables fold case.
#[target_feature(enable = "avx512f")]
#[inline]
fn folded(tables: &Tables, windows: __m512i) -> __m512i {
    let fold = _mm512_set1_epi32((u32::from(tables.fold) * 0x0101_0101).cast_signed());
    _mm512_and_si512(_mm512_or_si512(windows, fold), _mm512_set1_epi32(tables.mask.cast_signed()))
}

/// Which of the folded windows in `asked` pass a bitmap.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn bitmap_passes<const NUMBER: usize>(tables: &Tables, windows: __m512i, asked: __mmask16) -> __mmask16 {
    let hash = _mm512_mullo_epi32(windows, _mm512_set1_epi32(MULTIPLIERS[NUMBER].cast_signed()));
    let hash = _mm512_srl_epi32(hash, _mm_cvtsi32_si128(32 - tables.bitmap_bits as i32));
    // SAFETY: a hash has `bitmap_bits` bits, and a bitmap a word for each 32 of them.
    let words = unsafe {
        let (none, bitmap) = (_mm512_setzero_si512(), tables.bitmaps[NUMBER].as_ptr());
        _mm512_mask_i32gather_epi32::<4>(none, asked, _mm512_srli_epi32::<5>(hash), bitmap.cast())
    };
    let bit = _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_and_si512(hash, _mm512_set1_epi32(31)));
    _mm512_test_epi32_mask(words, bit)
}

/// Appends the offsets of a mask's bits to the marks, a bit for `STEP` positions; the new number of
/// marks.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
#[inline]
fn append<const STEP: usize>(marks: &mut Marks, count: usize, base: i16, mask: u64) -> usize {
    let places: [u8; 64] = const {
        let mut places = [0; 64];
        let mut at = 0;
        while at < 64 {
            places[at] = (STEP * at) as u8;
            at += 1;
        }
        places
    };
    let offsets = _mm512_maskz_compress_epi8(mask, load(&places));
    let base = _mm512_set1_epi16(base);
    store(&mut marks[count..], _mm512_add_epi16(base, _mm512_cvtepu8_epi16(_mm512_castsi512_si256(offsets))));
    let number = mask.count_ones() as usize;
    if number > 32 {
        let upper = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(offsets));
        store(&mut marks[count + 32..], _mm512_add_epi16(base, upper));
    }
    count + number
}

/// The sum of four matrices, each times one of four bytes, in each lane.
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
