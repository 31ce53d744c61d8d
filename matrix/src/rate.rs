//! The second model, for current machines: it predicts cycles from the rates at which data arrive,
//! and from overlap.
//!
//! **What.** Predicted cycles of a multiplication with tile T, for three kinds of work: the
//! register-tile kernel on blocked operands, plain loops on row-major arrays, and the paper's
//! masked loops. **Why this way.** Out-of-order cores and prefetchers hide latencies, so levels
//! count by *bandwidth*, and transfers overlap with arithmetic: a stretch of work costs the longest
//! of its streams, not their sum. The start of each innermost piece does not overlap, nor do misses
//! in the short innermost loops of plain code. For TLBs: blocked storage uses pages in order and so
//! hides its page walks; row-major tiles touch T rows in T pages, and each row costs a second-level
//! lookup once T exceeds the first TLB.
//!
//! `cycles = max(arithmetic, first level, second level, beyond) + what does not overlap`
//!
//! **Units.** Bytes per cycle and cycles. The rates are declared (see [`Rates`]), because a machine
//! description has none. **Leaves out** conflicts (blocked storage has few) and write-allocate
//! traffic of `C` beyond the second level. Source: measured rates of a Sapphire Rapids core; Goto
//! and van de Geijn 2008 for the contents of the levels (`B`'s block in half of the second one).

use crate::tile_sizes::{Problem, Tiling};
use crate::Error;
use machine::Machine;

/// The kind of computation on tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Register-tile kernels on blocked operands.
    Kernel,
    /// The six loops on row-major arrays (`LaLt`).
    LinearLoops,
    /// The six loops on blocked arrays (`MBaLt`).
    MaskedLoops,
}

/// The capacities of a machine, from its description, and its rates, which are declared here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Bytes of the first-level data cache.
    pub l1_bytes: f64,
    /// Bytes of the second-level cache.
    pub l2_bytes: f64,
    /// Bytes of the third-level cache; infinite where there is none.
    pub l3_bytes: f64,
    /// Entries of the first data TLB.
    pub tlb_entries: f64,
    /// Bytes of a vector register.
    pub vector_bytes: f64,
    /// Fused multiply-adds (vectors) per cycle.
    pub fma_per_cycle: f64,
    /// Bytes per cycle from the second level.
    pub l2_rate: f64,
    /// Bytes per cycle from beyond the second level.
    pub far_rate: f64,
    /// Bytes of the vectors of compiled plain loops: 16, unless the build enables larger ones.
    pub loop_vector_bytes: f64,
    /// Cycles that a register tile costs in addition to its multiplications.
    pub tile_start: f64,
    /// Cycles that an innermost loop costs beside its iterations.
    pub loop_start: f64,
    /// Cycles that an innermost loop costs beside its iterations if it steps masks.
    pub mask_start: f64,
}

/// A server core with the widest vectors (Sapphire Rapids), for processors that do not tell their
/// caches.
pub(crate) const SERVER_CORE: Rates = Rates {
    l1_bytes: 49152.0,
    l2_bytes: 2097152.0,
    l3_bytes: 33554432.0,
    tlb_entries: 96.0,
    vector_bytes: 64.0,
    fma_per_cycle: 2.0,
    l2_rate: 64.0,
    far_rate: 9.0,
    loop_vector_bytes: 16.0,
    tile_start: 30.0,
    loop_start: 5.0,
    mask_start: 7.0,
};

