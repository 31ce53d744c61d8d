//! Plans tile sizes by the paper's model or by one for current machines.
//!
//! **Given** a machine, a shape and an element size, a **plan** is a [`Tiling`]. The library's
//! default is the second model's answer for a current server core, as constants, so a
//! multiplication of 1 µs needs no model. Both models are pure functions of their arguments:
//! [`crate::paper`] has the first, [`crate::rate`] the second.
//!
//! Source: Athanasaki et al. 2006, sections 3 and 5 (first model); Goto and van de Geijn 2008 (the
//! purpose of the blocks).

use crate::paper::{cost, Branches};
use crate::rate::{self, Rates, Work};
use crate::Error;
use machine::Machine;

pub use crate::tile_sizes::{Problem, Tiling, GRID};

impl Tiling {
    /// The paper's choice for N×N arrays: of [`GRID`]'s powers of two the T with the lowest total
    /// cost, for all three blocks.
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

    /// The second model's choice: the blocks with the fewest predicted cycles for `work` among
    /// [`GRID`].
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
