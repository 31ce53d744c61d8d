//! A run: the program under the engine, the observers of its records, and the attribution of
//! counts.
//!
//! A measurement passes through this folder in one direction. [`named`] finds the machine that an
//! option names, and [`hierarchy`] turns it into simulated levels. [`engine`] is the only module
//! that calls `instrument`. While the program runs, [`observe`] receives its records,
//! [`simulation`] simulates them, [`distances`] measures reuse, and [`block_order`] follows calls,
//! regions and branches. [`images`] notes what each process counted when it ends. Then [`tally`]
//! turns the profile into counts per function, library, line and opcode, [`calls`] into counts of
//! contexts, crate `cycles` into estimated cycles, and [`estimate`] into the sum of declared costs.
//! [`sections`] divides a run at its marks, and lets the crate [`call_graph`] follow its calls.
//! [`complex`] has the references that only records count, and [`native`] times the program
//! without all of this.

pub mod block_order;
pub mod calls;
pub mod complex;
pub mod distances;
pub mod engine;
pub mod estimate;
pub mod hierarchy;
pub mod images;
pub mod named;
pub mod native;
pub mod observe;
pub mod region_marker;
pub mod sections;
pub mod simulation;
pub mod tally;
