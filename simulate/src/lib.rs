//! Trace-driven simulation of caches, TLBs and branch predictors: feed addresses, read misses.
//!
//! ```
//! use lightfoot_simulate::event::{Record, RecordKind};
//! use lightfoot_simulate::{Geometry, Hierarchy, Levels};
//!
//! // A data cache of 4 KiB: 4 ways, lines of 64 bytes.
//! let mut cache = Hierarchy::new(&Levels::data_only(Geometry::cache(4096, 4, 64)))?;
//! // Instruction number 7 loads 8 bytes at each of 1000 neighbouring addresses.
//! let loads: Vec<Record> =
//!     (0..1000).filter_map(|n| Record::new(RecordKind::Load, 8, 7, 0x1000 + 8 * n)).collect();
//! cache.records(0, &loads);
//! assert_eq!(cache.counts().cache(0).loads, 125, "one line in eight references");
//! assert_eq!(cache.counts().sites[7].loads[0], 125, "and all of them by instruction 7");
//! # Ok::<(), lightfoot_simulate::GeometryError>(())
//! ```
//!
//! A [`Record`](event::Record) is sixteen bytes: what happened (a load, a store, a fetch), where,
//! how many bytes, and the number of the instruction or block that did it. They come from the
//! engine (`lightfoot-instrument`), from a file (`event::file`), or from a loop of one's own.
//!
//! | you have | you want | call | cost |
//! |---|---|---|---|
//! | sizes, ways, lines | misses by instruction | [`Levels`], [`Hierarchy`] | some ns a record |
//! | a machine's description | those levels | [`Modelled::of`] | microseconds |
//! | other policies, prefetchers, … | misses, lines moved | [`Simulator`], [`Refined`] | 35 ns a touch, 200 a miss |
//! | one stream | misses of 31 sizes at once | [`distance::StackDistances`] | one pass |
//! | one stream | memory in use over time | [`distance::WorkingSet`] | a look-up a reference |
//! | levels | the least exact stream | [`plan_levels`], [`plan_stream`] | nothing |
//! | misses | estimated cycles | [`CycleModel`] | nothing |
//! | outcomes of branches | mispredictions | [`Predictor`], [`PREDICTORS`] | some ns a branch |
//!
//! # Levels
//!
//! [`Levels`] says what is simulated. It is built by hand ([`Levels::data_only`],
//! [`Levels::two_level`], or field by field) or from a machine's description ([`Modelled::of`],
//! which says in sentences what it leaves out). Up to three cache levels, split or data-only first
//! level, two TLB levels; sets need not be powers of two. A replacement policy is one of
//! [`POLICIES`], or one of your own ([`policy::Policy`]). [`Simulator`] takes the fast path,
//! [`Hierarchy`], where levels are plain: LRU, no prefetcher, independent levels, one page size.
//!
//! # What is counted, and how exactly
//!
//! A reference that touches several lines of a level counts as at most one miss there (Cachegrind's
//! convention), and one of more than 64 bytes counts each line. Misses stand by site and block in
//! [`Counts`]. Every fast path is held against a slow twin in [`reference`](mod@reference) by tests
//! over random machines and streams. Where lightfoot and Cachegrind still differ, the definitions
//! differ: the repository's `LIMITS.md` lists the cases.
//!
//! # Many sizes at once
//!
//! With LRU a larger cache of as many sets holds all that a smaller one holds, so one pass over the
//! stream gives the misses of all sizes: [`distance`].
//!
//! # Speed, and the filter
//!
//! `cargo bench -p lightfoot-simulate` prints millions of records per second for streams of known
//! character. Most references use the line that their set used last, which changes nothing: an
//! engine may leave them out. [`plan_levels`] says when that is exact, and [`filter`] is the model
//! of such a filter; records fed by hand need neither.
//!
//! # What it leaves out
//!
//! Coherence; page walks through the caches; references of the kernel and of other processes;
//! wrong-path and out-of-order effects.
//!
//! Runs on any platform; AVX2 and AVX-512 are used where the processor has them. The `unsafe` code
//! is calls of their intrinsics, in one file, and the statement that zeros make an empty row.

#![deny(unsafe_code)]

mod bank;
mod behaviour;
mod cycle;
pub mod distance;
pub mod filter;
mod front;
mod geometry;
mod hierarchy;
mod kernel;
mod kinds;
mod large_pages;
mod levels;
mod limits;
mod located;
mod miss_log;
mod model;
mod pages;
mod plan;
pub mod policy;
mod predict;
pub mod reference;
mod refined;
mod report;
mod row_map;
mod scratch;
mod shelf;
mod simulator;
mod stage;
mod tally;
mod touch;
mod traffic;

// Types of these two stand in this crate's interface.
pub use event;
pub use machine;

pub use behaviour::{Inclusion, Prefetch, Prefetchers, INCLUSIONS, PREFETCHES};
pub use cycle::{CycleModel, Cycles};
pub use geometry::{Geometry, GeometryError, StoreMiss};
pub use hierarchy::Hierarchy;
pub use kinds::count_kinds;
pub use large_pages::{LargePages, PageBuffer, PageRange};
pub use levels::{FetchTlb, Levels, Outer, Sharing};
pub use located::{LocatedMiss, LocatedMisses, MissSide};
pub use miss_log::{IntervalMisses, MissIntervals};
pub use model::{plan_stream, Modelled};
pub use pages::Pages;
pub use plan::{plan_levels, StreamPlan, WriteBacks, FILTER_SETS_MAX};
pub use policy::{Policy, POLICIES};
pub use predict::{Gshare, NamedPredictor, Outcome, Perceptron, Prediction, Predictor, PREDICTORS};
pub use refined::Refined;
pub use report::{
    BlockMisses, Counts, LevelTraffic, Misses, Prefetched, References, SiteMisses, Totals, Traffic,
    CACHES_MAX, TLBS_MAX,
};
pub use shelf::Shelf;
pub use simulator::Simulator;

/// The examples of the README are tested too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
