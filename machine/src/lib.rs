//! What a machine is: its caches, TLBs, pages, instruction sets and a declared cost of each event.
//!
//! ```
//! use lightfoot_machine::Machine;
//! // The machine this runs on, from sysfs and CPUID; this cannot fail.
//! let host = Machine::host();
//! println!("{}: {} caches", host.description, host.caches.len());
//! # #[cfg(feature = "toml")] {
//! // A preset, with another first level.
//! let machine = Machine::preset("cachegrind")?.with_override("l1d", "48K,12,64")?;
//! assert_eq!(machine.data_cache(1).unwrap().sets(), 64);
//! # }
//! # Ok::<(), lightfoot_machine::Error>(())
//! ```
//!
//! A [`Machine`] is a value that is passed, never a global, so that questions about a paper's
//! machine are as easy as those about this one. Every constructor checks it: the caches have whole
//! sets, lines do not become shorter outwards, and page sizes are powers of two. A machine that is
//! built by hand is checked by [`Machine::check`].
//!
//! | you have | you want | call | needs feature `toml` |
//! |---|---|---|---|
//! | nothing | this machine | [`Machine::host`] | no |
//! | a name: `host`, a preset, a path | that machine | `Machine::named` | yes |
//! | a description in TOML | that machine | `Machine::from_toml`, `Machine::from_file` | yes |
//! | a machine | one level changed | [`Machine::with_override`] | no |
//! | a machine | its description | `Machine::to_toml` | yes |
//! | a field's path | how its value is known | [`Machine::source_of`] | no |
//! | this host | what it can measure | [`abilities`] | no |
//!
//! # A description, whole
//!
//! ```
//! # #[cfg(feature = "toml")] {
//! let text = r#"
//! name = "toy"
//! description = "One core with two levels"
//! page_bytes = [4096, "2M"]             # ascending; the first is the base page
//! features = ["avx2", "sse2"]
//!
//! [cycle]                               # declared costs, for estimates
//! base_cycles_per_instruction = 1.0
//! branch_miss_cycles = 15
//!
//! [[cache]]
//! level = 1
//! kind = "data"                         # or "instruction", "unified"
//! size_bytes = "32K"
//! ways = 8                              # or "full"
//! line_bytes = 64
//! store_miss = "allocate"               # or "bypass"
//! write = "back"                        # or "through"
//! replacement = "plru"                  # or a name of `Replacement`: "QLRU_H00_M1_R0_U1"
//! penalty_cycles = 10
//!
//! [[cache]]
//! level = 2
//! kind = "unified"
//! size_bytes = "1M"
//! ways = 16
//! line_bytes = 64
//! inclusion = "inclusive"               # or "independent", "exclusive"
//! prefetch = "streamer+adjacent-line"   # or "none", "next-line", "stride"
//! prefetch_late_touches = 16            # how late its lines are; 0 if absent
//! slice_masks = [0x1b5f575440]          # two slices, by a hash of the address
//! shared_by_cpus = 2
//!
//! [[tlb]]
//! level = 1
//! kind = "data"
//! entries = 64
//! ways = "full"
//! page_bytes = [4096]
//!
//! [[source]]                            # how values are known; the longest path wins
//! field = "cache"
//! origin = "declared"                   # or "measured", "reported", "assumed"
//! note = "made up for this page"
//! "#;
//! let machine = lightfoot_machine::Machine::from_toml(text, "toy.toml".as_ref())?;
//! assert_eq!(machine.last_level().unwrap().name(), "L2");
//! # }
//! # Ok::<(), lightfoot_machine::Error>(())
//! ```
//!
//! # Presets
//!
//! | name | machine | source |
//! |---|---|---|
//! | `ladner2002` | the simulated cache: one level, direct-mapped | Ladner, Fortna, Nguyen 2002 |
//! | `celeron`, `pentium2` | its two measured machines | Table 4.1 there |
//! | `xeon-dp` | 2.8 GHz Xeon DP with penalties | Athanasaki et al. 2006, Table 1 |
//! | `cachegrind` | 32K/32K/8M, lines of 64 bytes | published comparisons; KCachegrind's costs |
//! | `skylake-sp`, `ice-lake-sp`, `sapphire-rapids` | Intel server cores | Intel's manual |
//! | `skylake-sp-victim` | its last level holds victims | Intel's notes |
//! | `ice-lake-policies` | Core i5-1035G1 with measured policies | uops.info |
//! | `granite-rapids` | Intel server core | CPUID of a Xeon 6; Intel's manual for the TLBs |
//! | `zen4`, `zen4-victim` | AMD Zen 4; with a victim last level | CPUID of a Ryzen 7 7700X |
//! | `zen5` | AMD Zen 5 | CPUID of family 1Ah |
//! | `sandy-bridge` | inclusive last level, prefetchers | notes on Intel's manual |
//! | `sandy-bridge-policies` | policies, slices, a streamer | nanoBench; Maurice et al. 2015 |
//! | `cortex-a53` | Arm, first levels that replace at random | Arm DDI 0500 |
//! | `m1` | Apple performance core, lines of 128 bytes | system report, measurements |
//!
//! Each preset is a commented file in `machines/`, and each of its values says where it comes from.
//!
//! # Origins and abilities
//!
//! The origin of a field is part of the machine ([`Machine::source_of`]), so values that the host
//! reported are distinguished from assumed ones. [`abilities`] lists what the host can measure, as
//! far as files and CPUID say.
//!
//! # Features, and what it leaves out
//!
//! `toml`, on by default: descriptions, presets, and serde for every type. Without it the crate has
//! no dependencies. **Leaves out** timing beyond declared penalties, and the meaning of the words
//! for replacement, inclusion and prefetching, which the simulator defines. No `unsafe` code.
//! `host()` is most complete on Linux on x86-64; elsewhere more values are assumed.

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
#[cfg(feature = "toml")]
mod named;
mod overrides;
#[cfg(feature = "toml")]
mod preset;
#[cfg(feature = "toml")]
mod read;
pub mod replacement;
mod source;
mod tlb;

pub use ability::{abilities, Ability, State};
pub use behaviour::{Behaviour, Inclusion, Prefetch, Prefetches, SliceMasks, INCLUSIONS, PREFETCHES};
pub use cache::{Cache, CacheKind, StoreMiss, WritePolicy};
pub use error::Error;
pub use feature::FEATURES;
pub use geometry::Geometry;
pub use machine::{CycleModel, Machine};
#[cfg(feature = "toml")]
pub use preset::{Preset, PRESETS};
pub use replacement::{Replacement, REPLACEMENTS};
pub use source::{FieldSource, Origin};
pub use tlb::{Tlb, TlbKind};

/// The examples of the README are tested too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
