//! Plans: what a fragment records, and how, decided before it is emitted.
//!
//! `references` says what an instruction touches, `liveness` which registers and flags are free
//! where, `hotness` which references are better recorded without a check; `block` makes a plan of
//! it. `emit` reads a plan, and no code changes it afterwards.

pub(crate) mod block;
pub(crate) mod group;
pub(crate) mod hotness;
pub(crate) mod instruction_cache;
pub(crate) mod liveness;
pub(crate) mod masking;
pub(crate) mod mode;
pub(crate) mod references;
pub(crate) mod string;
