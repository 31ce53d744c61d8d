//! The obvious transposition, eight bytes at a time: 64 bytes make one word of each stream.
//!
//! Eight bytes are an 8×8 matrix of bits in one word; three rounds of swaps transpose it (Hacker's
//! Delight, section 7-3). Byte `k` of the result holds bit `k` of the eight bytes, lowest position
//! first.

use super::basis::{Basis, HISTORY_WORDS};

/// Transposes an 8×8 bit matrix held in a word.
fn transpose8(x: u64) -> u64 {
    let swap = |x: u64, shift: u32, mask: u64| {
        let t = (x ^ (x >> shift)) & mask;
        x ^ t ^ (t << shift)
    };
    let x = swap(x, 7, 0x00AA_00AA_00AA_00AA);
    let x = swap(x, 14, 0x0000_CCCC_0000_CCCC);
    swap(x, 28, 0x0000_0000_F0F0_F0F0)
}

pub(super) fn transpose(text: &[u8], basis: &mut Basis) {
    for (at, bytes) in text.chunks_exact(64).enumerate() {
        let mut words = [0u64; 8];
        for (group, eight) in bytes.chunks_exact(8).enumerate() {
            let matrix = u64::from_le_bytes(eight.try_into().expect("chunks of eight"));
            for (bit, byte) in transpose8(matrix).to_le_bytes().into_iter().enumerate() {
                words[bit] |= u64::from(byte) << (8 * group);
            }
        }
        for (stream, word) in basis.streams.iter_mut().zip(words) {
            stream[HISTORY_WORDS + at] = word;
        }
    }
}
