//! Plans tile sizes by the paper's model or by one for current machines.
//!
//! **Given** a machine, a shape and an element size, a **plan** is a [`Tiling`]. The library's
//! default is the second model's answer for the processor that it runs on, whose caches are read
//! once; products of a few microseconds need no tile sizes. Both models are pure functions of their
//! arguments: [`crate::paper`] has the first, [`crate::rate`] the second.
//!
//! Source: Athanasaki et al. 2006, sections 3 and 5 (first model); Goto and van de Geijn 2008 (the
//! purpose of the blocks).

use crate::paper::{cost, Branches};
use crate::rate::{self, Rates, Work};
use crate::{Element, Error};
use machine::Machine;
use std::sync::OnceLock;

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
        let tile = best(&rates, problem, work);
        Ok(rate::blocks(&rates, problem, work, tile))
    }
}

/// The widest strips of blocked storage that need no model: a product of this depth is one block on
/// every processor, so that a register tile of `C` is written once.
const ONE_BLOCK: usize = 512;

/// The size for which the default's tile is chosen: larger problems have the same one.
const LARGE: usize = 4096;

/// What products want to know about the processor. It is read once.
pub(crate) struct Host {
    rates: Rates,
    /// T for elements of 4, 8 and 16 bytes.
    tiles: [usize; 3],
    /// Operands of that many bytes in all, twice the second level, are in or near it.
    pub(crate) near_bytes: usize,
    /// A third of the entries of the second-level TLB: that many columns in pages of their own
    /// leave room for the other operands.
    pub(crate) far_columns: usize,
}

impl Host {
    pub(crate) fn get() -> &'static Host {
        static HOST: OnceLock<Host> = OnceLock::new();
        HOST.get_or_init(|| {
            let machine = Machine::host();
            // A processor whose caches are not known gets those of a current server core.
            let rates = Rates::of(&machine).unwrap_or(rate::SERVER_CORE);
            let tiles = [4, 8, 16].map(|bytes| best(&rates, Problem::square(LARGE, bytes), Work::Kernel));
            let near_bytes = 2 * rates.l2_bytes as usize;
            let far_columns = machine.data_tlb(2).map_or(usize::MAX, |tlb| tlb.entries as usize / 3);
            Host { rates, tiles, near_bytes, far_columns }
        })
    }

    fn tile(&self, element_bytes: usize) -> usize {
        self.tiles[element_bytes.trailing_zeros() as usize - 2]
    }
}

/// The tile with the fewest predicted cycles.
fn best(rates: &Rates, problem: Problem, work: Work) -> usize {
    let cycles = |tile| rate::cycles(rates, problem, work, tile).total();
    let (first, rest) = GRID.split_first().expect("the grid is not empty");
    rest.iter().fold(*first, |best, &tile| if cycles(tile) < cycles(best) { tile } else { best })
}

impl Tiling {
    /// The default for a product of depth `k` on this processor: the second model's T, and blocks
    /// for the depth that its strips of equal depth have. The processor's caches are read once.
    pub fn default_for<T: Element>(k: usize) -> Tiling {
        let (host, bytes) = (Host::get(), size_of::<T>());
        let tile = host.tile(bytes);
        let depth = k.max(1).div_ceil(k.max(1).div_ceil(tile));
        let problem = Problem { k, ..Problem::square(LARGE, bytes) };
        Tiling { tile, ..rate::blocks(&host.rates, problem, Work::Kernel, depth) }
    }

    /// Arrays of that many bytes in all are in or near the second level of this processor.
    pub(crate) fn near_bytes() -> usize {
        Host::get().near_bytes
    }

    /// T of the storage of a matrix with `cols` columns, as part of [`Self::default_for`].
    pub(crate) fn storage_tile<T: Element>(cols: usize) -> usize {
        match cols <= ONE_BLOCK {
            true => ONE_BLOCK,
            false => Host::get().tile(size_of::<T>()),
        }
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

    /// On a core with a second level of 1 MB (AMD EPYC Zen 5), N = 2048, T = 512 with 128 columns
    /// was the fastest of `f64` and T = 1024 with 128 columns of `f32`; their neighbours were 0 to
    /// 2 % slower, and T = 256 was 8 and 10 %.
    #[test]
    fn the_kernel_model_chooses_what_a_measured_core_does_fastest() {
        let rates = Rates { l2_bytes: f64::from(1 << 20), ..rate::SERVER_CORE };
        for (bytes, fastest) in [(8, 512), (4, 1024)] {
            let problem = Problem::square(2048, bytes);
            let cycles = |tile| rate::cycles(&rates, problem, Work::Kernel, tile).total();
            assert_eq!(best(&rates, problem, Work::Kernel), fastest);
            let blocks = rate::blocks(&rates, problem, Work::Kernel, fastest);
            assert_eq!((blocks.rows, blocks.cols), (1024, 128));
            assert!(cycles(2 * fastest) < 1.06 * cycles(fastest), "{bytes}");
            assert!(cycles(256) > 1.05 * cycles(fastest), "{bytes}");
        }
    }

    #[test]
    fn the_default_holds_its_block_in_the_second_level() {
        let host = Host::get();
        for k in [1, 129, 512, 513, 1000, 1536, 4096, 100_000] {
            let (f32_, f64_) = (Tiling::default_for::<f32>(k), Tiling::default_for::<f64>(k));
            for (tiling, bytes) in [(f32_, 4), (f64_, 8)] {
                let depth = k.div_ceil(k.div_ceil(tiling.tile));
                let block = (depth * tiling.cols * bytes) as f64;
                assert!(block <= host.rates.l2_bytes || tiling.cols == 8, "{k}: {tiling:?}");
            }
        }
        assert_eq!(Tiling::storage_tile::<f64>(512), 512);
        assert_eq!(Tiling::storage_tile::<f64>(5000), Tiling::default_for::<f64>(5000).tile);
    }
}
