//! AVX2: two 256-bit halves per line.
//!
//! AVX2 has no unsigned comparison. So `a < query` is tested as "the larger of `a` and `query` is
//! not `a`", and for 64-bit lanes as a signed comparison of both sides with the top bit flipped.

use core::arch::x86_64::*;

use crate::line::{Line, LINE_BYTES};
use crate::simd::DIFFERS;

/// Proof that the processor has AVX2, BMI1/2 and POPCNT.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

/// True when the processor has the instructions.
#[cfg(feature = "std")]
pub(super) fn is_available() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("bmi1") && has!("bmi2") && has!("popcnt")
}

/// True if the build requires a processor that has the instructions: without `std` they cannot be
/// detected.
#[cfg(not(feature = "std"))]
pub(super) fn is_available() -> bool {
    cfg!(all(
        target_feature = "avx2",
        target_feature = "bmi1",
        target_feature = "bmi2",
        target_feature = "popcnt"
    ))
}

/// Prefetches line `index` of `lines`.
#[inline(always)]
pub(crate) fn prefetch(lines: &[Line], index: usize) {
    let address = lines.as_ptr().cast::<i8>().wrapping_add(index.wrapping_mul(LINE_BYTES));
    // SAFETY: a prefetch of any address is harmless: it reads nothing that the program can see and
    // never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address) }
}

/// Prefetches line `index` of `lines` into the second level of caches.
#[inline(always)]
pub(super) fn prefetch_to_second_level(lines: &[Line], index: usize) {
    let address = lines.as_ptr().cast::<i8>().wrapping_add(index.wrapping_mul(LINE_BYTES));
    // SAFETY: a prefetch of any address reads nothing that the program can see and never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(address) }
}

/// The two halves of 64 bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn load<T>(lanes: &T) -> [__m256i; 2] {
    const { assert!(size_of::<T>() == 64) };
    let half = (&raw const *lanes).cast::<__m256i>();
    // SAFETY: `lanes` is 64 readable bytes, and `loadu` needs no alignment.
    unsafe { [_mm256_loadu_si256(half), _mm256_loadu_si256(half.add(1))] }
}

#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn less_u8<const SKIP: usize>(lanes: &[u8; 64], query: u8) -> usize {
    // Lanes that are not less keep their value under the maximum with the query: a mask of bytes,
    // whose complement is shifted past the lanes to skip and counted.
    let query = _mm256_set1_epi8(query as i8);
    let not_less = load(lanes).map(|half| {
        let keeps = _mm256_cmpeq_epi8(_mm256_max_epu8(half, query), half);
        _mm256_movemask_epi8(keeps) as u32 as u64
    });
    (!(not_less[0] | not_less[1] << 32) >> SKIP).count_ones() as usize
}

#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn less_u16<const SKIP: usize>(lanes: &[u16; 32], query: u16) -> usize {
    let query = _mm256_set1_epi16(query as i16);
    let not_less = load(lanes).map(|half| {
        let keeps = _mm256_cmpeq_epi16(_mm256_max_epu16(half, query), half);
        _mm256_movemask_epi8(keeps) as u32 as u64
    });
    // Two bytes of the mask belong to each lane.
    (!(not_less[0] | not_less[1] << 32) >> (2 * SKIP)).count_ones() as usize / 2
}

#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn less_u32<const SKIP: usize>(lanes: &[u32; 16], query: u32) -> usize {
    let query = _mm256_set1_epi32(query as i32);
    let not_less = load(lanes).map(|half| {
        let keeps = _mm256_cmpeq_epi32(_mm256_max_epu32(half, query), half);
        _mm256_movemask_ps(_mm256_castsi256_ps(keeps)) as u32
    });
    // One sign bit a lane, sixteen in all: the complement must not reach beyond them.
    (((not_less[0] | not_less[1] << 8) ^ 0xFFFF) >> SKIP).count_ones() as usize
}

#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn less_u64<const SKIP: usize>(lanes: &[u64; 8], query: u64) -> usize {
    // Flipping the top bit on both sides turns the unsigned order into the signed one.
    let flip = _mm256_set1_epi64x(i64::MIN);
    let query = _mm256_set1_epi64x(query as i64 ^ i64::MIN);
    let less = load(lanes).map(|half| {
        let less = _mm256_cmpgt_epi64(query, _mm256_xor_si256(half, flip));
        _mm256_movemask_pd(_mm256_castsi256_pd(less)) as u32
    });
    ((less[0] | less[1] << 4) >> SKIP).count_ones() as usize
}

#[inline]
#[target_feature(enable = "avx2")]
fn mask_less_u16(lanes: &[u16; 32], query: u16) -> u32 {
    let query = _mm256_set1_epi16(query as i16);
    let [low, high] = load(lanes).map(|half| _mm256_cmpeq_epi16(_mm256_max_epu16(half, query), half));
    // Packing works inside 128-bit halves; the permutation puts the four quarters back in order.
    let not_less = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(low, high));
    !(_mm256_movemask_epi8(not_less) as u32)
}

#[inline]
#[target_feature(enable = "avx2")]
fn differs(a: &[u32; DIFFERS], b: &[u32; DIFFERS]) -> u64 {
    // Sixteen numbers are two halves, whose equal lanes are sixteen bits; four such make the word.
    let ((a, _), (b, _)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    let same = a.iter().zip(b).map(|(a, b)| {
        let ([a, c], [b, d]) = (load(a), load(b));
        let eight = |a, b| _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b))) as u64;
        eight(a, b) | eight(c, d) << 8
    });
    !same.rev().fold(0, |bits, sixteen| bits << 16 | sixteen)
}

define_kernel!(Avx2, "avx2,bmi1,bmi2,popcnt", {
    #[inline(always)]
    fn differs(self, a: &[u32; DIFFERS], b: &[u32; DIFFERS]) -> u64 {
        // SAFETY: the token proves the instructions.
        unsafe { differs(a, b) }
    }

    #[inline(always)]
    fn prefetch(self, lines: &[Line], index: usize) {
        prefetch(lines, index);
    }
});
