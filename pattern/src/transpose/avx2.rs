//! Transposition with AVX2: three rounds that pack the high and the low halves of byte pairs, as
//! Parabix does it.
//!
//! Round one separates the even and the odd bits of each byte pair into two vectors; rounds two and
//! three separate pairs and quads of bits. 256 bytes take 7 × 11 instructions; the lanes are loaded
//! crosswise, so that packing within lanes keeps the order.

use super::basis::{Basis, AHEAD_BYTES, HISTORY_WORDS};
use crate::vectors::{allows, Vectors};
use std::arch::x86_64::*;

pub(super) fn is_available() -> bool {
    allows(Vectors::Avx2) && is_x86_feature_detected!("avx2")
}

pub(super) fn transpose(text: &[u8], basis: &mut Basis) {
    // SAFETY: `Transposer::run` calls this only where `is_available` holds.
    unsafe { transpose_chunk(text, basis) }
}

#[target_feature(enable = "avx2")]
fn transpose_chunk(text: &[u8], basis: &mut Basis) {
    for (block, bytes) in text.chunks_exact(256).enumerate() {
        let streams = transpose_block(bytes.try_into().expect("chunks of 256"));
        for (stream, vector) in basis.streams.iter_mut().zip(streams) {
            let at = HISTORY_WORDS + block * 4;
            let words: &mut [u64; 4] = (&mut stream[at..at + 4]).try_into().expect("four words");
            // SAFETY: `words` is 32 writable bytes and the store needs no alignment.
            unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), vector) }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_lanes(low: &[u8; 16], high: &[u8; 16]) -> __m256i {
    // SAFETY: both are 16 readable bytes and the loads need no alignment.
    unsafe { _mm256_loadu2_m128i(high.as_ptr().cast(), low.as_ptr().cast()) }
}

/// Separates the bytes of two vectors: the bits of `mask`, packed, and the other bits, packed.
#[inline]
#[target_feature(enable = "avx2")]
fn split<const SHIFT: i32>(first: __m256i, second: __m256i, mask: __m256i) -> (__m256i, __m256i) {
    let low = _mm256_set1_epi16(0x00FF);
    let odd = _mm256_packus_epi16(_mm256_srli_epi16::<8>(first), _mm256_srli_epi16::<8>(second));
    let even = _mm256_packus_epi16(_mm256_and_si256(first, low), _mm256_and_si256(second, low));
    let high_bits = _mm256_or_si256(
        _mm256_and_si256(mask, odd),
        _mm256_andnot_si256(mask, _mm256_srli_epi16::<SHIFT>(even)),
    );
    let low_bits = _mm256_or_si256(
        _mm256_and_si256(mask, _mm256_slli_epi16::<SHIFT>(odd)),
        _mm256_andnot_si256(mask, even),
    );
    (high_bits, low_bits)
}

#[inline]
#[target_feature(enable = "avx2")]
fn transpose_block(bytes: &[u8; 256]) -> [__m256i; 8] {
    let lane = |at: usize| -> &[u8; 16] { bytes[16 * at..16 * at + 16].try_into().expect("16 bytes") };
    let ahead = bytes.as_ptr().wrapping_add(AHEAD_BYTES);
    for line in 0..4 {
        _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(64 * line).cast());
    }
    // Without `array::map`, which lacks these instructions and would call a closure that has them.
    let masks =
        [_mm256_set1_epi8(0xAAu8 as i8), _mm256_set1_epi8(0xCCu8 as i8), _mm256_set1_epi8(0xF0u8 as i8)];
    let mut odd = [_mm256_setzero_si256(); 4];
    let mut even = odd;
    for at in 0..4 {
        let (first, second) =
            (load_lanes(lane(2 * at), lane(2 * at + 8)), load_lanes(lane(2 * at + 1), lane(2 * at + 9)));
        (odd[at], even[at]) = split::<1>(first, second, masks[0]);
    }
    // Pairs of bits: 7 and 3, 5 and 1, 6 and 2, 4 and 0, each in two halves.
    let mut pairs = [[_mm256_setzero_si256(); 2]; 4];
    for half in 0..2 {
        (pairs[0][half], pairs[1][half]) = split::<2>(odd[2 * half], odd[2 * half + 1], masks[1]);
        (pairs[2][half], pairs[3][half]) = split::<2>(even[2 * half], even[2 * half + 1], masks[1]);
    }
    let mut streams = [_mm256_setzero_si256(); 8];
    for (pair, (high, low)) in pairs.iter().zip([(7, 3), (5, 1), (6, 2), (4, 0)]) {
        (streams[high], streams[low]) = split::<4>(pair[0], pair[1], masks[2]);
    }
    streams
}
