//! Plans: what a fragment records, and how. A plan is complete before code is emitted.
//!
//! `references` lists the memory references of an instruction. `liveness` finds the registers and
//! flags that are free at each instruction. `hotness` chooses how each reference is recorded.
//! `block` combines these into the plan of a fragment. `emit` reads the plan; no code changes it
//! afterwards.

pub(crate) mod block;
pub(crate) mod group;
pub(crate) mod hotness;
pub(crate) mod instruction_cache;
pub(crate) mod liveness;
pub(crate) mod masking;
pub(crate) mod mode;
pub(crate) mod references;
pub(crate) mod string;
