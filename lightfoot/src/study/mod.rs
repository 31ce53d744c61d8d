//! Studies: experiments that anyone can repeat on their machine, with the commands they ran and what is missing said.
//!
//! A study runs lightfoot as users do, as a child process; it knows no short cut. What its paper found comes back as claims ([`Outcome`]); without a name
//! all studies run and one page shows them ([`run_all`]).

mod all;
pub(crate) mod date;
mod gemm;
mod instrument;
mod outcome;
mod perturbation;
pub mod race;
mod regex;
mod search_trees;
mod tiling;
mod workshop;

use crate::cli;
pub use all::run as run_all;
use anyhow::Result;
pub use outcome::{Claim, Outcome};
pub use search_trees::lookups;
use std::path::PathBuf;
use workshop::workshop;

/// One study.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// What the command line calls it.
    pub name: &'static str,
    /// What it answers, in a line.
    pub about: &'static str,
    /// Runs it and writes its files.
    pub run: fn(&Options) -> Result<Outcome>,
}

/// All studies.
pub const STUDIES: &[Study] = &[
    Study {
        name: "instrument",
        about: "speed and exactness of count and cache beside cachegrind and DynamoRIO",
        run: instrument::run,
    },
    Study {
        name: "search-trees",
        about: "Ladner, Fortna and Nguyen 2002, Figures 4.8 to 4.11, and what an index does today",
        run: search_trees::run,
    },
    Study {
        name: "tiling",
        about: "tile sizes of Athanasaki et al. 2006: formula, simulation, real loops, times",
        run: tiling::run,
    },
    Study {
        name: "regex",
        about: "Cameron et al. 2014 in kind: pattern families beside other greps, instructions and branches per byte",
        run: regex::run,
    },
    Study {
        name: "perturbation",
        about: "Mytkowicz et al. 2007, Figures 3 to 8, Table 1: does measuring disturb the relations between metrics?",
        run: perturbation::run,
    },
    Study {
        name: "gemm",
        about: "matrix multiplication beside other crates and the BLAS libraries found here",
        run: gemm::run,
    },
];

/// How much work a study does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Small inputs, few rounds.
    Quick,
    /// The record.
    Full,
}

/// What a study is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much work.
    pub effort: Effort,
    /// Folder for the results.
    pub folder: PathBuf,
    /// Largest array of the studies that scale with memory, when the user says.
    pub max_bytes: Option<usize>,
}

impl Options {
    /// From the command line.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn new(study: &cli::Study) -> Result<Options> {
        let effort = if study.quick { Effort::Quick } else { Effort::Full };
        Ok(Options { effort, folder: study.output.clone(), max_bytes: study.max_bytes })
    }
}

/// Processor, number of CPUs, kernel.
fn host() -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unknown processor", |(_, model)| model);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{model}, {cpus} CPUs, Linux {}", kernel.trim())
}
