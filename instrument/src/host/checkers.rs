//! The leak checkers of a run, and the threads that they have stopped.

use crate::target::memory;
use crate::target::ptrace;
use crate::target::ptrace::Registers;
use std::collections::{HashMap, HashSet};

/// The flags of a `clone` or `clone3` that asked for an untraced task, of a thread that stands
/// before the call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UntracedClone {
    /// The flags, with the one that was dropped.
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
    /// The checker has waited for the stop.
    pub(super) is_reported: bool,
}

/// The leak checkers of a run.
#[derive(Debug, Default)]
pub(crate) struct LeakChecks {
    pub(super) asked: HashMap<i32, UntracedClone>,
    pub(super) checkers: HashSet<i32>,
    pub(super) held: HashMap<i32, HeldThread>,
}

impl LeakChecks {
    /// Whether the task is a leak checker.
    pub(crate) fn has(&self, tid: i32) -> bool {
        self.checkers.contains(&tid)
    }

    /// The original request of a thread that has just made a task, if it asked for an untraced one.
    pub(crate) fn asked(&mut self, tid: i32) -> Option<UntracedClone> {
        self.asked.remove(&tid)
    }
}

impl UntracedClone {
    /// Puts the flags of a stopped task back.
    pub(crate) fn put_back(self, tid: i32) {
        if let Some(at) = self.at {
            memory::write_target(tid, at, &self.flags.to_le_bytes());
        } else if let Some(r) = ptrace::registers(tid) {
            ptrace::set_registers(tid, &Registers { rdi: self.flags, ..r });
        }
    }
}
