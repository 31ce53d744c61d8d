//! Passes turn programs into programs that compute the same streams with less work.
//!
//! The builder shares common subexpressions and classes while a program is written. Here are the
//! passes over finished programs: [`without_dead_code`], [`with_ternaries`] (for machines whose
//! logic instructions have three operands) and [`for_ascii`] (the simpler program that suffices
//! where no byte has its high bit set).

mod ascii;
mod fuse;
pub(super) mod renumber;

pub use ascii::for_ascii;
pub use fuse::with_ternaries;
pub use renumber::without_dead_code;
pub(crate) use renumber::{bases, owns_carries, with_bases_first};
