//! Runs any unmodified x86-64 Linux program under instrumentation: a modern ATOM (Srivastava and
//! Eustace 1994).
//!
//! The host launches the program under ptrace, translates its code block by block into a cache that
//! both share, and lets it run there. Only generated code and its data are added to the program:
//! the code increments counters in line and appends references to a ring, which another thread of
//! the host analyses while the program runs on. Its stack, heap, libraries and addresses are those
//! of an uninstrumented run.
//!
//! Reading order, from the top: [`run`](crate::run()) starts and ends a run; `host` waits for the
//! program's stops and answers them; `image` is one address space under the engine, and adds up
//! what was counted. `translate` takes code through its stages: decode, facts, plan, emit, place;
//! `plan` decides what is recorded and how, `emit` turns that into code with open ends, `cache`
//! places it and closes them. `code` has the types of machine code, `target` those of the program's
//! processes. `store` keeps translations on disk. A run returns a [`profile`]; a [`tool`] can ask
//! for more.

mod address_map;
mod cache;
pub mod call;
mod code;
mod emit;
mod error;
mod evidence;
mod host;
mod image;
mod instrumentation;
pub mod mark;
mod outcome;
mod plan;
pub mod probe;
pub mod profile;
pub mod reference;
mod room;
mod run;
mod store;
mod target;
pub mod tool;
pub mod tools;
mod translate;
pub mod virtual_machine;

pub use call::CallRecords;
pub use error::{Error, ErrorKind};
pub use outcome::{
    Aslr, Children, Command, ComplexCounts, EndedImage, EngineStats, Exit, Fork, Observer, Options, Outcome,
    Process, Progress, Running, Standstill, Thread, Threads, TurnStart, Unobserved,
};
pub use profile::{Block, Instruction, Module, Numbering, Profile, Site};
pub use run::{run, run_marked};
pub use target::allocator::keep_freed_memory;
pub use target::executable::locate;
pub use target::interrupt::{interrupts, EndRequests};
