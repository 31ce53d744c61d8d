//! Studies: published experiments that anyone can repeat on their machine, with the commands they
//! ran and what is missing said.
//!
//! | you have | you want | call |
//! |---|---|---|
//! | a study's name | it | [`find`] in [`STUDIES`], then [`Study::run`] |
//! | an hour | every study, and one page of what their papers say | [`run_all`] |
//! | a size of tiles | its simulated misses | [`tile::simulation::replay`] |
//! | several sizes of tiles | their times | [`tile::timing::grid`] |
//!
//! A study runs lightfoot as users do, as a child process: the executable that it runs in must be
//! lightfoot. It knows no short cut. What its paper found comes back as claims ([`Outcome`]). With
//! feature `race` other crates run in the race of indexes; with `peers` those that multiply
//! matrices too.

#![forbid(unsafe_code)]

mod all;
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
pub use options::{Effort, Options};
pub use outcome::{Claim, Outcome, Verdict, VERDICTS};
pub use regex::{matches, Matches};
pub use search_trees::{lookups, Lookups};
pub use studies::{find, list, Study, STUDIES};
