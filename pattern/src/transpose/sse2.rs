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

#[inline]
#[target_feature(enable = "sse2")]
fn transpose_block(bytes: &[u8; 128]) -> [__m128i; 8] {
    let mut rows: [__m128i; 8] =
        std::array::from_fn(|row| load(bytes[16 * row..16 * row + 16].try_into().expect("16 bytes")));
    for _ in 0..4 {
        rows = std::array::from_fn(|row| match row % 2 {
            0 => _mm_unpacklo_epi8(rows[row / 2], rows[row / 2 + 4]),
            _ => _mm_unpackhi_epi8(rows[row / 2], rows[row / 2 + 4]),
        });
    }
    exchange::<4>(&mut rows, 0x0F);
    exchange::<2>(&mut rows, 0x33);
    exchange::<1>(&mut rows, 0x55);
    rows
}

/// Exchanges bits between rows that are `APART` apart: those of the first row that are not in `low`
/// change places with those of the second row that are.
#[inline]
#[target_feature(enable = "sse2")]
fn exchange<const APART: i32>(rows: &mut [__m128i; 8], low: i8) {
    let (low, apart) = (_mm_set1_epi8(low), APART as usize);
    for first in (0..8).filter(|row| row & apart == 0) {
        let (upper, lower) = (rows[first], rows[first + apart]);
        let differing = _mm_and_si128(_mm_xor_si128(_mm_srli_epi64::<APART>(upper), lower), low);
        rows[first + apart] = _mm_xor_si128(lower, differing);
        rows[first] = _mm_xor_si128(upper, _mm_slli_epi64::<APART>(differing));
    }
}
