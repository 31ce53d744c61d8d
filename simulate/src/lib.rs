//! Trace-driven simulation of caches, TLBs and branch predictors.
//!
//! A [`Levels`] says what is simulated; a [`Hierarchy`] takes the records that a program emits, batch by batch, and counts misses by
//! site and block; [`plan_stream`] says beforehand which records may be left out without changing a single miss count.
//!
//! | module | what |
//! |---|---|
//! | `geometry` | sets, ways, lines: what a level is |
//! | `model` | from a machine's description to levels |
//! | `touch`, `stage` | touches of single lines, in columns; records → touches |
//! | `bank` | rows of tags in recency order, searched in sweeps: the hot loops |
//! | `front` | touches of the line used last in an outer set, which need no row |
//! | `kernel` | one row of tags, touched, and sixteen touches sifted: portable, AVX2, AVX-512 |
//! | `hierarchy` | threads, levels, who misses where |
//! | `traffic` | the same levels with dirty bits: write-backs |
//! | `tally`, `report` | counters while it runs, and plain numbers |
//! | `filter` | a model of the filter that generated code runs in line |
//! | `plan` | when that filter is exact |
//! | `distance` | miss curves: many sizes from one pass |
//! | `reference` | the slow twins, obviously right |
//! | `policy`, `refined` | other policies, prefetchers, inclusion, large pages: a walk touch by touch |
//! | `simulator` | the one of the two that levels ask for |
//! | `predict`, `perceptron`, `cycle` | branch predictors; from misses to estimated cycles |
//!
//! **Deliberately absent:** coherence; write-backs of hierarchies that are not plain LRU; the kernel's and other processes' references;
//! wrong-path and out-of-order effects.

#![forbid(unsafe_code)]

mod bank;
mod cycle;
pub mod distance;
pub mod filter;
mod front;
mod geometry;
mod hierarchy;
mod kernel;
mod model;
mod perceptron;
mod plan;
mod policy;
mod predict;
pub mod reference;
mod refined;
mod report;
mod simulator;
mod stage;
mod tally;
mod touch;
mod traffic;

pub use cycle::{CycleModel, Cycles};
pub use geometry::{Geometry, GeometryError, Levels, Outer, Sharing, StoreMiss};
pub use hierarchy::Hierarchy;
pub use model::{plan_stream, Modelled};
pub use perceptron::Perceptron;
pub use plan::{plan_levels, StreamPlan, WriteBacks, FILTER_SETS_MAX};
pub use policy::{
    Inclusion, LargePages, PageBuffer, PageRange, Policy, Prefetch, INCLUSIONS, POLICIES, PREFETCHES,
};
pub use predict::{Gshare, NamedPredictor, Outcome, Prediction, Predictor, PREDICTORS};
pub use refined::Refined;
pub use report::{BlockMisses, Counts, Misses, References, SiteMisses, Totals, CACHES_MAX, TLBS_MAX};
pub use simulator::Simulator;
