//! `lightfoot study search-trees`: the experiments of Ladner, Fortna and Nguyen (2002) on this
//! machine, then what an index does today.
//!
//! Figures 4.8 and 4.9 ([`counted`]) come from the compiled lookups under our own instrumentation,
//! 4.10 and 4.11 ([`timed`]) from the clock, the rest ([`modern`]) from a race. [`claim`] holds
//! what the paper found against what was measured here, and says where they differ. Deliberately
//! absent: hardware counters, and the nightly-only static-search-tree, which cannot be a
//! dependency.

mod claim;
mod counted;
mod findings;
mod lookup;
mod modern;
mod page;
#[cfg(feature = "race")]
mod peer;
mod timed;

pub use lookup::{lookups, Lookups};

use crate::options::{Effort, Options};
use crate::outcome::Outcome;
use crate::workshop::workshop;
use anyhow::Result;
use findings::{Findings, BLOCKS_BYTES};
use present::date;

/// Runs the study and writes its results.
pub(super) fn run(options: &Options) -> Result<Outcome> {
    let folder = workshop()?;
    let counted = counted(options.effort, folder.path())?;
    let timed = timed(options.effort);
    let default = if options.effort == Effort::Quick { 8 << 20 } else { 512 << 20 };
    let modern = modern::measure(options.effort, options.max_bytes.unwrap_or(default), &mut |what| {
        show_progress(what)
    });
    let findings = Findings {
        schema: 1,
        date: date::today(),
        effort: if options.effort == Effort::Quick { "quick" } else { "full" },
        version: env!("CARGO_PKG_VERSION"),
        claims: claim::check(&counted, &timed),
        counted,
        timed,
        modern,
    };
    let files = page::write(&findings, &options.folder)?;
    Ok(Outcome { summary: page::summary(&findings), claims: findings.claims, files })
}

fn show_progress(what: &str) {
    present::tell!("lightfoot: {what}");
}

fn counted(effort: Effort, folder: &std::path::Path) -> Result<Vec<counted::Counted>> {
    let (sizes, of_other_blocks, trials): (Vec<u32>, &[u32], usize) = match effort {
        Effort::Quick => (vec![7, 10, 13, 16], &[10, 16], 1),
        Effort::Full => ((7..=21).collect(), &[7, 10, 13, 16, 19], 10),
    };
    let mut results = Vec::new();
    for block_bytes in BLOCKS_BYTES {
        for &log in sizes.iter().filter(|log| block_bytes == BLOCKS_BYTES[0] || of_other_blocks.contains(log))
        {
            show_progress(&format!(
                "counting lookups among {} items, blocks of {block_bytes} bytes",
                1usize << log
            ));
            let trials = if block_bytes == BLOCKS_BYTES[0] { trials } else { 1 };
            results.extend(counted::measure(1 << log, block_bytes, trials, folder)?);
        }
    }
    Ok(results)
}

fn timed(effort: Effort) -> Vec<timed::Timed> {
    let sizes: Vec<u32> = match effort {
        Effort::Quick => vec![7, 10, 13, 16, 18, 20],
        Effort::Full => (7..=24).collect(),
    };
    let measure = |log: u32| {
        show_progress(&format!("timing lookups among {} items", 1usize << log));
        timed::measure(1 << log, BLOCKS_BYTES[0])
    };
    sizes.into_iter().flat_map(measure).collect()
}
