//! Numbers of tasks as the program sees them.
//!
//! The first process of a run and its threads get numbers that are equal in every run. These are
//! larger than any number of the system, so an argument tells which kind it is, and both are
//! understood. **Leaves out** processes that the program starts, whose numbers are the system's;
//! groups and sessions; and the details of signals.

use super::open::Open;
use crate::host::state::Host;
use crate::host::system_call::NOP_BYTES;
use crate::host::task::StepOutcome;
use crate::image::number;
use crate::target::ptrace::{self, Registers};
use crate::target::signal_mask;

/// The number of the first process. The system's numbers are below 2²².
pub(super) const FIRST: i32 = 4_200_000;
/// The number of the process that started the first one.
const OUTSIDE: i32 = FIRST - 1;

impl Host<'_> {
    /// The number of the task, of its process or of its parent, if it is shown another one.
    pub(super) fn shown_number(&mut self, tid: i32, call: u64) -> Option<i64> {
        let process = self.threads[&tid].process;
        let number = match call {
            _ if process != self.root => {
                self.shown.leave_open(Open::Processes);
                let parents = call == number::GETPPID && self.is_child_of_root(process);
                return parents.then_some(FIRST.into());
            }
            number::GETPID => FIRST,
            number::GETPPID => OUTSIDE,
            _ => self.shown.numbers.iter().position(|&own| own == tid)? as i32 + FIRST,
        };
        Some(number.into())
    }

    fn is_child_of_root(&self, process: i32) -> bool {
        let parent = self.living.get(&process).and_then(|living| self.processes[living.index()].parent);
        parent == Some(0)
    }

    /// The system's number for a number that the program was shown.
    pub(super) fn real_number(&self, word: u64) -> Option<u64> {
        let number = word as i32;
        if number == OUTSIDE {
            return Some(std::process::id().into());
        }
        let index = usize::try_from(number.checked_sub(FIRST)?).ok()?;
        self.shown.numbers.get(index).map(|&tid| tid as u64)
    }

    /// Makes a system call that takes numbers of tasks which the program was shown; returns whether
    /// it is one.
    pub(crate) fn takes_shown_numbers(&mut self, tid: i32, registers: &Registers) -> bool {
        if !self.shown.repeats() {
            return false;
        }
        let (first, second) = match registers.rax & 0xffff_ffff {
            number::TGKILL | number::TGSIGQUEUEINFO | number::SETPGID => (true, true),
            number::GETPRIORITY | number::SETPRIORITY => (false, true),
            call => (number::OF_TASKS.contains(&call), false),
        };
        let real = |is_number: bool, word: u64| if is_number { self.real_number(word) } else { None };
        let (rdi, rsi) = (real(first, registers.rdi), real(second, registers.rsi));
        if rdi.or(rsi).is_none() {
            return false;
        }
        let made = Registers {
            rip: registers.rip + NOP_BYTES,
            rdi: rdi.unwrap_or(registers.rdi),
            rsi: rsi.unwrap_or(registers.rsi),
            ..*registers
        };
        if registers.rax & 0xffff_ffff == number::SET_AFFINITY {
            self.spread();
        }
        self.make_instead(tid, registers, &made);
        true
    }

    /// Makes a system call that does not wait, with other registers; afterwards its arguments are
    /// the program's again.
    pub(super) fn make_instead(&mut self, tid: i32, registers: &Registers, made: &Registers) {
        ptrace::set_registers(tid, made);
        let mask = signal_mask::block(tid);
        let stepped = self.step(tid, 0);
        if let Some(now) = ptrace::registers(tid) {
            let Registers { rdi, rsi, .. } = *registers;
            ptrace::set_registers(tid, &Registers { rdi, rsi, ..now });
        }
        signal_mask::unblock(tid, mask);
        match stepped {
            StepOutcome::Done => self.go_on(tid),
            other => self.not_made(tid, *registers, other),
        }
    }

    /// The system's path for one below `/proc` that names the first process by its shown number.
    pub(super) fn real_path(&self, path: &[u8]) -> Option<String> {
        let rest = path.strip_prefix(b"/proc/")?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = rest.split_at(digits);
        let number: u64 = std::str::from_utf8(number).ok()?.parse().ok()?;
        let real = self.real_number(number)?;
        Some(format!("/proc/{real}{}", std::str::from_utf8(rest).ok()?))
    }
}
