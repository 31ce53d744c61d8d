//! Runs any unmodified x86-64 Linux program under instrumentation: a modern ATOM (Srivastava and Eustace 1994).
//!
//! The host launches the program under ptrace, translates its code block by block into a cache that both share, and lets it run there.
//! The program holds nothing of ours but generated code: counters are incremented in line, references are appended to a ring
//! that another thread of the host analyses while the program runs on. Its stack, heap, libraries and addresses are those of an
//! uninstrumented run.
//!
//! Reading order: [`run`] starts and ends a run; `translate` cuts code into superblocks; `emit` turns them into code; `cache` links
//! them; `host` answers their stops, `signal` and `system_call` the special ones; `image` adds up what was counted.
//! [`profile`] is what comes out; [`tool`] is how to ask for more.

mod affinity;
mod assemble;
mod breakpoint;
mod cache;
mod decode;
mod emit;
mod error;
mod executable;
mod heat;
mod host;
mod image;
mod inject;
mod interrupt;
mod layout;
mod liveness;
mod masking;
mod memory;
mod modules;
pub mod probe;
mod process;
pub mod profile;
mod ptrace;
pub mod reference;
mod references;
mod ring;
mod run;
mod signal;
mod store;
mod system_call;
pub mod tool;
pub mod tools;
mod translate;

pub use error::{Error, ErrorKind};
pub use executable::locate;
pub use profile::{Block, Instruction, Module, Profile, Site};
pub use run::{
    run, Aslr, Children, Command, ComplexCounts, Effort, Exit, Observer, Options, Outcome, Process, Progress,
    Thread, Threads, Unobserved,
};
