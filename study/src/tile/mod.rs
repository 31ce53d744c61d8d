//! Tile sizes seen four ways: the paper's model, the second model, simulation, measurement.
//!
//! Joins `matrix` (loops, models, kernels) and `simulate`; `lightfoot tile` prints it, `lightfoot
//! study tiling` makes the paper's figures of it. Deliberately absent: a search. The grid is
//! declared ([`POWERS`], and `matrix::tiling::GRID` for the kernel), every point of it is shown,
//! and a choice is judged by its regret: its time over that of the best on the grid, both timed
//! again side by side.

pub mod simulation;
pub mod timing;

/// Tiles that masks can address.
pub const POWERS: &[usize] = &[8, 16, 32, 64, 128, 256, 512];

/// The powers that fit N.
pub fn powers(n: usize) -> impl Iterator<Item = usize> {
    POWERS.iter().copied().filter(move |&tile| tile <= n)
}
