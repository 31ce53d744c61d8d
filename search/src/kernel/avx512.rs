//! AVX-512: one unsigned compare per line, whose mask is counted. Needs F, BW, VL and DQ (every
//! AVX-512 server part since 2017).
//!
//! Cost of a line: load and compare fused, mask to a register, population count; about 7 cycles
//! from line to count.

use core::arch::x86_64::*;
use core::sync::atomic::{AtomicU8, Ordering};

use crate::cut::{Cut, BELOW_BITS};
use crate::line::Line;
use crate::simd::{Found, DIFFERS, GATHERED, MARKS};

/// Proof that the processor has AVX-512 F, BW, VL and DQ, BMI1/2 and POPCNT.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

/// True when the processor has the instructions.
#[cfg(feature = "std")]
pub(super) fn is_available() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx512f")
        && has!("avx512bw")
        && has!("avx512vl")
        && has!("avx512dq")
        && has!("bmi1")
        && has!("bmi2")
        && has!("popcnt")
}

/// True if the build requires a processor that has the instructions: without `std` they cannot be
/// detected.
#[cfg(not(feature = "std"))]
pub(super) fn is_available() -> bool {
    cfg!(all(target_feature = "avx512f", target_feature = "avx512bw", target_feature = "avx512vl"))
        && cfg!(all(target_feature = "avx512dq", target_feature = "bmi2", target_feature = "popcnt"))
}

/// What [`is_third_level_far`] found: 0 before it looked, else 1 for no and 2 for yes.
static FAR: AtomicU8 = AtomicU8::new(0);

/// Whether the third level of caches is far away and does not contain the second: Intel's servers
/// since 2017, whose third level lies along a mesh. Looked up once, as virtual machines leave for
/// it.
pub(super) fn is_third_level_far() -> bool {
    match FAR.load(Ordering::Relaxed) {
        0 => {
            let is_far = looks_far(|leaf, subleaf| {
                #[allow(unused_unsafe, reason = "older compilers call it unsafe")]
                // SAFETY: every processor that has AVX-512 has CPUID, and others are not asked.
                let answer = unsafe { __cpuid_count(leaf, subleaf) };
                [answer.eax, answer.ebx, answer.ecx, answer.edx]
            });
            FAR.store(1 + u8::from(is_far), Ordering::Relaxed);
            is_far
        }
        known => known == 2,
    }
}

