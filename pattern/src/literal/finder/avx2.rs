//! Compares 128 positions at a time: AVX2.
//!
//! Cost: per 32 positions three loads and three comparisons; one test for all 128.

use super::probes::{Found, Probes, AHEAD_BYTES};
use crate::vectors::{allows, Vectors};
use core::arch::x86_64::*;

/// Positions of a step.
const STEP_BYTES: usize = 128;

pub(super) fn is_available() -> bool {
    allows(Vectors::Avx2) && is_x86_feature_detected!("avx2")
}

pub(super) fn find(probes: &Probes, string: &[u8], text: &[u8], from: usize) -> Found {
    // SAFETY: kernels are chosen after `is_available`.
    unsafe {
        match string.len() {
            1 => steps::<1>(probes, string, text, from),
            2 => steps::<2>(probes, string, text, from),
            _ => steps::<3>(probes, string, text, from),
        }
    }
}

/// Looks for one probe, for two, or for all.
#[target_feature(enable = "avx2")]
fn steps<const PROBES: usize>(probes: &Probes, string: &[u8], text: &[u8], from: usize) -> Found {
    let bytes = [
        _mm256_set1_epi8(probes.bytes[0].cast_signed()),
        _mm256_set1_epi8(probes.bytes[1].cast_signed()),
        _mm256_set1_epi8(probes.bytes[2].cast_signed()),
    ];
    let places = probes.places;
    let mut at = from;
    while let Some(window) = text.get(at..at + STEP_BYTES + string.len()) {
        // Closures of this function have its instructions, which `array::map` and `fold` lack: they
        // would call them.
        let first = &window[places[0]..places[0] + STEP_BYTES];
        let second = &window[places[1]..places[1] + STEP_BYTES];
        let third = &window[places[2]..places[2] + STEP_BYTES];
        let mut masks = [0u32; STEP_BYTES / 32];
        for (number, mask) in masks.iter_mut().enumerate() {
            let here = 32 * number;
            _mm_prefetch::<_MM_HINT_T0>(window.as_ptr().wrapping_add(AHEAD_BYTES + here).cast());
            let mut stands = _mm256_cmpeq_epi8(load(&first[here..here + 32]), bytes[0]);
            if PROBES >= 2 {
                let other = _mm256_cmpeq_epi8(load(&second[here..here + 32]), bytes[1]);
                stands = _mm256_and_si256(stands, other);
            }
            if PROBES == 3 {
                let other = _mm256_cmpeq_epi8(load(&third[here..here + 32]), bytes[2]);
                stands = _mm256_and_si256(stands, other);
            }
            *mask = _mm256_movemask_epi8(stands).cast_unsigned();
        }
        if masks[0] | masks[1] | masks[2] | masks[3] != 0 {
            for (number, mut mask) in masks.into_iter().enumerate() {
                while mask != 0 {
                    let place = at + 32 * number + mask.trailing_zeros() as usize;
                    if PROBES == 1 || text[place..].starts_with(string) {
                        return Found::At(place);
                    }
                    mask &= mask - 1;
                }
            }
        }
        // The next step's first vectors begin at the start of a cache line.
        at += STEP_BYTES - (first.as_ptr().addr() % 32);
    }
    Found::NotBefore(at)
}

#[target_feature(enable = "avx2")]
#[inline]
fn load(bytes: &[u8]) -> __m256i {
    debug_assert!(bytes.len() >= 32);
    // SAFETY: every caller's slice has 32 bytes, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}
