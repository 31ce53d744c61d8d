//! What the studies race and measure. The studies are compiled for size, this for speed.
//!
//! | you want | call |
//! |---|---|
//! | variants of small kernels, each with data of its own | [`variants`] |
//! | today's indexes raced over keys of one size | [`race_indexes`] |
//!
//! ```
//! let sort = lightfoot_contenders::variants().into_iter().find(|variant| variant.family() == "sort");
//! let mut pass = sort.expect("there are sorts").prepare();
//! assert_eq!(pass(), pass(), "each pass does the same work");
//! ```
//!
//! **Leaves out** how often something runs, what is said about it, and the paper's own algorithms
//! (`search::paper`).

#![forbid(unsafe_code)]

mod index;
mod kernel;
#[cfg(feature = "race")]
mod peer;

pub use index::{race_indexes, IndexFigures, RaceSettings};
pub use kernel::{variants, Pass, Variant};
