//! The kernel for AVX-512: a row is one register, or two; compare, shift by one lane, store under a mask.
//!
//! **Cost.** About ten instructions for 8 lanes; touches of different sets overlap.

use super::{touched, Fill, Row, TouchRow, Touched};
use pulp::bytemuck::cast;
use pulp::x86::V4;

impl TouchRow<u64, 8> for V4 {
    #[inline(always)]
    fn touch_row<F: Fill>(self, row: &mut Row<u64, 8>, line: u64, fill: F) -> Touched {
        let f = self.avx512f;
        let tag = f._mm512_set1_epi64(line as i64);
        let tags = cast(row.0);
        let found = u32::from(f._mm512_cmpeq_epi64_mask(tags, tag));
        let lanes = fill.moved(found);
        row.0 = cast(f._mm512_mask_alignr_epi64::<7>(tags, lanes as u8, tags, tag));
        touched(found)
    }
}

impl TouchRow<u64, 16> for V4 {
    #[inline(always)]
    fn touch_row<F: Fill>(self, row: &mut Row<u64, 16>, line: u64, fill: F) -> Touched {
        let f = self.avx512f;
        let tag = f._mm512_set1_epi64(line as i64);
        let [low, high]: [[u64; 8]; 2] = cast(row.0);
        let (low, high) = (cast(low), cast(high));
        let found = u32::from(f._mm512_cmpeq_epi64_mask(low, tag))
            | u32::from(f._mm512_cmpeq_epi64_mask(high, tag)) << 8;
        let lanes = fill.moved(found);
        let new_low: [u64; 8] = cast(f._mm512_mask_alignr_epi64::<7>(low, lanes as u8, low, tag));
        let new_high: [u64; 8] = cast(f._mm512_mask_alignr_epi64::<7>(high, (lanes >> 8) as u8, high, low));
        row.0 = cast([new_low, new_high]);
        touched(found)
    }
}

impl TouchRow<u32, 16> for V4 {
    #[inline(always)]
    fn touch_row<F: Fill>(self, row: &mut Row<u32, 16>, tag: u32, fill: F) -> Touched {
        let f = self.avx512f;
        let tag = f._mm512_set1_epi32(tag as i32);
        let tags = cast(row.0);
        let found = u32::from(f._mm512_cmpeq_epi32_mask(tags, tag));
        let lanes = fill.moved(found);
        row.0 = cast(f._mm512_mask_alignr_epi32::<15>(tags, lanes as u16, tags, tag));
        touched(found)
    }
}