impl Rates {
    /// Capacities and vector width of `machine`, and declared rates, of which the second level's
    /// follows the vector width. They were measured on one Sapphire Rapids core (first level 350
    /// GB/s, second 160 to 190, beyond 29, at about 3.3 GHz).
    ///
    /// # Errors
    /// [`Error::Machine`] when the first or second level is missing.
    pub fn of(machine: &Machine) -> Result<Rates, Error> {
        let level = |level, field| {
            machine.data_cache(level).map(|cache| cache.size_bytes as f64).ok_or(Error::Machine { field })
        };
        let vector_bytes = match () {
            () if machine.has("avx512f") => 64.0,
            () if machine.has("avx2") => 32.0,
            () => 16.0,
        };
        Ok(Rates {
            l1_bytes: level(1, "first-level data cache (cache.L1D)")?,
            l2_bytes: level(2, "second-level cache (cache.L2)")?,
            l3_bytes: machine.data_cache(3).map_or(f64::INFINITY, |cache| cache.size_bytes as f64),
            tlb_entries: machine.data_tlb(1).map_or(64.0, |tlb| f64::from(tlb.entries)),
            vector_bytes,
            fma_per_cycle: 2.0,
            l2_rate: vector_bytes,
            far_rate: 9.0,
            loop_vector_bytes: 16.0,
            tile_start: 30.0,
            loop_start: 5.0,
            mask_start: 7.0,
        })
    }
}

/// Predicted cycles, by stream. The total is the longest stream plus the cycles that do not
/// overlap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cycles {
    /// Multiply-adds.
    pub arithmetic: f64,
    /// Loads and stores at the first level.
    pub l1: f64,
    /// Bytes from the second level.
    pub l2: f64,
    /// Bytes from beyond the second level.
    pub far: f64,
    /// Cycles that do not overlap: starts of register tiles or innermost loops and, in plain loops,
    /// L1 misses and page walks.
    pub serial: f64,
}

impl Cycles {
    /// The longest stream plus the cycles that do not overlap.
    pub fn total(&self) -> f64 {
        self.arithmetic.max(self.l1).max(self.l2).max(self.far) + self.serial
    }
}

/// The kernel's register tile, in bytes of rows and in columns: three vectors by eight columns,
/// fewer if there are fewer registers.
fn register_tile(rates: &Rates) -> (f64, f64) {
    (3.0 * rates.vector_bytes, if rates.vector_bytes >= 64.0 { 8.0 } else { 4.0 })
}

/// The block sizes for tile T.
pub fn blocks(rates: &Rates, problem: Problem, work: Work, tile: usize) -> Tiling {
    if work != Work::Kernel {
        return Tiling { tile, rows: tile, cols: tile };
    }
    // The block of B takes half of the second level at most. The rest is for the panels of A that
    // are multiplied, for those that are prefetched meanwhile, and for the tiles of C between them:
    // a larger block of B loses lines to them, because replacement only approximates the order of
    // use.
    let column_bytes = (tile.min(problem.k).max(1) * problem.element_bytes) as f64;
    // Columns beyond those during which the next panels of A arrive save little, and are slower
    // where they fill more than a quarter of the level.
    let columns = |share: f64| (rates.l2_bytes / share / column_bytes) as usize / COLUMNS * COLUMNS;
    let cols = columns(2.0).min(columns(4.0).max(ENOUGH_COLUMNS));
    // The packed rows of A are read once for each block of B, from the third level if they take an
    // eighth of it: with several threads each has its own.
    let rows = (rates.l3_bytes / 8.0 / column_bytes).min(MOST_ROWS as f64) as usize;
    Tiling { tile, rows: rows.max(LEAST_ROWS), cols: cols.clamp(COLUMNS, MOST_ROWS) }
}

/// Columns of `B` that a kernel multiplies at once.
const COLUMNS: usize = 8;
/// Columns of `B` that are enough to hide how the next panels of `A` arrive.
const ENOUGH_COLUMNS: usize = 128;
/// The most rows of `A` and columns of `B` of a block.
const MOST_ROWS: usize = 4096;
/// The fewest rows of `A` of a block: `B` is packed again for each block.
const LEAST_ROWS: usize = 240;

/// Predicted cycles for tile T.
pub fn cycles(rates: &Rates, problem: Problem, work: Work, tile: usize) -> Cycles {
    match work {
        Work::Kernel => kernel(rates, problem, tile),
        Work::LinearLoops => loops(rates, problem, tile, rates.loop_start, row_walks(rates, problem, tile)),
        Work::MaskedLoops => loops(rates, problem, tile, rates.mask_start, 0.0),
    }
}

