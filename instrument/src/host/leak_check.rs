//! Leak checkers: tasks of the program that stop its threads by ptrace and read their registers.
//!
//! **What.** LeakSanitizer, which AddressSanitizer contains, looks for leaks when a program ends.
//! It makes a task that shares the program's memory and asks not to be traced (`CLONE_UNTRACED`).
//! The task attaches to each thread of the program, reads its registers, looks through memory, and
//! lets the threads go. **Why the host answers.** A thread has one tracer, which is the host, so
//! the kernel refuses the task's calls; and generated code cannot run without a tracer. So the host
//! drops the flag, the task runs like a thread of the program, and the host answers its `ptrace`
//! and `wait4` calls: a thread that the task attaches to is stopped before an instruction and stays
//! there until the task detaches. Its registers are shown as the program would have them. **Leaves
//! out** all other uses of ptrace, and writing to a thread: no leak checker does that. Source:
//! `sanitizer_stoptheworld_linux_libcdep.cpp` of LLVM 11 to 19 and of GCC 10 to 14.

use super::checkers::{HeldThread, UntracedClone};
use super::posts::Next;
use super::state::Host;
use super::task::StepOutcome;
use crate::target::memory;
use crate::target::ptrace;
use crate::target::ptrace::{Registers, Wait};
use crate::target::signal_mask;
use std::fs;

/// System calls that the host answers for a checker.
mod number {
    pub(super) const WAIT4: u64 = 61;
    pub(super) const PTRACE: u64 = 101;
    pub(super) const ALL: [u64; 2] = [WAIT4, PTRACE];
}

const UNTRACED: u64 = libc::CLONE_UNTRACED as u64;
/// The general registers as a set (`NT_PRSTATUS`).
const GENERAL: u64 = 1;
/// The most bytes of a register set.
const SET_BYTES_MAX: usize = 16 << 10;
/// The most steps to the next instruction of the program: more than any routine of generated code
/// has.
const STEPS_MAX: u32 = 100_000;

