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
//! | `reference` | the slow twin, obviously right |
//! | `predict`, `cycle` | a branch predictor; from misses to estimated cycles |
//!
//! **Deliberately absent:** other replacement policies than true LRU, inclusion, prefetchers and coherence (a later issue);
//! the kernel's and other processes' references; wrong-path and out-of-order effects.

#![forbid(unsafe_code)]

mod bank;
mod cycle;
pub mod filter;
mod front;
mod geometry;
mod hierarchy;
mod kernel;
mod model;
mod plan;
mod predict;
pub mod reference;
mod report;
mod stage;
mod tally;
mod touch;
mod traffic;

pub use cycle::{CycleModel, Cycles};
pub use geometry::{Geometry, GeometryError, Levels, Outer, Sharing, StoreMiss};
pub use hierarchy::Hierarchy;
pub use model::{plan_stream, Modelled};
pub use plan::{plan_levels, StreamPlan, WriteBacks, FILTER_SETS_MAX};
pub use predict::{Gshare, Outcome, Prediction};
pub use report::{BlockMisses, Counts, Misses, References, SiteMisses, CACHES_MAX, TLBS_MAX};
