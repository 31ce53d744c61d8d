//! Studies: published experiments that anyone can repeat on their own machine. A result lists the
//! commands that were run and what could not be measured.
//!
//! | you have | you want | call |
//! |---|---|---|
//! | the name of a study | its results | [`find`] in [`STUDIES`], then [`Study::run`] |
//! | an hour | every study, and one page about the sentences of their papers | [`run_all`] |
//! | a tile size | its simulated misses | [`tile::simulation::replay`] |
//! | several tile sizes | their times | [`tile::timing::grid`] |
//!
//! A study runs lightfoot as users do, as a child process, and takes no short cut. So the
//! executable that calls this crate must be lightfoot. The findings of the paper come back as
//! claims, each with a verdict ([`Outcome`]).
//!
//! Feature `race` adds other crates to the race of indexes. Feature `peers` also adds crates that
//! multiply matrices.

#![forbid(unsafe_code)]

mod all;
mod cycles;
mod gemm;
mod host;
mod instrument;
mod journal;
mod layout;
mod options;
mod outcome;
mod perturbation;
pub mod race;
mod regex;
mod search_trees;
mod studies;
pub mod tile;
mod tiling;
mod validation;
mod workshop;

pub use all::run_all;
pub use cycles::{kernel, Kernel};
pub use options::{Effort, Options};
pub use outcome::{Claim, Outcome, Verdict, VERDICTS};
pub use regex::{matches, Matches};
pub use search_trees::{lookups, Lookups};
pub use studies::{find, list, Study, STUDIES};
