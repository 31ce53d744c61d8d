//! The command `lightfoot`: the only crate that knows everyone.
//!
//! `main` parses ([`cli`]), a [`command`] runs, a [`report`] comes out. Between them: [`engine`] is the one place that calls
//! `instrument`, [`observe`] listens while the program runs, [`hierarchy`] turns a machine into what is simulated, [`simulation`] does it, [`course`] follows calls, regions and branches, [`symbol`] turns addresses into names, [`tally`] turns a profile into counts per function, library and opcode, and
//! [`study`] races the commands against their peers. Everything here is control plane: it runs once per measurement, so it is written to be
//! read; what must be fast is in the crates below.
//!
//! It is a library so that tests and later commands can use the parts; it promises nothing to other crates.

#![forbid(unsafe_code)]

pub mod calls;
pub mod cli;
pub mod command;
pub mod course;
pub mod distances;
pub mod engine;
pub mod estimate;
pub mod exit;
pub mod hierarchy;
pub mod native;
pub mod observe;
pub mod progress;
pub mod report;
pub mod simulation;
pub mod study;
pub mod symbol;
pub mod tally;
pub mod tiling;
pub mod trace;
