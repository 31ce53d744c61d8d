//! Threads and processes as the host knows them, and what may come of stepping one.

use crate::target::ptrace::{SignalInfo, Wait};
use crate::target::trap;
use std::collections::VecDeque;

/// A thread of the program.
pub(crate) struct ProgramThread {
    pub(crate) context: usize,
    /// Running number over the whole run.
    pub(crate) number: u32,
    /// Process that it belongs to.
    pub(crate) process: i32,
    /// Image that it runs in, which may be its process' parent's.
    pub(crate) image: u32,
    /// Whether it blocks SIGTRAP, and whether the kernel is not told so.
    pub(crate) blocks_trap: bool,
    pub(crate) hides_trap: bool,
    /// Signals that it takes as soon as it can.
    pub(crate) held: VecDeque<Signal>,
    /// Where the program sent it and natively nothing is: it faults there.
    pub(crate) astray: Option<u64>,
}

/// A process that has not ended.
pub(crate) struct ProcessState {
    /// Its index in the run's processes.
    pub(super) index: usize,
    /// Signals with handlers, as last read.
    pub(crate) caught: Option<u64>,
    /// Signals that are ignored, as last read.
    pub(crate) ignored: u64,
    /// Signals whose handlers are for one signal only.
    pub(crate) reset: u64,
    /// What it wants done with SIGTRAP.
    pub(crate) trap: trap::TrapAction,
}

impl ProcessState {
    pub(crate) fn index(&self) -> usize {
        self.index
    }
}

/// Where a signal's details hold the address that an instruction could not reach.
pub(crate) const FAULT_ADDRESS: usize = 16;

/// A signal with its details.
pub(crate) type Signal = (i32, SignalInfo);

/// Outcome of bringing a thread to a boundary.
pub(crate) enum Boundary {
    Reached,
    /// An instruction faulted on the way.
    Fault(Signal),
    /// There is none: generated code faulted where no instruction of the program is.
    Lost,
    /// It ended or stopped on the way.
    Other(Wait),
    Gone,
}

/// Outcome of one step.
pub(crate) enum StepOutcome {
    Done,
    /// A signal came instead.
    Signal(Signal),
    /// The thread ended, or stops with its group.
    Other(Wait),
    Gone,
}
