//! Transposition with NEON: the 8×8 bit transposition of `scalar` works on two words at once; then
//! structure loads gather bytes by bit.
//!
//! It compiles for AArch64, but was never run, because no such machine was available.

use super::basis::{Basis, HISTORY_WORDS};
use std::arch::aarch64::*;

pub(super) fn is_available() -> bool {
    std::arch::is_aarch64_feature_detected!("neon")
}

pub(super) fn transpose(text: &[u8], basis: &mut Basis) {
    // SAFETY: `Transposer::run` calls this only where `is_available` holds.
    unsafe { transpose_chunk(text, basis) }
}

#[inline]
#[target_feature(enable = "neon")]
fn swap<const SHIFT: i32>(x: uint64x2_t, mask: u64) -> uint64x2_t {
    let t = vandq_u64(veorq_u64(x, vshrq_n_u64::<SHIFT>(x)), vdupq_n_u64(mask));
    veorq_u64(veorq_u64(x, t), vshlq_n_u64::<SHIFT>(t))
}

#[target_feature(enable = "neon")]
fn transpose_chunk(text: &[u8], basis: &mut Basis) {
    for (at, bytes) in text.chunks_exact(64).enumerate() {
        let mut rows = [0u8; 64];
        for (row, sixteen) in rows.chunks_exact_mut(16).zip(bytes.chunks_exact(16)) {
            // SAFETY: `sixteen` is 16 readable bytes and `row` 16 writable ones; neither needs an
            // alignment.
            unsafe {
                let x = vreinterpretq_u64_u8(vld1q_u8(sixteen.as_ptr()));
                let x = swap::<7>(x, 0x00AA_00AA_00AA_00AA);
                let x = swap::<14>(x, 0x0000_CCCC_0000_CCCC);
                let x = swap::<28>(x, 0x0000_0000_F0F0_F0F0);
                vst1q_u8(row.as_mut_ptr(), vreinterpretq_u8_u64(x));
            }
        }
        for (bit, stream) in basis.streams.iter_mut().enumerate() {
            let word: [u8; 8] = std::array::from_fn(|group| rows[8 * group + bit]);
            stream[HISTORY_WORDS + at] = u64::from_le_bytes(word);
        }
    }
}
