//! NEON (AArch64): four 128-bit quarters per line; a compare gives all ones, so subtracting the
//! results counts them.

use core::arch::aarch64::*;

use crate::line::Line;

/// Proof that the processor has NEON, which the AArch64 targets of Rust take as given.
#[derive(Clone, Copy)]
pub(crate) struct Neon(());

/// True when the build's baseline has NEON.
pub(super) fn is_available() -> bool {
    cfg!(target_feature = "neon")
}

/// Defines one counting function: the quarters of a line compared with `query`, the skipped lanes
/// taken off again.
macro_rules! define_less {
    ($name:ident, $lane:ty, $lanes:literal, $per:literal, $load:ident, $dup:ident, $less:ident, $count:ident) => {
        #[inline]
        #[target_feature(enable = "neon")]
        fn $name<const SKIP: usize>(lanes: &[$lane; $lanes], query: $lane) -> usize {
            // A compare gives all ones in a lane, whose top bit is counted across the quarter.
            let wanted = $dup(query);
            let mut count = 0;
            for quarter in lanes.chunks_exact($per) {
                // SAFETY: `quarter` is 16 readable bytes; the load needs only the lane's alignment.
                let quarter = unsafe { $load(quarter.as_ptr()) };
                count += $count($less(quarter, wanted));
            }
            // Lanes in front of `SKIP` are no digits: what they added is taken off.
            let skipped = lanes[..SKIP].iter().filter(|&&lane| lane < query).count();
            count - skipped
        }
    };
}

#[inline]
#[target_feature(enable = "neon")]
fn ones_u8(mask: uint8x16_t) -> usize {
    vaddlvq_u8(vshrq_n_u8::<7>(mask)) as usize
}

#[inline]
#[target_feature(enable = "neon")]
fn ones_u16(mask: uint16x8_t) -> usize {
    vaddvq_u16(vshrq_n_u16::<15>(mask)) as usize
}

#[inline]
#[target_feature(enable = "neon")]
fn ones_u32(mask: uint32x4_t) -> usize {
    vaddvq_u32(vshrq_n_u32::<31>(mask)) as usize
}

#[inline]
#[target_feature(enable = "neon")]
fn ones_u64(mask: uint64x2_t) -> usize {
    vaddvq_u64(vshrq_n_u64::<63>(mask)) as usize
}

define_less!(less_u8, u8, 64, 16, vld1q_u8, vdupq_n_u8, vcltq_u8, ones_u8);
define_less!(less_u16, u16, 32, 8, vld1q_u16, vdupq_n_u16, vcltq_u16, ones_u16);
define_less!(less_u32, u32, 16, 4, vld1q_u32, vdupq_n_u32, vcltq_u32, ones_u32);
define_less!(less_u64, u64, 8, 2, vld1q_u64, vdupq_n_u64, vcltq_u64, ones_u64);

#[inline]
#[target_feature(enable = "neon")]
fn mask_less_u16(lanes: &[u16; 32], query: u16) -> u32 {
    lanes.iter().rev().fold(0, |mask, &lane| mask << 1 | u32::from(lane < query))
}

define_kernel!(Neon, "neon", {
    /// The prefetch instruction is not a stable intrinsic on this target; out-of-order execution
    /// must do.
    #[inline(always)]
    fn prefetch(self, _lines: &[Line], _index: usize) {}
});
