//! All studies: one entry each. To add one: a file or a folder with its `run`, and an entry in
//! [`STUDIES`].

use crate::options::Options;
use crate::outcome::Outcome;
use crate::{cycles, gemm, instrument, perturbation, regex, search_trees, tiling, validation};
use anyhow::Result;
use present::exit::{Failure, USAGE};
use present::terminal::beside;

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
        name: "validation",
        about: "simulated cache traffic beside published counters: five processors, seven kernels, errors by level",
        run: validation::run,
    },
    Study {
        name: "cycles",
        about: "estimated cycles beside the times of variants of small kernels: ranks, pairs, errors",
        run: cycles::run,
    },
    Study {
        name: "gemm",
        about: "matrix multiplication beside other crates and the BLAS libraries found here",
        run: gemm::run,
    },
];

/// The study of that name among some.
///
/// # Errors
/// One sentence that names those that there are.
pub fn find<'s>(studies: &'s [Study], name: &str) -> Result<&'s Study> {
    studies.iter().find(|study| study.name == name).ok_or_else(|| {
        let known: Vec<&str> = studies.iter().map(|study| study.name).collect();
        let sentence = format!("there is no study {name}: the studies are {}", known.join(", "));
        Failure { status: USAGE, sentence }.into()
    })
}

/// The studies as `--list` shows them.
pub fn list(studies: &[Study]) -> String {
    let width = studies.iter().map(|study| study.name.len()).max().unwrap_or(0);
    let lines = studies.iter().map(|study| beside(&format!("  {:<width$}  ", study.name), study.about));
    format!(
        "Studies (study [NAME] [--quick] [-o DIR]; without a name all of them):\n{}",
        lines.collect::<String>()
    )
}
