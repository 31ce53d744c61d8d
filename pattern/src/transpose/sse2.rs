//! Transposition with SSE2, which every x86-64 processor has: bytes are unpacked, then bits are
//! exchanged between vectors.
//!
//! A byte's place among eight vectors is a number of seven bits. Unpacking vectors that are four
//! apart rotates this number by one bit, so four rounds rotate it by four: vector `i` then has the
//! bytes with number `i` of each group of eight. Three rounds of exchanges transpose the 8×8 bits
//! that stand at one place in all vectors. 128 bytes take 32 unpackings and twelve exchanges of six
//! operations; taking the high bits of 16 bytes and doubling them, eight times, takes 256
//! operations.

use super::basis::{Basis, HISTORY_WORDS};
use crate::vectors::{allows, Vectors};
use std::arch::x86_64::*;

pub(super) fn is_available() -> bool {
    allows(Vectors::Sse2) && is_x86_feature_detected!("sse2")
}

pub(super) fn transpose(text: &[u8], basis: &mut Basis) {
    // SAFETY: `Transposer::run` calls this only where `is_available` holds.
    unsafe { transpose_chunk(text, basis) }
}

#[target_feature(enable = "sse2")]
fn transpose_chunk(text: &[u8], basis: &mut Basis) {
    for (block, bytes) in text.chunks_exact(128).enumerate() {
        let streams = transpose_block(bytes.try_into().expect("chunks of 128"));
        for (stream, vector) in basis.streams.iter_mut().zip(streams) {
            let at = HISTORY_WORDS + block * 2;
            let words: &mut [u64; 2] = (&mut stream[at..at + 2]).try_into().expect("two words");
            // SAFETY: `words` is 16 writable bytes and the store needs no alignment.
            unsafe { _mm_storeu_si128(words.as_mut_ptr().cast(), vector) }
        }
    }
}

#[inline]
#[target_feature(enable = "sse2")]
fn load(sixteen: &[u8; 16]) -> __m128i {
    // SAFETY: `sixteen` is 16 readable bytes and the load needs no alignment.
    unsafe { _mm_loadu_si128(sixteen.as_ptr().cast()) }
}

/// Written out, so that rows stay in registers whatever the compiler unrolls.
#[inline]
#[target_feature(enable = "sse2")]
fn transpose_block(bytes: &[u8; 128]) -> [__m128i; 8] {
    let row = |at: usize| -> &[u8; 16] { bytes[16 * at..16 * at + 16].try_into().expect("16 bytes") };
    let rows = [
        load(row(0)),
        load(row(1)),
        load(row(2)),
        load(row(3)),
        load(row(4)),
        load(row(5)),
        load(row(6)),
        load(row(7)),
    ];
    let rows = interleave(interleave(interleave(interleave(rows))));
    let [a, b, c, d, e, f, g, h] = rows;
    let low = _mm_set1_epi8(0x0F);
    let ((a, e), (b, f)) = (exchange::<4>(a, e, low), exchange::<4>(b, f, low));
    let ((c, g), (d, h)) = (exchange::<4>(c, g, low), exchange::<4>(d, h, low));
    let low = _mm_set1_epi8(0x33);
    let ((a, c), (b, d)) = (exchange::<2>(a, c, low), exchange::<2>(b, d, low));
    let ((e, g), (f, h)) = (exchange::<2>(e, g, low), exchange::<2>(f, h, low));
    let low = _mm_set1_epi8(0x55);
    let ((a, b), (c, d)) = (exchange::<1>(a, b, low), exchange::<1>(c, d, low));
    let ((e, f), (g, h)) = (exchange::<1>(e, f, low), exchange::<1>(g, h, low));
    [a, b, c, d, e, f, g, h]
}

/// Unpacks rows that are four apart.
#[inline]
#[target_feature(enable = "sse2")]
fn interleave([a, b, c, d, e, f, g, h]: [__m128i; 8]) -> [__m128i; 8] {
    [
        _mm_unpacklo_epi8(a, e),
        _mm_unpackhi_epi8(a, e),
        _mm_unpacklo_epi8(b, f),
        _mm_unpackhi_epi8(b, f),
        _mm_unpacklo_epi8(c, g),
        _mm_unpackhi_epi8(c, g),
        _mm_unpacklo_epi8(d, h),
        _mm_unpackhi_epi8(d, h),
    ]
}

/// Exchanges bits between rows: those of the first row that are not in `low` change places with
/// those of the second row that are.
#[inline]
#[target_feature(enable = "sse2")]
fn exchange<const APART: i32>(upper: __m128i, lower: __m128i, low: __m128i) -> (__m128i, __m128i) {
    let differing = _mm_and_si128(_mm_xor_si128(_mm_srli_epi64::<APART>(upper), lower), low);
    (_mm_xor_si128(upper, _mm_slli_epi64::<APART>(differing)), _mm_xor_si128(lower, differing))
}