/// [`is_third_level_far`] by what CPUID answers to a leaf and a subleaf. Leaf 4 is Intel's; AMD
/// leaves it empty. Source: Intel SDM volume 2A, CPUID.
fn looks_far(cpuid: impl Fn(u32, u32) -> [u32; 4]) -> bool {
    const CACHES: u32 = 4;
    const INCLUSIVE: u32 = 1 << 1;
    let [most, vendor, ..] = cpuid(0, 0);
    let of_level_3 =
        |[kind, .., about]: [u32; 4]| kind & 31 != 0 && kind >> 5 & 7 == 3 && about & INCLUSIVE == 0;
    most >= CACHES && vendor == u32::from_le_bytes(*b"Genu") && (0..8).any(|i| of_level_3(cpuid(CACHES, i)))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load<T>(lanes: &T) -> __m512i {
    const { assert!(size_of::<T>() == 64) };
    // SAFETY: `lanes` is 64 readable bytes, and `loadu` needs no alignment.
    unsafe { _mm512_loadu_si512((&raw const *lanes).cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,popcnt")]
fn less_u8<const SKIP: usize>(lanes: &[u8; 64], query: u8) -> usize {
    // The mask has a bit per lane; lanes to skip are not compared.
    _mm512_mask_cmplt_epu8_mask(u64::MAX << SKIP, load(lanes), _mm512_set1_epi8(query as i8)).count_ones()
        as usize
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,popcnt")]
fn less_u16<const SKIP: usize>(lanes: &[u16; 32], query: u16) -> usize {
    _mm512_mask_cmplt_epu16_mask(u32::MAX << SKIP, load(lanes), _mm512_set1_epi16(query as i16)).count_ones()
        as usize
}

#[inline]
#[target_feature(enable = "avx512f,popcnt")]
fn less_u32<const SKIP: usize>(lanes: &[u32; 16], query: u32) -> usize {
    _mm512_mask_cmplt_epu32_mask(u16::MAX << SKIP, load(lanes), _mm512_set1_epi32(query as i32)).count_ones()
        as usize
}

#[inline]
#[target_feature(enable = "avx512f,popcnt")]
fn less_u64<const SKIP: usize>(lanes: &[u64; 8], query: u64) -> usize {
    _mm512_mask_cmplt_epu64_mask(u8::MAX << SKIP, load(lanes), _mm512_set1_epi64(query as i64)).count_ones()
        as usize
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn mask_less_u16(lanes: &[u16; 32], query: u16) -> u32 {
    _mm512_cmplt_epu16_mask(load(lanes), _mm512_set1_epi16(query as i16))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn marked(words: &[usize; MARKS], mask: u32) -> u64 {
    // Eight words a vector, eight bits of the answer each, the last ones first.
    let mask = _mm512_set1_epi64(i64::from(mask));
    let (eights, _) = words.as_chunks::<8>();
    eights
        .iter()
        .rev()
        .fold(0, |marks, eight| marks << 8 | u64::from(_mm512_test_epi64_mask(load(eight), mask)))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn differs(a: &[u32; DIFFERS], b: &[u32; DIFFERS]) -> u64 {
    // A compare gives sixteen bits of the answer; four of them make the word.
    let ((a, _), (b, _)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    let differs = |(a, b)| u64::from(_mm512_cmpneq_epi32_mask(load::<[u32; 16]>(a), load::<[u32; 16]>(b)));
    a.iter().zip(b).map(differs).rev().fold(0, |bits, sixteen| bits << 16 | sixteen)
}

/// Places that are inside a table of `len` entries.
#[inline]
#[target_feature(enable = "avx512f")]
fn inside(len: usize, at: __m512i) -> __m512i {
    assert!(len > 0, "a table has entries");
    let last = i32::try_from(len - 1).unwrap_or(i32::MAX);
    _mm512_min_epu32(at, _mm512_set1_epi32(last))
}

/// A vector as an array.
#[inline]
#[target_feature(enable = "avx512f")]
fn words(vector: __m512i) -> [u32; GATHERED] {
    let mut words = [0; GATHERED];
    // SAFETY: `words` is 64 writable bytes, and `storeu` needs no alignment.
    unsafe { _mm512_storeu_si512((&raw mut words).cast(), vector) };
    words
}

/// The entries of the roots with these numbers; a number behind the last stands for the last.
#[inline]
#[target_feature(enable = "avx512f")]
fn entries(roots: &[u32], numbers: __m512i) -> __m512i {
    let at = inside(roots.len(), numbers);
    // SAFETY: `inside` returns places inside the table, none of them negative as an i32.
    unsafe { _mm512_i32gather_epi32::<4>(at, roots.as_ptr().cast()) }
}

/// The low bits of a root's entry, which say how far a distance is shifted.
const BELOW: i32 = (1 << BELOW_BITS) - 1;

/// Where queries of 32 bits lie under the roots: their distances from the first key, the shifts
/// that the entries of their roots ask for, and the numbers of their places.
#[inline]
#[target_feature(enable = "avx512f")]
fn places_u32(roots: &[u32], cut: &Cut<u32>, queries: &[u32; GATHERED]) -> [__m512i; 3] {
    let (min, beyond) = (_mm512_set1_epi32(cut.min as i32), _mm512_set1_epi32(cut.beyond as i32));
    let shift = _mm_cvtsi32_si128((cut.shift & 31) as i32);
    // A query below `min` has distance 0.
    let distance = _mm512_sub_epi32(_mm512_max_epu32(load(queries), min), min);
    let distance = _mm512_min_epu32(distance, beyond);
    let entries = entries(roots, _mm512_srl_epi32(distance, shift));
    let within = _mm512_and_si512(distance, _mm512_set1_epi32(cut.within() as i32));
    // As in the plain form, of a shift as many bits count as number a lane's bits.
    let by = _mm512_and_si512(entries, _mm512_set1_epi32(BELOW & 31));
    let first = _mm512_srli_epi32::<BELOW_BITS>(entries);
    [distance, by, _mm512_add_epi32(first, _mm512_srlv_epi32(within, by))]
}

/// Where queries of 64 bits lie under the roots: by half, their distances from the first key and
/// the shifts that the entries of their roots ask for, and the numbers of their places.
#[inline]
#[target_feature(enable = "avx512f")]
fn places_u64(
    roots: &[u32],
    cut: &Cut<u64>,
    queries: &[u64; GATHERED],
) -> ([__m512i; 2], [__m512i; 2], __m512i) {
    let (min, beyond) = (_mm512_set1_epi64(cut.min as i64), _mm512_set1_epi64(cut.beyond as i64));
    let shift = _mm_cvtsi64_si128((cut.shift & 63) as i64);
    let within = _mm512_set1_epi64(cut.within() as i64);
    let (halves, _) = queries.as_chunks::<8>();
    let (mut distances, mut numbers) = ([_mm512_setzero_si512(); 2], [_mm256_setzero_si256(); 2]);
    for half in 0..2 {
        let query = load::<[u64; 8]>(&halves[half]);
        distances[half] = _mm512_min_epu64(_mm512_sub_epi64(_mm512_max_epu64(query, min), min), beyond);
        numbers[half] = _mm512_cvtepi64_epi32(_mm512_srl_epi64(distances[half], shift));
    }
    let entries = entries(roots, joined(numbers));
    let by = _mm512_and_si512(entries, _mm512_set1_epi32(BELOW));
    let bys = [
        _mm512_cvtepu32_epi64(_mm512_castsi512_si256(by)),
        _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64::<1>(by)),
    ];
    for half in 0..2 {
        let below = _mm512_srlv_epi64(_mm512_and_si512(distances[half], within), bys[half]);
        numbers[half] = _mm512_cvtepi64_epi32(below);
    }
    let first = _mm512_srli_epi32::<BELOW_BITS>(entries);
    (distances, bys, _mm512_add_epi32(first, joined(numbers)))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn cells_u32(roots: &[u32], cut: &Cut<u32>, queries: &[u32; GATHERED]) -> [u32; GATHERED] {
    words(places_u32(roots, cut, queries)[2])
}

#[inline]
#[target_feature(enable = "avx512f")]
fn cells_u64(roots: &[u32], cut: &Cut<u64>, queries: &[u64; GATHERED]) -> [u32; GATHERED] {
    words(places_u64(roots, cut, queries).2)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn lines_u32(roots: &[u32], cut: &Cut<u32>, queries: &[u32; GATHERED]) -> Found<u32> {
    let [distance, by, line] = places_u32(roots, cut, queries);
    // A shift by all bits gives 0, as in the plain form.
    let fraction = _mm512_sllv_epi32(distance, _mm512_sub_epi32(_mm512_set1_epi32(32), by));
    Found { lines: words(line), fractions: words(fraction) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn lines_u64(roots: &[u32], cut: &Cut<u64>, queries: &[u64; GATHERED]) -> Found<u64> {
    let (distances, bys, line) = places_u64(roots, cut, queries);
    let mut fractions = [0; GATHERED];
    for half in 0..2 {
        let fraction = _mm512_sllv_epi64(distances[half], _mm512_sub_epi64(_mm512_set1_epi64(64), bys[half]));
        // SAFETY: half of sixteen words is room for a vector of eight; the store needs no
        // alignment.
        unsafe { _mm512_storeu_si512(fractions.as_mut_ptr().add(8 * half).cast(), fraction) };
    }
    Found { lines: words(line), fractions }
}

/// Two halves of a vector of words.
#[inline]
#[target_feature(enable = "avx512f")]
fn joined(halves: [__m256i; 2]) -> __m512i {
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(halves[0]), halves[1])
}

#[inline]
#[target_feature(enable = "avx512f,popcnt")]
fn list_marks(marks: u64, first: u32, list: &mut [u32; MARKS]) -> usize {
    let numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let numbers = _mm512_add_epi32(numbers, _mm512_set1_epi32(first as i32));
    let (low, high) = (marks as u16, (marks >> 16) as u16);
    let count = low.count_ones() as usize;
    list[..GATHERED].copy_from_slice(&words(_mm512_maskz_compress_epi32(low, numbers)));
    let numbers = _mm512_add_epi32(numbers, _mm512_set1_epi32(GATHERED as i32));
    list[count..count + GATHERED].copy_from_slice(&words(_mm512_maskz_compress_epi32(high, numbers)));
    count + high.count_ones() as usize
}

/// Sixteen places at the start of a line of memory, where the stack may begin anywhere: they are
/// stored at once and loaded one by one.
#[repr(align(64))]
struct Places([u32; GATHERED]);

/// Places inside a table, to be taken from memory with one load each: without the box, the compiler
/// extracts them from the vector with two operations each.
#[inline]
#[target_feature(enable = "avx512f")]
fn places(len: usize, at: &[u32; GATHERED]) -> Places {
    core::hint::black_box(Places(words(inside(len, load(at)))))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn map_u32(table: &[[u32; 4]], at: &[u32; GATHERED], queries: &[u32; GATHERED]) -> Found<u32> {
    let Places(at) = &places(table.len(), at);
    // SAFETY: `places` returns places inside the table, whose rows are 16 bytes; the load needs no
    // alignment.
    let row = |i: usize| unsafe { _mm_loadu_si128(table.as_ptr().add(at[i] as usize).cast()) };
    // Four rows that lie four places apart make a vector, so that the transposition below, which
    // works inside of quarters, leaves the columns in order.
    let four = |i: usize| {
        let vector = _mm512_castsi128_si512(row(i));
        let vector = _mm512_inserti32x4::<1>(vector, row(i + 4));
        let vector = _mm512_inserti32x4::<2>(vector, row(i + 8));
        _mm512_inserti32x4::<3>(vector, row(i + 12))
    };
    let (a, b, c, d) = (four(0), four(1), four(2), four(3));
    let (ab_low, ab_high) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let (cd_low, cd_high) = (_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    let (min, beyond) = (_mm512_unpacklo_epi64(ab_low, cd_low), _mm512_unpackhi_epi64(ab_low, cd_low));
    let multiplier = _mm512_unpacklo_epi64(ab_high, cd_high);
    let first = _mm512_unpackhi_epi64(ab_high, cd_high);
    // Products of even lanes, and of odd lanes, whose halves are put together again.
    let distance = _mm512_sub_epi32(_mm512_max_epu32(load(queries), min), min);
    let distance = _mm512_min_epu32(distance, beyond);
    let even = _mm512_mul_epu32(distance, multiplier);
    let odd = _mm512_mul_epu32(_mm512_srli_epi64::<32>(distance), _mm512_srli_epi64::<32>(multiplier));
    let whole = _mm512_mask_mov_epi32(_mm512_srli_epi64::<32>(even), ODD, odd);
    let fraction = _mm512_mask_mov_epi32(even, ODD, _mm512_slli_epi64::<32>(odd));
    Found { lines: words(_mm512_add_epi32(first, whole)), fractions: words(fraction) }
}

/// The odd lanes of 32 bits.
const ODD: u16 = 0xAAAA;

/// The lines and fractions of eight queries from the rows at the places `at`.
///
/// # Safety
/// The places must be inside the table.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn map_eight(table: &[[u64; 4]], at: &[u32], query: __m512i) -> (__m256i, __m512i) {
    // SAFETY: the caller's places are inside the table, whose rows are 32 bytes; the load needs no
    // alignment.
    let row = |i: usize| unsafe { _mm256_loadu_si256(table.as_ptr().add(at[i] as usize).cast()) };
    let two = |i: usize| _mm512_inserti64x4::<1>(_mm512_castsi256_si512(row(i)), row(i + 4));
    let (a, b, c, d) = (two(0), two(1), two(2), two(3));
    // Within each quarter: columns 0 and 2 of two rows, and columns 1 and 3.
    let (ab_even, ab_odd) = (_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    let (cd_even, cd_odd) = (_mm512_unpacklo_epi64(c, d), _mm512_unpackhi_epi64(c, d));
    let low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
    let high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    let min = _mm512_permutex2var_epi64(ab_even, low, cd_even);
    let beyond = _mm512_permutex2var_epi64(ab_odd, low, cd_odd);
    let multiplier = _mm512_permutex2var_epi64(ab_even, high, cd_even);
    let first = _mm512_permutex2var_epi64(ab_odd, high, cd_odd);
    let distance = _mm512_min_epu64(_mm512_sub_epi64(_mm512_max_epu64(query, min), min), beyond);
    // The product of 128 bits from products of halves, as `Lane::scale_abreast` has it.
    let half = |wide: __m512i| _mm512_srli_epi64::<32>(wide);
    let (distance_high, multiplier_high) = (half(distance), half(multiplier));
    let lowest = _mm512_mul_epu32(distance, multiplier);
    let middle = _mm512_add_epi64(_mm512_mul_epu32(distance_high, multiplier), half(lowest));
    let low_half = _mm512_set1_epi64(0xFFFF_FFFF);
    let other = _mm512_mul_epu32(distance, multiplier_high);
    let other = _mm512_add_epi64(other, _mm512_and_si512(middle, low_half));
    let whole = _mm512_mul_epu32(distance_high, multiplier_high);
    let whole = _mm512_add_epi64(_mm512_add_epi64(whole, half(middle)), half(other));
    let fraction = _mm512_mask_mov_epi32(lowest, ODD, _mm512_slli_epi64::<32>(other));
    (_mm512_cvtepi64_epi32(_mm512_add_epi64(first, whole)), fraction)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn map_u64(table: &[[u64; 4]], at: &[u32; GATHERED], queries: &[u64; GATHERED]) -> Found<u64> {
    let Places(at) = &places(table.len(), at);
    let (halves, _) = queries.as_chunks::<8>();
    let (mut lines, mut fractions) = ([_mm256_setzero_si256(); 2], [0; GATHERED]);
    for half in 0..2 {
        // SAFETY: `places` returns places inside the table.
        let (line, fraction) = unsafe { map_eight(table, &at[8 * half..], load::<[u64; 8]>(&halves[half])) };
        lines[half] = line;
        // SAFETY: half of sixteen words is room for a vector of eight; the store needs no
        // alignment.
        unsafe { _mm512_storeu_si512(fractions.as_mut_ptr().add(8 * half).cast(), fraction) };
    }
    Found { lines: words(joined(lines)), fractions }
}

define_kernel!(Avx512, "avx512f,avx512bw,avx512vl,avx512dq,bmi1,bmi2,popcnt", {
    #[inline(always)]
    fn marked(self, words: &[usize; MARKS], mask: u32) -> u64 {
        // SAFETY: the token proves the instructions.
        unsafe { marked(words, mask) }
    }

    #[inline(always)]
    fn list_marks(self, marks: u64, first: u32, list: &mut [u32; MARKS]) -> usize {
        // SAFETY: the token proves the instructions.
        unsafe { list_marks(marks, first, list) }
    }

    #[inline(always)]
    fn differs(self, a: &[u32; DIFFERS], b: &[u32; DIFFERS]) -> u64 {
        // SAFETY: the token proves the instructions.
        unsafe { differs(a, b) }
    }

    #[inline(always)]
    fn cells_u32(self, roots: &[u32], cut: &Cut<u32>, queries: &[u32; GATHERED]) -> [u32; GATHERED] {
        // SAFETY: the token proves the instructions.
        unsafe { cells_u32(roots, cut, queries) }
    }

    #[inline(always)]
    fn cells_u64(self, roots: &[u32], cut: &Cut<u64>, queries: &[u64; GATHERED]) -> [u32; GATHERED] {
        // SAFETY: the token proves the instructions.
        unsafe { cells_u64(roots, cut, queries) }
    }

    #[inline(always)]
    fn lines_u32(self, roots: &[u32], cut: &Cut<u32>, queries: &[u32; GATHERED]) -> Found<u32> {
        // SAFETY: the token proves the instructions.
        unsafe { lines_u32(roots, cut, queries) }
    }

    #[inline(always)]
    fn lines_u64(self, roots: &[u32], cut: &Cut<u64>, queries: &[u64; GATHERED]) -> Found<u64> {
        // SAFETY: the token proves the instructions.
        unsafe { lines_u64(roots, cut, queries) }
    }

    #[inline(always)]
    fn map_u32(self, table: &[[u32; 4]], at: &[u32; GATHERED], queries: &[u32; GATHERED]) -> Found<u32> {
        // SAFETY: the token proves the instructions.
        unsafe { map_u32(table, at, queries) }
    }

    #[inline(always)]
    fn map_u64(self, table: &[[u64; 4]], at: &[u32; GATHERED], queries: &[u64; GATHERED]) -> Found<u64> {
        // SAFETY: the token proves the instructions.
        unsafe { map_u64(table, at, queries) }
    }

    #[inline(always)]
    fn prefetch(self, lines: &[Line], index: usize) {
        super::avx2::prefetch(lines, index);
    }

    #[inline(always)]
    fn is_third_level_far(self) -> bool {
        is_third_level_far()
    }

    #[inline(always)]
    fn prefetch_to_second_level(self, lines: &[Line], index: usize) {
        super::avx2::prefetch_to_second_level(lines, index);
    }
});

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a processor is found to have a far third level, by its vendor and the words of its
    /// caches.
    fn found(vendor: &[u8; 4], caches: &'static [[u32; 4]]) -> bool {
        let vendor = u32::from_le_bytes(*vendor);
        looks_far(|leaf, subleaf| match leaf {
            0 => [0x20, vendor, 0, 0],
            _ => caches.get(subleaf as usize).copied().unwrap_or([0; 4]),
        })
    }

    #[test]
    fn a_third_level_that_contains_no_second_is_far() {
        // Type, level and inclusion of Intel Xeon (Emerald Rapids), as CPUID gives them.
        const XEON: &[[u32; 4]] =
            &[[0x0121, 0, 0, 0], [0x0122, 0, 0, 0], [0x0143, 0, 0, 0], [0x0163, 0, 0, 4]];
        // A Core of 2016, whose third level contains the others.
        const CORE: &[[u32; 4]] = &[[0x0121, 0, 0, 0], [0x0143, 0, 0, 0], [0x0163, 0, 0, 6]];
        assert!(found(b"Genu", XEON));
        assert!(!found(b"Genu", CORE));
        assert!(!found(b"Genu", &XEON[..3]), "no third level");
        assert!(!found(b"Auth", XEON));
        assert!(!found(b"Auth", &[]));
    }
}
