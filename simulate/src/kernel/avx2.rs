//! The kernel for AVX2: a row is two or four registers; masks come from comparing lane numbers.
//!
//! AVX2 has neither mask registers nor a shift across a whole row. So each register is rotated by
//! one lane, and its lowest lane is replaced by what the register below rotated out; lanes whose
//! number is below a limit take that, the others stay:
//!
//! ```text
//! tags      a b c d | e f g h          limit 6, tag t
//! rotated   d a b c | h e f g
//! shifted   t a b c | d e f g          the lowest lane comes from below, first of all the tag
//! new row   t a b c | d e g h          lanes 0 to 5 moved
//! ```

use super::row::Row;
use super::token::Avx2;
use super::touch_row::{Fill, TouchRow};
use super::vectors::Vectors;
use crate::touch::STEP;
use bytemuck::cast;
use event::RecordKind;

impl Vectors for Avx2 {
    #[inline(always)]
    fn prefetch<T>(self, item: &T) {
        self.prefetch_item(item);
    }

    #[inline(always)]
    fn prefetch_address(self, address: usize) {
        self.prefetch_line(address);
    }

    #[inline(always)]
    fn of_kind(self, what: &[u32; STEP], kind: RecordKind) -> u32 {
        let (code, wanted) = (self._mm256_set1_epi32(0xf0), self._mm256_set1_epi32((kind as i32) << 4));
        let halves: [[u32; 8]; 2] = cast(*what);
        let [low, high] = halves.map(|what| {
            let same = self._mm256_cmpeq_epi32(self._mm256_and_si256(cast(what), code), wanted);
            self._mm256_movemask_ps(cast(same)) as u32
        });
        low | high << 8
    }

    #[inline(always)]
    fn find(self, row: &Row<u64, 16>, line: u64) -> u32 {
        let tag = self._mm256_set1_epi64x(line as i64);
        let quarters: [[u64; 4]; 4] = cast(row.0);
        quarters.into_iter().zip(0..).fold(0, |found, (tags, quarter)| {
            let equal = self._mm256_cmpeq_epi64(cast(tags), tag);
            found | (self._mm256_movemask_pd(cast(equal)) as u32) << (4 * quarter)
        })
    }
}

impl TouchRow<u64, 8> for Avx2 {
    #[inline(always)]
    fn touch_row<F: Fill>(self, row: &mut Row<u64, 8>, line: u64, fill: F) -> u32 {
        touch(self, row, line, fill)
    }
}

impl TouchRow<u64, 16> for Avx2 {
    #[inline(always)]
    fn touch_row<F: Fill>(self, row: &mut Row<u64, 16>, line: u64, fill: F) -> u32 {
        touch(self, row, line, fill)
    }
}

impl TouchRow<u32, 16> for Avx2 {
    #[inline(always)]
    fn touch_row<F: Fill>(self, row: &mut Row<u32, 16>, tag: u32, fill: F) -> u32 {
        let tag = self._mm256_set1_epi32(tag as i32);
        // Two registers of eight tags; the tag is looked for in both.
        let halves: [[u32; 8]; 2] = cast(row.0);
        let equal = |half: [u32; 8]| {
            let equal = self._mm256_cmpeq_epi32(cast(half), tag);
            self._mm256_movemask_ps(cast(equal)) as u32
        };
        let found = equal(halves[0]) | equal(halves[1]) << 8;
        let limit = self._mm256_set1_epi32(fill.moved(found).count_ones() as i32);
        // AVX2 has no masks: how many lanes move is compared with the lanes' numbers instead.
        let rotation = cast([7u32, 0, 1, 2, 3, 4, 5, 6]);
        let mut carry = tag;
        let mut new = halves;
        for half in 0..2 {
            let tags = cast(halves[half]);
            // Shift by one: rotate, and replace the lowest lane by what left the register below.
            let rotated = self._mm256_permutevar8x32_epi32(tags, rotation);
            let shifted = self._mm256_blend_epi32::<1>(rotated, carry);
            carry = rotated;
            let moves = self._mm256_cmpgt_epi32(limit, cast(NUMBERS[half]));
            new[half] = cast(self._mm256_blendv_epi8(tags, shifted, moves));
        }
        row.0 = cast(new);
        found
    }
}

/// Lane numbers.
const NUMBERS: [[i32; 8]; 2] = [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15]];

#[inline(always)]
fn touch<F: Fill, const LANES: usize>(avx2: Avx2, row: &mut Row<u64, LANES>, line: u64, fill: F) -> u32 {
    let tag = avx2._mm256_set1_epi64x(line as i64);
    let mut found = 0;
    // Registers of the row: as arrays of four, each is one load and one store.
    let (quarters, _) = row.0.as_chunks_mut::<4>();
    for (quarter, tags) in quarters.iter().enumerate() {
        let equal = avx2._mm256_cmpeq_epi64(cast(*tags), tag);
        found |= (avx2._mm256_movemask_pd(cast(equal)) as u32) << (quarter * 4);
    }
    // Lanes below this one move.
    let past_last = fill.moved(found).count_ones();
    let limit = avx2._mm256_set1_epi64x(i64::from(past_last));
    // The lane that moves into a register's lowest one stands on top of what was rotated before it.
    let mut carry = tag;
    for (quarter, row) in quarters.iter_mut().enumerate() {
        let tags = cast(*row);
        let rotated = avx2._mm256_permute4x64_epi64::<0b10_01_00_11>(tags);
        let shifted = avx2._mm256_blend_epi32::<0b0000_0011>(rotated, carry);
        carry = rotated;
        let number = quarter as i64 * 4;
        let numbers = cast([number, number + 1, number + 2, number + 3]);
        let moves = avx2._mm256_cmpgt_epi64(limit, numbers);
        *row = cast(avx2._mm256_blendv_epi8(tags, shifted, moves));
    }
    found
}
