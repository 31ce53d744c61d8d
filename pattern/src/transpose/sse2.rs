//! Transposition with SSE2, which every x86-64 processor has: the high bits of 16 bytes at a time,
//! eight times doubled.

use super::basis::{Basis, HISTORY_WORDS};
use std::arch::x86_64::*;

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("sse2")
}

pub(super) fn transpose(text: &[u8], basis: &mut Basis) {
    // SAFETY: `Transposer::run` calls this only where `is_available` holds.
    unsafe { transpose_chunk(text, basis) }
}

#[target_feature(enable = "sse2")]
fn transpose_chunk(text: &[u8], basis: &mut Basis) {
    for (at, bytes) in text.chunks_exact(64).enumerate() {
        let mut words = [0u64; 8];
        for (group, sixteen) in bytes.chunks_exact(16).enumerate() {
            let sixteen: &[u8; 16] = sixteen.try_into().expect("chunks of 16");
            // SAFETY: `sixteen` is 16 readable bytes and the load needs no alignment.
            let mut vector = unsafe { _mm_loadu_si128(sixteen.as_ptr().cast()) };
            for bit in (0..8).rev() {
                words[bit] |= (_mm_movemask_epi8(vector) as u64) << (16 * group);
                vector = _mm_add_epi8(vector, vector);
            }
        }
        for (stream, word) in basis.streams.iter_mut().zip(words) {
            stream[HISTORY_WORDS + at] = word;
        }
    }
}
