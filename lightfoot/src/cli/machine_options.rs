//! Options for the machine that is simulated, or for which a plan is made.

use clap::Args;
use std::ffi::OsString;

/// The simulated machine.
#[derive(Clone, Debug, Default, Args)]
pub struct MachineOptions {
    /// Machine to simulate: `host`, a name that `lightfoot machines` lists, or a TOML file
    #[arg(long, value_name = "host|PRESET|FILE", default_value = "host")]
    pub machine: OsString,
    /// First-level instruction cache, e.g. 32K,8,64; then any of: a replacement policy (lru fifo
    /// plru random mru nru lru_plru4 QLRU_H00_M1_R0_U1 … duel:FIRST:SECOND:LEADERS), prefetchers
    /// (next-line stride streamer adjacent-line, with + between them), late:TOUCHES, inclusive,
    /// exclusive, slices:MASK:MASK…
    #[arg(long, value_name = "SIZE,WAYS,LINE")]
    pub l1i: Option<String>,
    /// First-level data cache
    #[arg(long, value_name = "SIZE,WAYS,LINE")]
    pub l1d: Option<String>,
    /// Second-level cache
    #[arg(long, value_name = "SIZE,WAYS,LINE")]
    pub l2: Option<String>,
    /// Third-level cache
    #[arg(long, value_name = "SIZE,WAYS,LINE")]
    pub l3: Option<String>,
    /// Addresses on huge pages: 2M or 1G, for all or for a range; may be given more than once
    #[arg(long, value_name = "SIZE[@START-END]")]
    pub huge_pages: Vec<String>,
    /// Addresses of the levels behind the first: `virtual`, or those of pages mapped at random,
    /// where equal seeds give equal pages
    #[arg(long, value_name = "virtual|random:SEED", default_value = "virtual")]
    pub pages: String,
}
