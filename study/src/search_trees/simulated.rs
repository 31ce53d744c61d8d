//! What the figures of the paper are simulated with: machines and sizes of memory blocks.

/// Block sizes of Figure 4.8: the paper's first, then others.
pub(super) const BLOCKS_BYTES: [usize; 3] = [32, 64, 128];

/// The machine whose misses Figure 4.8 shows.
pub(super) const SIMULATED: &str = "ladner2002";

/// The machines of Figures 4.10 and 4.11.
pub(super) const MACHINES: [&str; 2] = ["celeron", "pentium2"];
