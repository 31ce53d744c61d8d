//! The kernels of mixed products: each multiplies one packed panel of `A` with one of `Bᵀ`.
//!
//! **What.** Panels hold 32-bit words: for each group of `depth` steps of `k`, one word for each
//! row of the panel. A kernel keeps its whole tile of sums in registers: it loads vectors of words
//! of `A`, repeats single words of `B`, and multiplies and adds. Then it adds the tile to `C`.
//!
//! **Why this way.** Every type's instruction has one shape (a vector of sums, a vector of words,
//! another vector of words), so each instruction set has one macro, and every pair of types one
//! line of `pairs`. The exchanged pair has a kernel of its own, because VPDPBUSD takes unsigned
//! bytes on one side and signed ones on the other.
//!
//! **Leaves out** NEON's dot products: other processors get plain Rust.

#[cfg(target_arch = "x86_64")]
pub(super) mod amx;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
pub(super) mod scalar;
mod tile;

pub(super) use tile::{Run, Tile};
