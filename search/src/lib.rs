//! Static search trees: sorted keys that are asked often and never change.
//!
//! Given sorted keys, plan a [`Layout`], choose a kernel for the machine, answer ranks:
//!
//! ```
//! let keys: Vec<u32> = (0..100_000).map(|i| i * 7).collect();
//! let index = search::Index::build(&keys)?;
//! assert_eq!(index.lower_bound(21), 3);
//!
//! let mut ranks = vec![0; 4];
//! index.batch(&[0, 1, 70, u32::MAX], &mut ranks);
//! assert_eq!(ranks, [0, 1, 10, 100_000]);
//!
//! println!("{}", index.explain());
//! # Ok::<(), search::Error>(())
//! ```
//!
//! Sorted or not, few or many, one at a time or a million at once:
//!
//! | you have | you want | call | cost |
//! |---|---|---|---|
//! | sorted keys | an index | [`Index::build`] | a nanosecond or two a key while they fit the caches, beyond it what the system takes to hand out pages |
//! | keys in any order | an index | [`Index::build_unsorted`], [`Index::build_parallel`] | a sort, then the same |
//! | a query | its position | [`Index::lower_bound`], [`Index::equal_range`], [`Index::contains`] | one line of memory for evenly spread keys, else one per level of a 17-ary (64-bit keys: 9-ary) tree |
//! | many queries | their positions | [`Index::batch`], [`Index::batch_parallel`] | the same lines, but their misses overlap: a tenth of the time |
//! | bounds | the keys between | [`Index::range`], [`Index::range_ranks`] | two queries, then reading in order |
//! | values beside keys | look-ups | [`Map`] | a query, and the value's own line |
//! | byte strings | all of this, and prefixes | [`BytesIndex`] | a query of their first eight differing bytes, then a binary search among those alike |
//! | an index in memory | a file that opens without a copy | [`Index::save`], [`Index::open`] | one pass that checks it |
//!
//! An index never changes; build another one beside it, and swap. It is `Send` and `Sync`, and cloning it shares its memory.
//!
//! # How to read this crate
//!
//! | given | plan | kernel | result |
//! |---|---|---|---|
//! | sorted keys ([`key`](Key): any type as ordered unsigned lanes) | [`plan`](Options) picks a [`Layout`] from type, number and spread | `kernel`: how a line is compared on AVX-512, AVX2, NEON, or anything | ranks: [`Index`], [`Map`], [`BytesIndex`] |
//!
//! One line of memory (64 bytes) is the unit of everything: a layout is a slice of lines, a kernel compares one line, a file is the lines behind a
//! header. [`LAYOUTS`] and [`KERNELS`] list the families; [`reference`](mod@reference) is the slow twin, and `tests/agree.rs` holds every layout on every kernel for every key type
//! against it. [`paper`] has the six algorithms of the paper that started this, for the studies.
//!
//! # What it promises
//!
//! The full range of every key type, duplicates, any number of keys and queries; answers are positions. The lines that one query reads are bounded by
//! construction whatever the keys: layouts that cannot keep their bound refuse, and the tree, which can, takes over. Damaged files are errors.
//!
//! # What it leaves out
//!
//! Insertion and deletion; compression; key types wider than 128 bits other than byte strings; more than 2^31 keys in the fastest layout.
//!
//! Without the default feature `std` the crate needs only `alloc`: no huge pages, files or threads, and vector kernels only where the build enables them.
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

mod column;
mod error;
mod file;
mod index;
mod kernel;
mod key;
mod layout;
mod line;
mod map;
mod memory;
pub mod paper;
mod parallel;
mod plan;
#[cfg(feature = "std")]
pub mod race;
pub mod reference;
pub mod sample;
mod scale;
mod strings;

pub use error::Error;
#[cfg(feature = "std")]
pub use file::inspect_file;
pub use file::{Inspection, VERSION};
pub use index::{Index, Iter};
pub use kernel::{Isa, KERNELS};
pub use key::{Key, KeyType, KEY_TYPES};
pub use layout::{Description, Layout, LAYOUTS};
pub use line::LINE_BYTES;
pub use map::Map;
pub use plan::Options;
pub use strings::BytesIndex;
