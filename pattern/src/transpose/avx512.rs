//! Transposition with AVX-512: bytes are reversed in groups of eight, 8×8 bits are transposed by a
//! Galois-field multiplication, and bytes are gathered by bit.
//!
//! After that a vector of 64 bytes holds one word of each stream; eight of them are a matrix of 8×8
//! words that shuffles transpose. 512 bytes take 56 instructions. It needs GFNI and VBMI.
//! Prefetching raises the rate by a third if the text comes from memory.

use super::basis::{Basis, AHEAD_BYTES, HISTORY_WORDS};
use crate::vectors::{allows, Vectors};
use std::arch::x86_64::*;

pub(super) fn is_available() -> bool {
    allows(Vectors::Avx512)
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("gfni")
}

const REVERSED: [u8; 64] = {
    let mut order = [0; 64];
    let mut at = 0;
    while at < 64 {
        order[at] = ((at & !7) | (7 - (at & 7))) as u8;
        at += 1;
    }
    order
};

const BY_BIT: [u8; 64] = {
    let mut order = [0; 64];
    let mut at = 0;
    while at < 64 {
        order[at] = (((at & 7) << 3) | (at >> 3)) as u8;
        at += 1;
    }
    order
};

pub(super) fn transpose(text: &[u8], basis: &mut Basis) {
    // SAFETY: `Transposer::run` calls this only where `is_available` holds.
    unsafe { transpose_chunk(text, basis) }
}

/// Copies `text`, a multiple of 64 bytes, to `out` with the last byte first; `None` if the machine
/// lacks the instructions.
pub(super) fn reverse(text: &[u8], out: &mut [u8]) -> Option<()> {
    // SAFETY: just checked.
    is_available().then(|| unsafe { reverse_vectors(text, out) })
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn reverse_vectors(text: &[u8], out: &mut [u8]) {
    let order: [u8; 64] = std::array::from_fn(|at| 63 - at as u8);
    let order = load(&order);
    for (from, to) in text.as_chunks::<64>().0.iter().zip(out.as_rchunks_mut::<64>().1.iter_mut().rev()) {
        _mm_prefetch::<_MM_HINT_T0>(from.as_ptr().wrapping_add(AHEAD_BYTES).cast());
        let vector = _mm512_permutexvar_epi8(order, load(from));
        // SAFETY: `to` is 64 writable bytes and the store needs no alignment.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), vector) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn transpose_chunk(text: &[u8], basis: &mut Basis) {
    for (block, bytes) in text.chunks_exact(512).enumerate() {
        let streams = transpose_block(bytes.try_into().expect("chunks of 512"));
        for (stream, vector) in basis.streams.iter_mut().zip(streams) {
            let at = HISTORY_WORDS + block * 8;
            let words: &mut [u64; 8] = (&mut stream[at..at + 8]).try_into().expect("eight words");
            // SAFETY: `words` is 64 writable bytes and the store needs no alignment.
            unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) }
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: `bytes` is 64 readable bytes and the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn transpose_block(bytes: &[u8; 512]) -> [__m512i; 8] {
    let (reversed, by_bit) = (load(&REVERSED), load(&BY_BIT));
    let identity = _mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64);
    let mut rows = [_mm512_setzero_si512(); 8];
    for (at, row) in rows.iter_mut().enumerate() {
        let ahead = bytes.as_ptr().wrapping_add(AHEAD_BYTES + 64 * at);
        _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
        let vector = load(bytes[64 * at..64 * at + 64].try_into().expect("64 bytes"));
        let turned = _mm512_permutexvar_epi8(reversed, vector);
        let bits = _mm512_gf2p8affine_epi64_epi8::<0>(identity, turned);
        *row = _mm512_permutexvar_epi8(by_bit, bits);
    }
    transpose_words(rows)
}

/// Transposes 8×8 words.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn transpose_words(rows: [__m512i; 8]) -> [__m512i; 8] {
    let low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
    let high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    let mut pairs = rows;
    for at in (0..8).step_by(2) {
        pairs[at] = _mm512_unpacklo_epi64(rows[at], rows[at + 1]);
        pairs[at + 1] = _mm512_unpackhi_epi64(rows[at], rows[at + 1]);
    }
    let mut quads = pairs;
    for half in [0, 4] {
        for odd in [0, 1] {
            let (first, second) = (pairs[half + odd], pairs[half + 2 + odd]);
            quads[half + odd] = _mm512_permutex2var_epi64(first, low, second);
            quads[half + 2 + odd] = _mm512_permutex2var_epi64(first, high, second);
        }
    }
    let mut streams = quads;
    for at in 0..4 {
        streams[at] = _mm512_inserti64x4::<1>(quads[at], _mm512_castsi512_si256(quads[4 + at]));
        streams[4 + at] = _mm512_shuffle_i64x2::<0xEE>(quads[at], quads[4 + at]);
    }
    streams
}
