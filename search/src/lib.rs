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