impl Host<'_> {
    /// Drops `CLONE_UNTRACED` from the flags of a thread that stands before `clone` or `clone3`.
    pub(crate) fn stays_traced(&mut self, tid: i32, registers: Registers) {
        let at = (registers.rax & 0xffff_ffff == libc::SYS_clone3 as u64).then_some(registers.rdi);
        let mut word = registers.rdi.to_le_bytes();
        // The flags are in a register (`clone`), or in the first word of a structure (`clone3`).
        if at.is_some_and(|at| memory::read_target(tid, at, &mut word) != word.len()) {
            return;
        }
        let flags = u64::from_le_bytes(word);
        if flags & UNTRACED == 0 {
            return;
        }
        UntracedClone { flags: flags & !UNTRACED, at }.put_back(tid);
        self.leak_checks.asked.insert(tid, UntracedClone { flags, at });
    }

    /// Notes a new task as a leak checker: it shares the memory of `image`, and its maker asked for
    /// an untraced task.
    pub(crate) fn begins_check(&mut self, tid: i32, image: u32) {
        self.leak_checks.checkers.insert(tid);
        self.image_of(image).stop_before(&number::ALL);
    }

    /// Answers a system call of a checker, if the call is `wait4` or `ptrace` and names a thread of
    /// the checker's image. Returns whether it did.
    pub(crate) fn answers_checker(&mut self, tid: i32, registers: &Registers) -> bool {
        if !self.leak_checks.has(tid) {
            return false;
        }
        // Calls that name no thread of the image are the kernel's to answer.
        let Some(other) = self.thread_named(tid, registers) else { return false };
        let result = match registers.rax & 0xffff_ffff {
            number::WAIT4 => self.waits(tid, other, registers),
            number::PTRACE => Some(self.traces_thread(tid, other, registers)),
            _ => None,
        };
        result.is_some_and(|result| {
            self.skip(tid, *registers, result);
            true
        })
    }

    /// The thread of the checker's image that a call names by its first or second argument.
    fn thread_named(&self, checker: i32, registers: &Registers) -> Option<i32> {
        let named =
            if registers.rax & 0xffff_ffff == number::PTRACE { registers.rsi } else { registers.rdi } as i32;
        let image = self.threads[&checker].image;
        // In a PID namespace the program knows its threads by other numbers.
        let is_named = |&tid: &i32| tid != checker && innermost_number(tid) == Some(named);
        let within = |tid: &i32| self.threads.get(tid).is_some_and(|thread| thread.image == image);
        Some(named)
            .filter(|tid| within(tid) && is_named(tid))
            .or_else(|| self.threads.keys().copied().filter(within).find(is_named))
    }

    /// The result of a checker's `wait4` for thread `other`; `None` if the kernel is to answer.
    /// Each stop is reported once.
    fn waits(&mut self, checker: i32, other: i32, registers: &Registers) -> Option<i64> {
        const STOPPED: u32 = (libc::SIGSTOP as u32) << 8 | 0x7f;
        let held = self.leak_checks.held.get_mut(&other)?;
        if held.checker != checker || std::mem::replace(&mut held.is_reported, true) {
            return None;
        }
        if registers.rsi != 0 && memory::write_target(checker, registers.rsi, &STOPPED.to_le_bytes()) != 4 {
            return Some(-i64::from(libc::EFAULT));
        }
        Some(i64::from(registers.rdi as i32))
    }

    /// Performs a checker's `ptrace` request for thread `other`; returns the call's result.
    fn traces_thread(&mut self, checker: i32, other: i32, registers: &Registers) -> i64 {
        let request = registers.rdi as u32;
        let is_held = self.leak_checks.held.get(&other).is_some_and(|held| held.checker == checker);
        match request {
            libc::PTRACE_ATTACH if !is_held => self.attaches(checker, other),
            libc::PTRACE_ATTACH => -i64::from(libc::EPERM),
            _ if !is_held => -i64::from(libc::ESRCH),
            libc::PTRACE_DETACH | libc::PTRACE_CONT => {
                self.let_go(other);
                0
            }
            libc::PTRACE_KILL => {
                ptrace::kill(other, libc::SIGKILL);
                0
            }
            libc::PTRACE_GETREGS => {
                let bytes = general_registers(&self.registers_of_program(other));
                written(checker, registers.r10, &bytes)
            }
            libc::PTRACE_GETREGSET => self.reads_set(checker, other, registers),
            _ => -i64::from(libc::EIO),
        }
    }

    /// Stops a thread before an instruction of the program, or in a system call.
    fn attaches(&mut self, checker: i32, other: i32) -> i64 {
        ptrace::interrupt(other);
        loop {
            // The host answers other tasks in the meantime, because the thread may wait for a child
            // that shares its memory.
            match self.next() {
                Next::Stopped(tid, Wait::Event(libc::PTRACE_EVENT_STOP, signal)) if tid == other => {
                    let held = HeldThread { checker, signal, is_reported: false };
                    self.leak_checks.held.insert(other, held);
                    break;
                }
                // The thread had stopped for another reason; the requested stop follows.
                Next::Stopped(tid, what) => self.stopped(tid, what),
                Next::Posted(tid) => self.answer_post(tid),
                Next::Interrupted => {}
                Next::Nothing => return -i64::from(libc::ESRCH),
            }
            if !self.threads.contains_key(&other) {
                return -i64::from(libc::ESRCH);
            }
        }
        self.settle(other);
        0
    }

    /// Steps a stopped thread to the start of an instruction's translation.
    fn settle(&mut self, tid: i32) {
        let mask = signal_mask::block(tid);
        self.answer_before_step(tid);
        for _ in 0..STEPS_MAX {
            let Some(registers) = ptrace::registers(tid) else { break };
            let cache = &self.image_mut(tid).translator.cache;
            // A thread in a system call of the program already stands at the end of an instruction.
            let in_call = registers.orig_rax as i64 >= 0 && !cache.posts(registers.rip);
            if in_call
                || !cache.contains(registers.rip)
                || cache.state_at(registers.rip).is_some_and(|(_, exact)| exact)
            {
                break;
            }
            match self.step_answered(tid) {
                StepOutcome::Done => {}
                StepOutcome::Signal(signal) => {
                    let thread = self.threads.get_mut(&tid).expect("a thread of ours");
                    thread.held.push_back(signal);
                }
                StepOutcome::Other(_) | StepOutcome::Gone => break,
            }
        }
        signal_mask::unblock(tid, mask);
    }

    /// The registers that a stopped thread would have natively.
    fn registers_of_program(&mut self, tid: i32) -> [u64; 27] {
        let context = self.threads[&tid].context;
        let Some(mut registers) = ptrace::registers(tid) else { return [0; 27] };
        // In generated code some values wait in the context; outside it the registers are right.
        let image = self.image_mut(tid);
        if let Some((entry, _)) = image.translator.cache.state_at(registers.rip) {
            image.show(context, &mut registers, &entry);
        }
        [
            registers.r15,
            registers.r14,
            registers.r13,
            registers.r12,
            registers.rbp,
            registers.rbx,
            registers.r11,
            registers.r10,
            registers.r9,
            registers.r8,
            registers.rax,
            registers.rcx,
            registers.rdx,
            registers.rsi,
            registers.rdi,
            registers.orig_rax,
            registers.rip,
            registers.cs,
            registers.eflags,
            registers.rsp,
            registers.ss,
            registers.fs_base,
            0,
            registers.ds,
            registers.es,
            registers.fs,
            registers.gs,
        ]
    }

    /// `PTRACE_GETREGSET`: writes as much of a register set as the checker's buffer holds.
    fn reads_set(&mut self, checker: i32, other: i32, registers: &Registers) -> i64 {
        let mut vector = [0u8; 16];
        if memory::read_target(checker, registers.r10, &mut vector) != vector.len() {
            return -i64::from(libc::EFAULT);
        }
        // `struct iovec`: where the set goes, and how many bytes fit.
        let [base, room] = [0, 8].map(|at| u64::from_le_bytes(vector[at..at + 8].try_into().expect("8")));
        let mut set = match registers.rdx {
            GENERAL => general_registers(&self.registers_of_program(other)).to_vec(),
            kind => match ptrace::register_set(other, kind, SET_BYTES_MAX) {
                Ok(set) => set,
                Err(error) => return -i64::from(error),
            },
        };
        set.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        match written(checker, base, &set) {
            0 => written(checker, registers.r10 + 8, &(set.len() as u64).to_le_bytes()),
            error => error,
        }
    }

    /// Lets a thread that a checker had stopped run on.
    fn let_go(&mut self, tid: i32) {
        if let Some(held) = self.leak_checks.held.remove(&tid) {
            self.stopped(tid, Wait::Event(libc::PTRACE_EVENT_STOP, held.signal));
        }
    }

    /// A task has ended. If it was a checker, the threads that it had stopped run on.
    pub(crate) fn check_ended(&mut self, tid: i32) {
        self.leak_checks.held.remove(&tid);
        self.leak_checks.asked.remove(&tid);
        if !self.leak_checks.checkers.remove(&tid) {
            return;
        }
        let left = |(&other, held): (&i32, &HeldThread)| (held.checker == tid).then_some(other);
        let left: Vec<i32> = self.leak_checks.held.iter().filter_map(left).collect();
        left.into_iter().for_each(|other| self.let_go(other));
    }
}

