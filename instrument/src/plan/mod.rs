//! What a fragment records, and how: decided before anything is emitted.
//!
//! `references` says what an instruction touches, `liveness` which registers and flags are free
//! where, `hotness` which references are better recorded without a check; `block` makes a plan of
//! it. A plan is read by `emit` and changed by nobody afterwards.

pub(crate) mod block;
pub(crate) mod group;
pub(crate) mod hotness;
pub(crate) mod instruction_cache;
pub(crate) mod liveness;
pub(crate) mod masking;
pub(crate) mod mode;
pub(crate) mod references;
pub(crate) mod string;
