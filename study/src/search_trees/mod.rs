//! `lightfoot study search-trees`: the experiments of Ladner, Fortna and Nguyen (2002) on this
//! machine, and then a race of today's indexes.
//!
//! Figures 4.8 and 4.9 ([`counted`]) come from compiled lookups under lightfoot's instrumentation;
//! the misses of the structure alone ([`structure`]) stand beside them. Figures 4.10 and 4.11 come
//! from the declared costs of the paper's machines and from this machine's clock ([`timed`]). The
//! race is in [`modern`]. [`claim`] decides which of the paper's findings hold here, by the values
//! that [`answers`] computes, and says where they differ.
//!
//! **Leaves out** hardware counters, and static-search-tree, which needs a nightly compiler and so
//! cannot be a dependency.

mod answers;
mod claim;
mod counted;
mod findings;
mod lookup;
mod modern;
mod page;
mod simulated;
mod structure;
mod timed;

pub use lookup::{lookups, Lookups};

use crate::host::host;
use crate::journal::Journal;
use crate::layout::LAYOUTS;
use crate::options::{Effort, Options};
use crate::outcome::Outcome;
use crate::workshop::workshop;
use anyhow::Result;
use counted::Setting;
use findings::Findings;
use present::date;
use simulated::{BLOCKS_BYTES, MACHINES, SIMULATED};
use std::path::Path;

/// How much is measured: numbers of items as powers of two, and layouts.
struct Extent {
    /// Of Figures 4.8 and 4.9.
    counted: Vec<u32>,
    /// In blocks that the paper shows no figure of.
    other_blocks: &'static [u32],
    /// Layouts in other blocks than the paper's.
    other_layouts: usize,
    /// By the declared costs of the paper's machines, and layouts of each.
    modelled: Vec<u32>,
    modelled_layouts: usize,
    /// By the clock.
    timed: Vec<u32>,
    /// Keys that are raced.
    max_bytes: usize,
}

impl Extent {
    fn of(options: &Options) -> Extent {
        let of_effort = match options.effort {
            Effort::Quick => Extent {
                counted: vec![7, 10, 13, 16],
                other_blocks: &[10, 16],
                other_layouts: 2,
                modelled: vec![7, 10, 13, 16, 18],
                modelled_layouts: 2,
                timed: vec![7, 10, 13, 16, 18, 20],
                max_bytes: 8 << 20,
            },
            Effort::Full => Extent {
                counted: (7..=21).collect(),
                other_blocks: &[7, 10, 13, 16, 19],
                other_layouts: 10,
                modelled: (7..=21).collect(),
                modelled_layouts: 5,
                // The paper ends at 2^21.
                timed: (7..=22).collect(),
                max_bytes: 512 << 20,
            },
        };
        Extent { max_bytes: options.max_bytes.unwrap_or(of_effort.max_bytes), ..of_effort }
    }

    /// What is counted, in order.
    fn settings(&self) -> Vec<Setting> {
        let setting = |machine, log: &u32, block_bytes, layouts| Setting {
            machine,
            items: 1 << log,
            block_bytes,
            layouts,
        };
        let figure = self.counted.iter().map(|log| setting(SIMULATED, log, BLOCKS_BYTES[0], LAYOUTS));
        let others = BLOCKS_BYTES[1..].iter().flat_map(|&block| {
            self.other_blocks.iter().map(move |log| setting(SIMULATED, log, block, self.other_layouts))
        });
        let modelled = MACHINES.into_iter().flat_map(|machine| {
            let layouts = self.modelled_layouts;
            self.modelled.iter().map(move |log| setting(machine, log, BLOCKS_BYTES[0], layouts))
        });
        figure.chain(others).chain(modelled).collect()
    }

    /// Seconds of all steps.
    fn seconds(&self, effort: Effort) -> f64 {
        let counting: f64 = self.settings().iter().map(Setting::seconds).sum();
        let timing: f64 = self.timed.iter().map(|&log| timing_seconds(log)).sum();
        let racing: f64 = modern::sizes(self.max_bytes).len() as f64 * racing_seconds(effort);
        counting + timing + racing
    }
}

/// Twenty times as many lookups as there are items, of seven searches.
fn timing_seconds(log: u32) -> f64 {
    1.0 + (1u64 << log) as f64 * 20.0 * 7.0 * 100e-9
}

/// Sizes take about as long as each other: few layouts race among the largest.
fn racing_seconds(effort: Effort) -> f64 {
    match effort {
        Effort::Quick => 10.0,
        Effort::Full => 90.0,
    }
}

/// Runs the study and writes its results.
pub(super) fn run(options: &Options) -> Result<Outcome> {
    let folder = workshop()?;
    let extent = Extent::of(options);
    let mut journal = Journal::open(options, "search-trees", extent.seconds(options.effort))?;
    // Each size is one step of the journal, so a study that was interrupted repeats one size at
    // most.
    let (counted, structural) = counts(&extent, &mut journal, folder.path())?;
    let mut timed = Vec::new();
    for &log in &extent.timed {
        let step = format!("timing lookups among {} items", 1usize << log);
        timed.extend(journal.step::<Vec<timed::Timed>>(&step, timing_seconds(log), || {
            Ok(timed::measure(1 << log, BLOCKS_BYTES[0]))
        })?);
    }
    let mut modern = Vec::new();
    // The race is about today's indexes, so no sentence of the paper depends on it.
    for bytes in modern::sizes(extent.max_bytes) {
        let step = format!("racing indexes of {} KiB", bytes >> 10);
        modern.extend(journal.step::<Vec<contenders::IndexFigures>>(
            &step,
            racing_seconds(options.effort),
            || Ok(modern::measure(options.effort, bytes)),
        )?);
    }
    let findings = Findings {
        schema: 2,
        date: date::today(),
        effort: options.effort.shown(),
        version: env!("CARGO_PKG_VERSION"),
        host: host(),
        claims: claim::check(&counted, &structural, &timed),
        counted,
        structural,
        timed,
        modern,
    };
    let files = page::write(&findings, &options.folder)?;
    journal.finish()?;
    Ok(Outcome { summary: page::summary(&findings), claims: findings.claims, files })
}

/// All that is counted: of programs, and of structures alone.
fn counts(
    extent: &Extent,
    journal: &mut Journal,
    folder: &Path,
) -> Result<(Vec<counted::Counted>, Vec<structure::Structural>)> {
    let (mut programs, mut structures) = (Vec::new(), Vec::new());
    for setting in extent.settings() {
        let Setting { machine, items, block_bytes, layouts } = setting;
        let step = format!(
            "counting lookups among {items} items, blocks of {block_bytes} bytes, {machine}, {layouts} layouts"
        );
        programs.extend(journal.step::<Vec<counted::Counted>>(&step, setting.seconds(), || {
            counted::measure(&setting, folder)
        })?);
        if machine == SIMULATED {
            let step = format!("structures of {items} items alone, blocks of {block_bytes} bytes");
            structures.extend(
                journal.step::<Vec<structure::Structural>>(&step, 0.0, || {
                    structure::measure(items, block_bytes)
                })?,
            );
        }
    }
    Ok((programs, structures))
}
