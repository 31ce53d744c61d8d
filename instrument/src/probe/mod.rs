//! Probe mode: the program runs natively, and chosen functions count their calls.
//!
//! **What.** The first five bytes of a function become a jump to a trampoline near its module: it
//! increments a counter, runs the instructions that stood there (`prologue`) and goes back. A
//! function that cannot be patched safely is left alone and named with the [`ProbeRefusal`]
//! (`sweep` looks for jumps into those bytes). **Counters** lie in memory that host and program
//! share, at a fixed low address, so that one instruction reaches them and nothing in the program
//! needs a register; they survive whatever the program closes or unmaps elsewhere. No call is lost:
//! each thread, and each child, has a block of counters of its own (`birth`), and where that cannot
//! be had, increments of a common block are locked (`patch`). A reader adds the blocks up.
//!
//! **Without a tracer.** The program is stopped once, right after exec, and let go. Libraries that
//! arrive later announce themselves in the dynamic linker's `_dl_debug_state`, whose probe knocks
//! at a mailbox (`mailbox`) and waits while the host patches. The same patches run under the
//! engine, where probes cost what they cost in a simulated machine
//! ([`run_probed`](crate::tool::run_probed)).
//!
//! **Children.** A forked child keeps patches, and counts into the same sums. What a process
//! executes instead of itself is announced in the same way, and patched behind its exec (`follow`).
//! **Leaves out** functions that have no symbol, everything that is no entry of a function, and
//! programs that are executed by system calls outside the C library.

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
