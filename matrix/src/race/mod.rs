//! The race compares this library, other crates, and the BLAS libraries of the machine, on the same
//! numbers in the same pass.
//!
//! **What.** [`contestants`] returns all contestants as closures. A [`Contest`] runs them in
//! interleaved passes, each of which begins with another contestant. It samples the FMA peak beside
//! every run, and returns medians, quartiles and paired ratios. **Why this way.** The clock of a
//! core with wide vectors changes by a fifth within seconds: only neighbouring runs can be
//! compared, and a share of "peak" refers to the peak that was sampled beside the run. **Leaves
//! out** several threads for peers that have pools of their own.
//!
//! It needs feature `race`; other crates take part with feature `peers`. Libraries are found at run
//! time.

mod contest;
#[cfg(feature = "peers")]
mod crates;
/// The empty list of crates of a build without feature `peers`.
#[cfg(not(feature = "peers"))]
mod crates {
    use super::peer::Crate;

    pub(super) const F32: &[Crate<f32>] = &[];
    pub(super) const F64: &[Crate<f64>] = &[];
}
mod dynamic;
#[cfg(feature = "peers")]
mod factor_crate;
mod factorization;
mod lapack;
mod operation;
mod peak;
mod peer;
mod registry;

pub use contest::{Contest, Run};
pub use factorization::factorizations;
pub use lapack::Lapack;
pub use operation::Operation;
pub use peak::f64_gflops;
pub use peer::{Crate, Threads};
pub use registry::{contestants, tiled, Number};
