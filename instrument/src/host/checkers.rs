//! The leak checkers of a run, and the threads that they have stopped.

use crate::target::memory;
use crate::target::ptrace;
use crate::target::ptrace::Registers;
use std::collections::{HashMap, HashSet};

/// The flags of a thread that stands before a `clone` or `clone3` for an untraced task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UntracedClone {
    /// The flags, including `CLONE_UNTRACED`, which the host drops for the call.
    pub(super) flags: u64,
    /// Their address in memory (`clone3`), or `None` if they are in a register (`clone`).
    pub(super) at: Option<u64>,
}

/// A thread that a checker has stopped.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldThread {
    pub(super) checker: i32,
    /// The signal of the stop.
    pub(super) signal: i32,
    /// Whether the stop was reported to the checker, by its `wait4`.
    pub(super) is_reported: bool,
}

/// The leak checkers of a run.
#[derive(Debug, Default)]
pub(crate) struct LeakChecks {
    /// Threads that stand in a `clone` for an untraced task.
    pub(super) asked: HashMap<i32, UntracedClone>,
    /// The tasks that are leak checkers.
    pub(super) checkers: HashSet<i32>,
    /// Threads that a checker has stopped.
    pub(super) held: HashMap<i32, HeldThread>,
}

impl LeakChecks {
    /// Whether the task is a leak checker.
    pub(crate) fn has(&self, tid: i32) -> bool {
        self.checkers.contains(&tid)
    }

    /// Takes the original flags of a thread that has just made a task, if it asked for an untraced
    /// one.
    pub(crate) fn asked(&mut self, tid: i32) -> Option<UntracedClone> {
        self.asked.remove(&tid)
    }
}

impl UntracedClone {
    /// Writes the flags back to where the stopped task has them.
    pub(crate) fn put_back(self, tid: i32) {
        if let Some(at) = self.at {
            memory::write_target(tid, at, &self.flags.to_le_bytes());
        } else if let Some(registers) = ptrace::registers(tid) {
            ptrace::set_registers(tid, &Registers { rdi: self.flags, ..registers });
        }
    }
}
