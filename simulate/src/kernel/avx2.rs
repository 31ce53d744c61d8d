//! The kernel for AVX2: a row is two or four registers; masks come from comparing lane numbers.

use super::{moved, touched, Fill, Row, TouchRow, Touched};
use pulp::bytemuck::cast;
use pulp::x86::V3;

impl TouchRow<8> for V3 {
    #[inline(always)]
    fn touch_row(self, row: &mut Row<8>, line: u64, fill: Fill) -> Touched {
        touch(self, row, line, fill)
    }
}

impl TouchRow<16> for V3 {
    #[inline(always)]
    fn touch_row(self, row: &mut Row<16>, line: u64, fill: Fill) -> Touched {
        touch(self, row, line, fill)
    }
}

#[inline(always)]
fn touch<const LANES: usize>(v3: V3, row: &mut Row<LANES>, line: u64, fill: Fill) -> Touched {
    let (avx, avx2) = (v3.avx, v3.avx2);
    let tag = avx._mm256_set1_epi64x(line as i64);
    let load = |tags: &[u64; LANES], quarter: usize| -> [u64; 4] {
        std::array::from_fn(|lane| tags[quarter * 4 + lane])
    };
    let mut found = 0;
    for quarter in 0..LANES / 4 {
        let equal = avx2._mm256_cmpeq_epi64(cast(load(&row.0, quarter)), tag);
        found |= (avx._mm256_movemask_pd(cast(equal)) as u32) << (quarter * 4);
    }
    // Lanes below this one move.
    let past_last = moved(found, fill).count_ones();
    let limit = avx._mm256_set1_epi64x(i64::from(past_last));
    // The lane that moves into a register's lowest one stands on top of what was rotated before it.
    let mut carry = tag;
    for quarter in 0..LANES / 4 {
        let tags = cast(load(&row.0, quarter));
        let rotated = avx2._mm256_permute4x64_epi64::<0b10_01_00_11>(tags);
        let shifted = avx2._mm256_blend_epi32::<0b0000_0011>(rotated, carry);
        carry = rotated;
        let number = quarter as i64 * 4;
        let numbers = cast([number, number + 1, number + 2, number + 3]);
        let moves = avx2._mm256_cmpgt_epi64(limit, numbers);
        let new: [u64; 4] = cast(avx2._mm256_blendv_epi8(tags, shifted, moves));
        row.0[quarter * 4..quarter * 4 + 4].copy_from_slice(&new);
    }
    touched(found)
}
