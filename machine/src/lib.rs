//! What a machine is: its caches, TLBs, pages, instruction sets and a declared cost of each event.
//!
//! A [`Machine`] is a value that is passed, never a global, so that a paper's machine is as easy to ask for as this one. It comes from
//! the host ([`Machine::host`]), from a TOML file ([`Machine::from_toml`]) or from [`PRESETS`], and
//! [`Machine::with_override`] changes a level. A machine that any of these returned has been checked: every cache is a whole number of sets.
//!
//! ```
//! let machine = machine::Machine::preset("cachegrind")?.with_override("l1d", "48K,12,64")?;
//! assert_eq!(machine.data_cache(1).unwrap().sets(), 64);
//! # Ok::<(), machine::Error>(())
//! ```
//!
//! A field's origin is part of the value ([`Machine::source_of`]): what the host reported and what had to be assumed is never mixed up.
//! [`abilities`] says what the host can measure, as far as files and CPUID tell.
//!
//! **Leaves out** timing beyond declared penalties; what the words for replacement, inclusion and prefetching mean is the simulator's. No unsafe code.

#![forbid(unsafe_code)]

pub mod ability;
mod behaviour;
mod cache;
mod check;
mod error;
mod feature;
mod geometry;
mod host;
mod machine;
mod preset;
mod read;
mod source;
mod tlb;

pub use ability::{abilities, Ability, State};
pub use behaviour::{Behaviour, Inclusion, Prefetch, Replacement, INCLUSIONS, PREFETCHES, REPLACEMENTS};
pub use cache::{Cache, CacheKind, StoreMiss, WritePolicy};
pub use error::Error;
pub use feature::FEATURES;
pub use geometry::Geometry;
pub use machine::{CycleModel, Machine};
pub use preset::{Preset, PRESETS};
pub use source::{FieldSource, Origin};
pub use tlb::{Tlb, TlbKind};
