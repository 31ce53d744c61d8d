//! Runs any unmodified x86-64 Linux program under instrumentation. (Interface first; the engine follows.)

pub mod profile;
pub mod reference;
mod run;

pub use profile::{Block, Instruction, Module, Profile, Site};
pub use run::{Aslr, Command, Exit, Observer, Options, Outcome, Progress};
