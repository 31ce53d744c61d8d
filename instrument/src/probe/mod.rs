//! Probe mode: the program runs natively, and chosen functions count their calls.
//!
//! **What.** The first five bytes of a function become a jump to a trampoline near its module:
//!
//! ```text
//!   function                              trampoline
//!   jmp trampoline ─────────────────────▶ inc qword gs:[counter]
//!   next instruction ◀──────────────┐     the instructions that stood at the entry (`prologue`)
//!   ...                             └──── jmp next instruction
//! ```
//!
//! A function that cannot be patched safely is left as it is and reported with the [`ProbeRefusal`]
//! (`sweep` finds jumps into those bytes). **Counters** lie in memory that host and program share,
//! at a fixed low address, so that one instruction without a register reaches them; they survive
//! everything that the program closes or unmaps elsewhere. No call is lost: each thread, and each
//! child, has a block of counters of its own (`birth`). If that is impossible, all threads
//! increment a common block, with a `lock` prefix (`patch`). A reader adds up the blocks.
//!
//! **Without a tracer.** The program is stopped once, right after its exec, patched, and detached.
//! When the dynamic linker loads a library later, it calls `_dl_debug_state`, whose probe sends a
//! request through a mailbox (`mailbox`) and waits while the host patches the library. The same
//! patches also run under the engine, which simulates what probes cost in a given machine
//! ([`run_probed`](crate::tool::run_probed)).
//!
//! **Children.** A forked child keeps the patches and counts into the same sums. A process that
//! executes another program sends a request first, and the new program is patched behind its exec
//! (`follow`). **Leaves out** functions without a symbol, places within functions, and programs
//! that are executed by system calls outside the C library.

mod birth;
mod caller;
mod follow;
mod image;
mod install;
mod mailbox;
mod native;
mod patch;
mod placement;
mod plan;
mod prologue;
mod sweep;
mod tick;

pub use install::ProbeCounters;
pub use native::{launch, Ended, Held, Running};
pub use patch::ProbeState;
pub use placement::Placement;
pub use plan::{Finder, ModuleInfo, ProbePlan, ProbeRefusal, ProbeRequest};
pub use tick::{Ticks, WORDS_MAX};

pub(crate) use install::{Probes, SharedProbes};
