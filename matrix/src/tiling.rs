//! The plan: tile sizes, from the paper's model or from one for current machines.
//!
//! **Given** a machine, a shape and an element size, **plan** a [`Tiling`]; the library's own default is the second
//! model's answer for a server core of today, as constants, so that a multiplication of 1 µs need not ask.
//! Both models are pure functions of their arguments: [`crate::paper`] has the first, [`crate::rate`] the second.
//!
//! Source: Athanasaki et al. 2006, sections 3 and 5 (first model); Goto and van de Geijn 2008 (what the blocks are for).

use crate::paper::{cost, Branches};
use crate::rate::{self, Rates, Work};
use crate::{Element, Error};
use machine::Machine;

/// Tile sizes of a multiplication, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiling {
    /// T: depth of a block (kc) and width of a strip of blocked storage.
    pub tile: usize,
    /// Rows of a block of `A` that is copied (mc).
    pub rows: usize,
    /// Columns of a block of `C` (nc).
    pub cols: usize,
}

/// Tile sizes that are tried: 8 to 512 by powers of two and one and a half times as much.
pub const GRID: &[usize] = &[8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512];

/// What a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Bytes of an element.
    pub element_bytes: usize,
}

impl Problem {
    /// N×N matrices.
    pub fn square(n: usize, element_bytes: usize) -> Problem {
        Problem { m: n, n, k: n, element_bytes }
    }
}

impl Tiling {
    /// The paper's choice for N×N arrays: the T of [`GRID`]'s powers of two with the lowest total cost, all three blocks T.
    ///
    /// # Errors
    /// [`Error::Machine`] names the level or penalty that the description lacks.
    pub fn paper(
        machine: &Machine,
        n: usize,
        element_bytes: usize,
        branches: Branches,
    ) -> Result<Tiling, Error> {
        let mut best = (f64::INFINITY, 8);
        for &tile in GRID.iter().filter(|tile| tile.is_power_of_two()) {
            let total = cost(machine, n, tile, element_bytes, branches)?.total();
            if total < best.0 {
                best = (total, tile);
            }
        }
        Ok(Tiling { tile: best.1, rows: best.1, cols: best.1 })
    }

    /// The second model's choice: the blocks with the fewest predicted cycles for `work` among [`GRID`].
    ///
    /// # Errors
    /// [`Error::Machine`] names the level that the description lacks.
    pub fn plan(machine: &Machine, problem: Problem, work: Work) -> Result<Tiling, Error> {
        let rates = Rates::of(machine)?;
        let cycles = |tile| rate::cycles(&rates, problem, work, tile).total();
        let (first, rest) = GRID.split_first().expect("the grid is not empty");
        let tile =
            rest.iter().fold(*first, |best, &tile| if cycles(tile) < cycles(best) { tile } else { best });
        Ok(rate::blocks(&rates, problem, work, tile))
    }

    /// For blocked operands of depth `k`: whole depth up to 512, so that a register tile of `C` is written once; beyond, strips
    /// of 384 (measured on Sapphire Rapids: 2 % over 512 at N = 2048, level at 1024).
    #[inline]
    pub fn default_for<T: Element>(k: usize) -> Tiling {
        let tile = if k <= 512 { 512 } else { 384 };
        Tiling { tile, rows: 4096, cols: 192 }
    }

    /// Rounded up to what panels of `panel` rows and the widest column group ask for.
    pub(crate) fn fitted(self, panel: usize) -> Tiling {
        // Powers of two: a division would be felt where a whole product takes 50 ns.
        let unit = panel.max(crate::layout::COLUMN_UNIT) - 1;
        let up = |size: usize| size.clamp(1, usize::MAX / 2).saturating_add(unit) & !unit;
        Tiling { tile: up(self.tile), rows: up(self.rows), cols: up(self.cols) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_on_its_own_machine() {
        let machine = Machine::preset("xeon-dp").unwrap();
        let branches = Branches { mispredicted_exits: 0.0 };
        assert_eq!(Tiling::paper(&machine, 2048, 4, branches).unwrap().tile, 64);
        assert!(Tiling::paper(&Machine::preset("ladner2002").unwrap(), 2048, 4, branches).is_err());
    }

    #[test]
    fn every_preset_with_two_levels_can_be_planned_for() {
        for preset in machine::PRESETS {
            let machine = preset.machine();
            for work in [Work::Kernel, Work::LinearLoops, Work::MaskedLoops] {
                for bytes in [4, 8, 16] {
                    match Tiling::plan(&machine, Problem::square(1024, bytes), work) {
                        Ok(tiling) => assert!(GRID.contains(&tiling.tile), "{}", preset.name),
                        Err(error) => assert!(machine.data_cache(2).is_none(), "{}: {error}", preset.name),
                    }
                }
            }
        }
    }
}