/// The number of multiply-adds, in elements.
fn volume(problem: Problem) -> f64 {
    problem.m as f64 * problem.n as f64 * problem.k as f64
}

fn kernel(rates: &Rates, problem: Problem, tile: usize) -> Cycles {
    let bytes = problem.element_bytes as f64;
    let (row_bytes, columns) = register_tile(rates);
    let (rows, depth) = (row_bytes / bytes, tile.min(problem.k) as f64);
    let nc = blocks(rates, problem, Work::Kernel, tile).cols.min(problem.n) as f64;
    let (volume, vector) = (volume(problem), rates.vector_bytes / bytes);
    let tiles = volume / (rows * columns * depth);
    // A's micropanel stays in the first level while B's pass, or both are streamed.
    let (a, b) = (row_bytes * depth, columns * depth * bytes);
    let a_from_l2 = if a + 2.0 * b < rates.l1_bytes { a * columns / nc } else { a };
    let c = 2.0 * row_bytes * columns;
    let far_a = volume / nc * bytes;
    let far = far_a + volume / problem.m as f64 * bytes + 2.0 * volume / depth * bytes;
    let everything = (problem.m * problem.k + problem.n * problem.k + problem.m * problem.n) as f64 * bytes;
    let is_far = everything > rates.l2_bytes;
    // A tile of C arrives between two tiles, when nothing is multiplied. The next panels of A are
    // prefetched while PREFETCHED columns pass; of fewer columns, the rest of them is waited for.
    let exposed = far_a * (1.0 - nc / PREFETCHED).max(0.0) + tiles * c;
    Cycles {
        arithmetic: volume / vector / rates.fma_per_cycle,
        l1: tiles * depth * (3.0 + columns) / 2.0,
        l2: tiles * (a_from_l2 + b + c) / rates.l2_rate,
        far: if is_far { far / rates.far_rate } else { 0.0 },
        serial: tiles * rates.tile_start + if is_far { exposed / rates.far_rate } else { 0.0 },
    }
}

/// The columns that pass while the kernel prefetches all of the next three panels: it fetches one
/// line per four steps, and a step has three lines, so it needs twelve groups of eight columns.
const PREFETCHED: f64 = 96.0;

/// The loops on tiles: B's tile is read for every row of A's tile, together with a row of C's.
/// Short loops end before the next loop's misses have begun, so misses of the first level are
/// added, not overlapped.
fn loops(rates: &Rates, problem: Problem, tile: usize, start: f64, walks: f64) -> Cycles {
    let bytes = problem.element_bytes as f64;
    let t = tile.min(problem.m).min(problem.n).min(problem.k).max(1) as f64;
    let volume = volume(problem);
    let lanes = (rates.loop_vector_bytes / bytes).max(1.0);
    let set = t * t * bytes + 4.0 * t * bytes;
    let missed = |capacity: f64| if set <= capacity { 3.0 * volume / t } else { volume };
    let everything = 3.0 * volume.powf(2.0 / 3.0) * bytes;
    let l2 = missed(rates.l1_bytes) * bytes / rates.l2_rate;
    let far = if everything > rates.l2_bytes { missed(rates.l2_bytes) * bytes / rates.far_rate } else { 0.0 };
    Cycles {
        arithmetic: volume / lanes / rates.fma_per_cycle,
        // Each multiply-add loads one vector of B and one of C and stores one, which takes a cycle.
        l1: volume / lanes,
        l2,
        far,
        serial: volume / t * start + walks + l2 + far,
    }
}

/// Page walks for row-major tiles: T rows lie in T pages as soon as a row of the array fills one.
fn row_walks(rates: &Rates, problem: Problem, tile: usize) -> f64 {
    let t = tile.min(problem.n).max(1) as f64;
    let row_bytes = (problem.n * problem.element_bytes) as f64;
    if row_bytes < 4096.0 || t < rates.tlb_entries {
        return 0.0;
    }
    volume(problem) / t * 7.0
}