fn general_registers(words: &[u64; 27]) -> [u8; 216] {
    let mut bytes = [0u8; 216];
    bytes.chunks_exact_mut(8).zip(words).for_each(|(at, word)| at.copy_from_slice(&word.to_le_bytes()));
    bytes
}

/// Writes a call's output into the program's memory; returns the call's result.
fn written(tid: i32, at: u64, bytes: &[u8]) -> i64 {
    if memory::write_target(tid, at, bytes) == bytes.len() {
        return 0;
    }
    -i64::from(libc::EFAULT)
}

/// A task's number in its own namespace of processes.
fn innermost_number(tid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_written_in_the_kernels_order() {
        let words: [u64; 27] = std::array::from_fn(|index| index as u64 + 1);
        let bytes = general_registers(&words);
        assert_eq!(bytes.len(), size_of::<Registers>());
        assert_eq!((bytes[0], bytes[8 * 16], bytes[8 * 26]), (1, 17, 27));
        assert_eq!(std::mem::offset_of!(Registers, rip), 8 * 16);
        assert_eq!(std::mem::offset_of!(Registers, gs_base), 8 * 22);
    }

    #[test]
    fn this_process_has_a_number_in_its_own_namespace() {
        assert!(innermost_number(ptrace::own_pid()).is_some());
        assert_eq!(innermost_number(i32::MAX), None);
    }
}
