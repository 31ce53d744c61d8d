//! What the host knows about a thread and a process, and the outcomes of stepping a thread.

use crate::target::ptrace::{SignalInfo, Wait};
use crate::target::trap;
use std::collections::VecDeque;

/// A thread of the program.
pub(crate) struct ProgramThread {
    pub(crate) context: usize,
    /// The thread's number; threads are numbered over the whole run.
    pub(crate) number: u32,
    /// The process that the thread belongs to.
    pub(crate) process: i32,
    /// The image that the thread runs in; a `vfork`ed child runs in its parent's.
    pub(crate) image: u32,
    /// Whether the program has blocked SIGTRAP in this thread.
    pub(crate) blocks_trap: bool,
    /// Whether the host hides from the kernel that the program has blocked SIGTRAP.
    pub(crate) hides_trap: bool,
    /// Signals that the host holds back until the thread can take them.
    pub(crate) held: VecDeque<Signal>,
    /// The target of a jump into the engine's own code. Natively nothing is mapped there, so the
    /// thread will fault at this address.
    pub(crate) astray: Option<u64>,
}

/// A process that has not ended.
pub(crate) struct ProcessState {
    /// The process's index in the run's list of processes.
    pub(super) index: usize,
    /// Signals with handlers, as last read.
    pub(crate) caught: Option<u64>,
    /// Signals that are ignored, as last read.
    pub(crate) ignored: u64,
    /// Signals whose handlers are reset by their first delivery (`SA_RESETHAND`).
    pub(crate) reset: u64,
    /// Whether it or its maker has set a filter of system calls.
    pub(crate) filters_calls: bool,
    /// The program's own action for SIGTRAP.
    pub(crate) trap: trap::TrapAction,
}

impl ProcessState {
    pub(crate) fn index(&self) -> usize {
        self.index
    }
}

/// Offset of the fault's address in a signal's details.
pub(crate) const FAULT_ADDRESS: usize = 16;

/// A signal with its details.
pub(crate) type Signal = (i32, SignalInfo);

/// Outcome of bringing a thread to a boundary.
pub(crate) enum Boundary {
    Reached,
    /// An instruction faulted on the way.
    Fault(Signal),
    /// There is no boundary: generated code faulted where it executes no instruction of the
    /// program.
    Lost,
    /// The thread ended or stopped on the way.
    Other(Wait),
    Gone,
}

/// Outcome of one step.
pub(crate) enum StepOutcome {
    Done,
    /// A signal arrived before the step.
    Signal(Signal),
    /// The thread ended, or stops with its group.
    Other(Wait),
    Gone,
}
