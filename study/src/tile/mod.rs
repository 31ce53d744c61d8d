//! Compares tile sizes by four methods: the paper's model, the second model, simulation and
//! measurement.
//!
//! This module joins `matrix` (loops, models, kernels) and `simulate`. `lightfoot tile` prints its
//! results, and `lightfoot study tiling` draws the paper's figures from them.
//!
//! **Leaves out** a search. The grid is declared ([`POWERS`], and `matrix::tiling::GRID` for the
//! kernel), and every point of it is shown. A choice is judged by its regret: its time relative to
//! the best time of the grid, where both are timed again side by side.

pub mod simulation;
pub mod timing;

/// Tiles that masks can address.
pub const POWERS: &[usize] = &[8, 16, 32, 64, 128, 256, 512];

/// The powers that fit N.
pub fn powers(n: usize) -> impl Iterator<Item = usize> {
    POWERS.iter().copied().filter(move |&tile| tile <= n)
}
