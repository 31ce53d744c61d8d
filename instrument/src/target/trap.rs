//! The state of SIGTRAP in the kernel: a process's action for the signal, and the state that a
//! program inherits.
//!
//! The kernel forces the signal of a breakpoint or a single step, and resets the program's action
//! for it. These types hold the state that must be restored; `host/trap.rs` decides when. **Leaves
//! out** the delivery of signals.

use super::inject::Injector;
use super::memory;
use super::ptrace::{self, SignalInfo};
use crate::error::Error;

/// The bit of SIGTRAP in masks.
pub(crate) const TRAP: u64 = 1 << (libc::SIGTRAP - 1);
/// The code of a SIGTRAP that reports a completed step.
const TRAP_TRACE: i32 = 2;
/// Bytes of a set of signals.
pub(crate) const MASK_BYTES: u64 = 8;

/// A process's action for SIGTRAP: the kernel's `struct sigaction`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TrapAction {
    pub(crate) words: [u64; 4],
    /// Whether a stop of the engine may have reset the action in the kernel.
    pub(crate) lost: bool,
}

impl TrapAction {
    const IGNORED: TrapAction = TrapAction { words: [libc::SIG_IGN as u64, 0, 0, 0], lost: true };

    pub(crate) fn is_default(&self) -> bool {
        self.words[0] == libc::SIG_DFL as u64
    }

    pub(crate) fn is_ignored(&self) -> bool {
        self.words[0] == libc::SIG_IGN as u64
    }

    /// Whether there is a handler.
    pub(crate) fn is_caught(&self) -> bool {
        !self.is_default() && !self.is_ignored()
    }

    /// The action after an exec, which removes handlers.
    pub(crate) fn behind_exec(self) -> TrapAction {
        if self.is_ignored() {
            TrapAction::IGNORED
        } else {
            TrapAction::default()
        }
    }

    pub(crate) fn must_be_put_back(&self) -> bool {
        self.is_ignored() || self.is_caught() && self.lost
    }

    fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// The state of SIGTRAP that a program inherits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inherited {
    blocked: bool,
    ignored: bool,
}

impl Inherited {
    /// Reads the state of a process that stands in its exec and was not stepped yet.
    pub(crate) fn of(pid: i32) -> Inherited {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let field = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = field.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
        Inherited { blocked: ptrace::signal_mask(pid) & TRAP != 0, ignored: ignored & TRAP != 0 }
    }

    /// The process's action that this state implies.
    pub(crate) fn action(self) -> TrapAction {
        if self.ignored {
            TrapAction::IGNORED
        } else {
            TrapAction::default()
        }
    }

    /// Restores the state in a process that was stepped and is about to run on by itself.
    pub(crate) fn give_back(self, pid: i32) -> Result<(), Error> {
        if self.ignored {
            let mut injector = Injector::new(pid)?;
            let at = injector.scratch();
            let mut former = vec![0; TrapAction::IGNORED.bytes().len()];
            memory::read_target(pid, at, &mut former);
            set_action(&mut injector, at, &TrapAction::IGNORED);
            memory::write_target(pid, at, &former);
            injector.finish_exactly();
        }
        if self.blocked {
            ptrace::set_signal_mask(pid, ptrace::signal_mask(pid) | TRAP);
        }
        Ok(())
    }
}

/// Sets the action of a stopped process; overwrites the process's memory at `at` with it. An
/// ignored SIGTRAP must be set without steps, because a step would reset it.
pub(crate) fn set_action(injector: &mut Injector, at: u64, action: &TrapAction) {
    memory::write_target(injector.tid(), at, &action.bytes());
    let arguments = [libc::SIGTRAP as u64, at, 0, MASK_BYTES, 0, 0];
    if action.is_ignored() {
        injector.call_without_steps(libc::SYS_rt_sigaction, arguments);
    } else {
        injector.call(libc::SYS_rt_sigaction, arguments);
    }
}

/// The code of a signal, which says where it comes from: the kernel (above 0) or a process.
pub(crate) fn code(info: &SignalInfo) -> i32 {
    i32::from_le_bytes([info[8], info[9], info[10], info[11]])
}

/// Whether the signal reports a single step, and not an instruction that traps.
pub(crate) fn is_step(signal: i32, info: &SignalInfo) -> bool {
    signal == libc::SIGTRAP && code(info) == TRAP_TRACE
}
