//! Studies: experiments that anyone can repeat on their machine, with the commands they ran and what is missing said.
//!
//! A study runs lightfoot as users do, as a child process; it knows no short cut.

mod date;
mod gemm;
mod instrument;
pub mod race;
mod regex;
mod search_trees;
mod tiling;
mod workshop;

use crate::cli;
use anyhow::Result;
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
    /// Runs it.
    pub run: fn(&Options) -> Result<()>,
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
