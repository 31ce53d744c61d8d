//! Static search trees: sorted keys that are searched often and never change.
//!
//! Given sorted keys, the crate plans a [`Layout`], chooses a kernel for the machine, and answers
//! ranks: how many keys are less than a query.
//!
//! ```
//! let keys: Vec<u32> = (0..100_000).map(|i| i * 7).collect();
//! let index = lightfoot_search::Index::build(&keys)?;
//! assert_eq!(index.lower_bound(21), 3);
//!
//! let mut ranks = vec![0; 4];
//! index.batch(&[0, 1, 70, u32::MAX], &mut ranks);
//! assert_eq!(ranks, [0, 1, 10, 100_000]);
//!
//! println!("{}", index.explain());
//! # Ok::<(), lightfoot_search::Error>(())
//! ```
//!
//! # Which call
//!
//! | you have | you want | call | cost |
//! |---|---|---|---|
//! | sorted keys | an index | [`Index::build`] | 1 to 2 ns a key (in caches) |
//! | any keys | an index | [`Index::build_unsorted`], [`Index::build_parallel`] | a sort more |
//! | a query | its position | [`Index::lower_bound`], [`Index::equal_range`] | one line of memory |
//! | many queries | positions | [`Index::batch`], [`Index::batch_parallel`] | a tenth of that |
//! | bounds | the keys between | [`Index::range`], [`Index::range_ranks`] | two queries |
//! | values beside keys | look-ups, a file | [`Map`], [`Map::save`] | a query and the value's line |
//! | two indexes | the keys of both | [`Index::intersection`] | a batch of the smaller one's keys |
//! | keys that keep coming | ranks while they are added | [`GrowingIndex`] | up to four queries |
//! | byte strings | ranks and prefixes | [`BytesIndex`] | a query, and ties by binary search |
//! | an index | a file | [`Index::save`], [`Index::open`] | one pass that checks it |
//!
//! A query reads one line of memory where keys are evenly spread, one behind small tables where
//! they are evenly spread piece by piece, else one per level of a 17-ary (64-bit keys: 9-ary) tree.
//! A batch reads the same lines, but their misses overlap. An index never changes: [`GrowingIndex`]
//! builds others beside it. It is `Send` and `Sync`, and a clone shares its memory.
//!
//! # How fast
//!
//! Nanoseconds per query on evenly spread `u32` keys, in batches / where each query waits for the
//! last answer, one thread of a virtual machine with AVX-512 on 2026-11-21
//! (`lightfoot study search-trees`; the record is in the repository's `results`):
//!
//! | keys' bytes | this crate | `partition_point` | one random line |
//! |---|---:|---:|---:|
//! | 16 KiB | 2.5 / 8.6 | 12.7 / 28 | 1.5 / 1.7 |
//! | 256 KiB | 1.6 / 12.9 | 24.4 / 62 | 1.2 / 4.7 |
//! | 1 MiB | 2.1 / 22.2 | 36.7 / 94 | 1.2 / 7.6 |
//! | 4 MiB | 2.4 / 45.6 | 94.5 / 249 | 3.7 / 63 |
//!
//! `partition_point` is enough where fewer queries follow than there are keys (building reads each
//! key once), and where keys change.
//!
//! # What it promises
//!
//! The full range of every key type, duplicates, any number of keys and queries; answers are
//! positions. The lines that one query reads are bounded by construction for all keys: layouts that
//! cannot keep their bound refuse, and the tree, which can, takes over. Damaged files are errors,
//! and a forged one is refused or answers positions within its bounds.
//!
//! # What it leaves out
//!
//! Deletion; compression; key types wider than 128 bits other than byte strings; more than 2^31
//! keys in the fastest layout.
//!
//! # How to read it
//!
//! ```text
//! sorted keys -> plan -> layout -> kernel -> ranks
//! ```
//!
//! Any key type becomes ordered unsigned lanes (`lane`), tuples by way of a `coded` integer. `plan`
//! picks a [`Layout`] by type, number and spread; `kernel` says how a line is compared on each
//! instruction set; `choose` joins the two. One line of memory (64 bytes) is the unit of
//! everything: a layout is a slice of lines, a kernel compares one line, a file is the lines behind
//! a header. [`LAYOUTS`] and [`KERNELS`] list the families; [`reference`](mod@reference) is the
//! slow twin, and `tests/agree.rs` holds every layout on every kernel for every key type against
//! it. [`paper`] has the six algorithms of the paper that started this, for the studies.
//!
//! # Features and platforms
//!
//! The default feature `std` brings huge pages, files, threads, and the detection of instruction
//! sets at run time. Without it the crate needs only `alloc`, and vector kernels exist only where
//! the build enables them. Kernels: AVX-512 and AVX2 on x86-64, NEON on AArch64, plain Rust
//! elsewhere; huge pages on Linux; files are little endian. The peers of the race are development
//! dependencies and reach no user.
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;
// The agreement runner names the crate as its users do.
#[cfg(test)]
extern crate self as lightfoot_search;

#[cfg(all(test, feature = "std"))]
mod agree;
mod choose;
mod coded;
mod column;
mod copies;
mod cut;
mod error;
mod file;
#[cfg(test)]
mod forged;
mod format;
#[cfg(feature = "std")]
mod growing;
mod index;
mod intersection;
mod kernel;
mod key;
mod lane;
mod layout;
mod line;
mod map;
mod memory;
pub mod paper;
mod parallel;
mod plan;
#[cfg(feature = "std")]
pub mod race;
mod reason;
pub mod reference;
pub mod sample;
mod scale;
mod simd;
mod strings;
mod value;

pub use coded::Field;
pub use error::Error;
#[cfg(feature = "std")]
pub use file::inspect_file;
pub use file::Inspection;
pub use format::{KeyType, TupleType, KEY_TYPES, VERSION};
#[cfg(feature = "std")]
pub use growing::{GrowingIndex, Reader, Snapshot};
pub use index::{Index, Iter};
pub use kernel::{Isa, KERNELS};
pub use key::Key;
pub use layout::{Description, Layout, LAYOUTS};
pub use line::LINE_BYTES;
pub use map::Map;
pub use plan::Options;
pub use strings::BytesIndex;
pub use value::Value;
