//! A run: the program under the engine, what listens meanwhile, and whose all that was counted is.
//!
//! A measurement goes one way through this folder. [`hierarchy`] turns a machine into what is
//! simulated; [`engine`] is the one place that calls `instrument`; while the program runs,
//! [`observe`] listens, [`simulation`] simulates it, [`distances`] measures reuse, and
//! [`block_order`] follows calls, regions and branches. After it [`tally`] turns the profile into
//! counts per function, library, line and opcode, [`calls`] into those of contexts, and
//! [`estimate`] into cycles. [`native`] times the program without all of this.

pub mod block_order;
pub mod calls;
pub mod distances;
pub mod engine;
pub mod estimate;
pub mod hierarchy;
pub mod native;
pub mod observe;
pub mod simulation;
pub mod tally;
