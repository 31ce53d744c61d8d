//! Coherent private caches of a program's threads: which misses come from other threads' writes.
//!
//! The engine runs the threads of a program in turns and records every reference. A thread of the
//! host interleaves them ([`CoherenceTool`]) and feeds caches that are kept coherent by MESI
//! ([`CoherentCaches`]): each thread has a core, or shares it with others, each core has private
//! levels, and a directory at the shared level knows who holds a line. Misses are told apart by
//! their cause, and those that another core's write caused by the bytes that were touched: true and
//! false sharing. Both sides are named: the instruction that missed, and the one whose write took
//! the line.
//!
//! ```
//! use lightfoot_coherence::{Access, CoherentCaches, PrivateLevels};
//! use simulate::Geometry;
//!
//! let first = Geometry::cache(32 << 10, 8, 64);
//! let mut caches = CoherentCaches::new(PrivateLevels { first, second: None });
//! // Two cores count in neighbouring words of eight bytes.
//! for _ in 0..10 {
//!     caches.access(0, 0x1000, 8, Access::Modify, 1);
//!     caches.access(1, 0x1008, 8, Access::Modify, 2);
//! }
//! let results = caches.finish();
//! assert_eq!(results.total.false_sharing, 18);
//! assert_eq!((results.pairs[0].missed, results.pairs[0].took), (1, 2));
//! ```

#![forbid(unsafe_code)]

mod ask;
mod associative;
mod caches;
mod copies;
mod counts;
mod directory;
#[cfg(test)]
mod naive;
mod objects;
mod placement;
mod rounds;
#[cfg(test)]
mod tests;
mod tool;
mod turn;
mod ways;

pub use caches::{Access, CoherentCaches, PrivateLevels};
pub use counts::{Counts, LineCounts, Pair, Results, SharedLine, SiteCounts, Touched};
pub use objects::HeapBlock;
pub use tool::{CoherenceProfile, CoherenceTool};
