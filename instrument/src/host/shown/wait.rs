//! System calls that wait for at most some time.
//!
//! **The problem.** A program that waits for a deadline compares the clock with it afterwards. The
//! clock that it is shown moves with readings and sleeps only, and a deadline on that clock means
//! nothing to the kernel.
//!
//! **The idea.** The kernel waits, for the time that is left on the shown clock, and the host looks
//! at the call's end: if the time ran out, the shown clock moves on by it.
//!
//! ```text
//!   stop before the call ──▶ its beginning ──▶ it waits ──▶ its end: clock += time, if it ran out
//!     deadlines become times           a signal comes: the program makes the call again, or EINTR
//! ```
//!
//! **Leaves out** timers, whose signals come by the system's time.

use super::state::{Phase, TimeLeft, Waiting};
use super::turns::may_wait;
use crate::code::fragment::EXIT_SYSTEM_CALL;
use crate::host::state::Host;
use crate::host::system_call::NOP_BYTES;
use crate::image::number;
use crate::target::layout::{context, CONTEXTS};
use crate::target::memory;
use crate::target::ptrace::{self, Registers, Wait};

/// The signal of a stop at the beginning or the end of a system call.
const SYSTEM_CALL: i32 = libc::SIGTRAP | 0x80;
/// Results by which the kernel says that a signal has interrupted a call.
const INTERRUPTED: std::ops::RangeInclusive<i64> = -516..=-512;
const SECOND_NS: u64 = 1_000_000_000;
const FUTEX_COMMAND: u64 = 0x7f;
const FUTEX_PRIVATE: u64 = 128;
const FUTEX_ANY: u64 = 0xffff_ffff;

/// A call that waits: for how long, and with which registers the kernel makes it.
struct Wanted {
    /// For how long; `None` for ever.
    nanoseconds: Option<u64>,
    registers: Registers,
    /// Seconds and nanoseconds that the kernel reads in place of the program's, and the register
    /// that leads there.
    time: Option<TimeIn>,
}

impl Wanted {
    /// A call that waits until something happens.
    fn for_ever(registers: &Registers) -> Wanted {
        Wanted { nanoseconds: None, registers: *registers, time: None }
    }
}

/// The register that holds the address of a time.
#[derive(Clone, Copy, Debug)]
enum TimeIn {
    Rdx,
    R10,
}

impl Host<'_> {
    /// Makes a system call that waits for at most some time; returns whether it is one.
    pub(crate) fn waits_shown(&mut self, tid: i32, registers: &Registers) -> bool {
        let repeats = self.shown.repeats();
        let takes_turns = self.shown.turns.are_taken() && self.threads[&tid].process == self.root;
        let in_turn = || (takes_turns && may_wait(registers)).then(|| Wanted::for_ever(registers));
        // Only a clock that is shown makes times of deadlines.
        let timed = if repeats { self.wanted(tid, registers) } else { None };
        let Some(wanted) = timed.or_else(in_turn) else { return false };
        if self.shown.quantum().is_some() {
            self.hand_over_records(tid);
        }
        let mut made = Registers { rip: registers.rip + NOP_BYTES, ..wanted.registers };
        if let Some(register) = wanted.time {
            // This part of the context is free at stops.
            let context = self.threads[&tid].context as u64;
            let at = CONTEXTS + context * context::BYTES + u64::from(context::VECTOR);
            let nanoseconds = wanted.nanoseconds.unwrap_or(0);
            let time = [nanoseconds / SECOND_NS, nanoseconds % SECOND_NS];
            let bytes: Vec<u8> = time.iter().flat_map(|word| word.to_le_bytes()).collect();
            memory::write_target(tid, at, &bytes);
            match register {
                TimeIn::Rdx => made.rdx = at,
                TimeIn::R10 => made.r10 = at,
            }
        }
        let process = self.threads[&tid].process;
        let now = self.shown.clock(process).now();
        let deadline = wanted.nanoseconds.map(|nanoseconds| now.saturating_add(nanoseconds));
        let remains_at = remains_at(registers).filter(|_| repeats);
        let remains = remains_at.and_then(|at| Some((at, words_at(tid, at)?)));
        let (phase, time) = (Phase::Before, TimeLeft::Kernel);
        let waiting = Waiting { before: *registers, deadline, remains, phase, time };
        self.shown.waiting.insert(tid, waiting);
        ptrace::set_registers(tid, &made);
        ptrace::to_system_call(tid, 0);
        self.turn_ends(tid);
        true
    }

    /// What a call waits for, if it waits for at most some time.
    fn wanted(&self, tid: i32, registers: &Registers) -> Option<Wanted> {
        let same = |nanoseconds| Wanted { nanoseconds: Some(nanoseconds), registers: *registers, time: None };
        // Milliseconds, of which a negative number means for ever.
        let milliseconds = |word: u64| u64::try_from(word as i32).ok().map(|number| number * 1_000_000);
        let wanted = match registers.rax & 0xffff_ffff {
            number::NANOSLEEP => same(time_at(tid, registers.rdi, 1)?),
            number::CLOCK_NANOSLEEP if registers.rsi & 1 == 0 => same(time_at(tid, registers.rdx, 1)?),
            number::CLOCK_NANOSLEEP => {
                let nanoseconds = self.until(tid, registers.rdi as i32, registers.rdx)?;
                let made = Registers { rdi: libc::CLOCK_MONOTONIC as u64, rsi: 0, ..*registers };
                return Some(Wanted {
                    nanoseconds: Some(nanoseconds),
                    registers: made,
                    time: Some(TimeIn::Rdx),
                });
            }
            number::POLL => same(milliseconds(registers.rdx)?),
            number::EPOLL_WAIT | number::EPOLL_PWAIT => same(milliseconds(registers.r10)?),
            number::PPOLL => same(time_at(tid, registers.rdx, 1)?),
            number::EPOLL_PWAIT2 => same(time_at(tid, registers.r10, 1)?),
            number::SELECT => same(time_at(tid, registers.r8, 1000)?),
            number::PSELECT => same(time_at(tid, registers.r8, 1)?),
            number::SIGTIMEDWAIT => same(time_at(tid, registers.rdx, 1)?),
            number::FUTEX => return self.wanted_of_futex(tid, registers),
            _ => return None,
        };
        // A call that does not wait needs no attention.
        (wanted.nanoseconds != Some(0)).then_some(wanted)
    }

    /// What a wait for a futex waits for. A deadline becomes a time.
    fn wanted_of_futex(&self, tid: i32, registers: &Registers) -> Option<Wanted> {
        const WAIT: u64 = libc::FUTEX_WAIT as u64;
        const WAIT_BITSET: u64 = libc::FUTEX_WAIT_BITSET as u64;
        match registers.rsi & FUTEX_COMMAND {
            WAIT => {
                let nanoseconds = time_at(tid, registers.r10, 1)?;
                Some(Wanted { nanoseconds: Some(nanoseconds), registers: *registers, time: None })
            }
            WAIT_BITSET if registers.r9 & FUTEX_ANY == FUTEX_ANY => {
                let real = registers.rsi & libc::FUTEX_CLOCK_REALTIME as u64 != 0;
                let clock = if real { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC };
                let nanoseconds = self.until(tid, clock, registers.r10)?;
                let rsi = WAIT | registers.rsi & FUTEX_PRIVATE;
                let made = Registers { rsi, ..*registers };
                Some(Wanted { nanoseconds: Some(nanoseconds), registers: made, time: Some(TimeIn::R10) })
            }
            _ => None,
        }
    }

    /// Nanoseconds until the time at an address, on a clock that the program is shown.
    fn until(&self, tid: i32, clock: i32, at: u64) -> Option<u64> {
        let time = words_at(tid, at)?;
        self.shown.clocks.get(&self.threads[&tid].process).copied().unwrap_or_default().until(clock, time)
    }

    /// Answers a stop of a thread that waits; returns whether that was all.
    pub(crate) fn waited(&mut self, tid: i32, what: Wait) -> bool {
        let Some(waiting) = self.shown.waiting.get_mut(&tid) else { return false };
        match (what, waiting.phase) {
            (Wait::Signal(SYSTEM_CALL), Phase::Before) => {
                waiting.phase = Phase::Within;
                ptrace::to_system_call(tid, 0);
                self.give_turn();
                true
            }
            (Wait::Signal(SYSTEM_CALL), _) => {
                self.wait_ends(tid);
                true
            }
            (Wait::Signal(signal), Phase::Interrupted) => {
                self.waits_again(tid, signal);
                false
            }
            // Another stop: the wait goes on without the host.
            _ => {
                if let Some(waiting) = self.shown.waiting.remove(&tid) {
                    restore_arguments(tid, &waiting.before);
                }
                false
            }
        }
    }

    /// Answers the end of a call that waited.
    fn wait_ends(&mut self, tid: i32) {
        let Some(mut waiting) = self.shown.waiting.remove(&tid) else { return };
        let Some(mut result) = restore_arguments(tid, &waiting.before) else { return };
        if let Some(changed) = waiting.changed_result(result) {
            result = changed;
            if let Some(registers) = ptrace::registers(tid) {
                ptrace::set_registers(tid, &Registers { rax: result as u64, ..registers });
            }
        }
        if INTERRUPTED.contains(&result) {
            // The signal's stop follows.
            waiting.phase = Phase::Interrupted;
            self.shown.waiting.insert(tid, waiting);
            return ptrace::resume(tid, 0);
        }
        let deadline = waiting.deadline.filter(|_| ran_out(waiting.before.rax, result));
        if deadline.is_some() && waiting.time == TimeLeft::Kernel && self.waits_on(tid, &mut waiting) {
            self.shown.waiting.insert(tid, waiting);
            return;
        }
        // On the shown clock no time has passed, so all of it remains.
        if let Some((at, (seconds, rest))) = waiting.remains.filter(|_| deadline.is_none()) {
            let bytes = [seconds.to_le_bytes(), rest.to_le_bytes()].concat();
            memory::write_target(tid, at, &bytes);
        }
        if let Some(deadline) = deadline {
            if self.is_late(tid, deadline) {
                return;
            }
            let process = self.threads[&tid].process;
            self.shown.clock(process).reach(deadline);
        }
        self.go_on(tid);
    }

    /// Where threads take turns, makes a call whose time ran out wait on, for ever; returns whether
    /// it does. On the shown clock no time has passed while others may run, and whether one of them
    /// would have ended the wait must not depend on the system's time.
    fn waits_on(&self, tid: i32, waiting: &mut Waiting) -> bool {
        let is_taken = self.shown.turns.are_taken() && self.threads[&tid].process == self.root;
        let Some(made) = for_ever(&waiting.before).filter(|_| is_taken) else { return false };
        (waiting.phase, waiting.time) = (Phase::Before, TimeLeft::Overdue);
        ptrace::set_registers(tid, &Registers { rip: made.rip + NOP_BYTES, ..made });
        ptrace::to_system_call(tid, 0);
        true
    }

    /// When nothing else can happen: ends the wait with the earliest deadline, if it is overdue.
    pub(super) fn ends_overdue(&mut self) {
        let number = |tid: i32| self.threads.get(&tid).map(|thread| thread.number);
        let all = self.shown.waiting.iter();
        let deadlines = all.filter_map(|(&tid, waiting)| Some((waiting.deadline()?, number(tid)?, tid)));
        let Some((_, _, tid)) = deadlines.min() else { return };
        let Some(waiting) = self.shown.waiting.get_mut(&tid) else { return };
        if waiting.time == TimeLeft::Overdue && waiting.phase == Phase::Within {
            waiting.time = TimeLeft::Over;
            ptrace::interrupt(tid);
        }
    }

    /// If no handler takes the signal that has interrupted a wait, makes the program wait again.
    fn waits_again(&mut self, tid: i32, signal: i32) {
        let Some(waiting) = self.shown.waiting.remove(&tid) else { return };
        if self.caught(tid) >> (signal - 1) & 1 != 0 {
            return;
        }
        let registers = Registers { rip: waiting.before.rip - 1, orig_rax: u64::MAX, ..waiting.before };
        ptrace::set_registers(tid, &registers);
        let context = self.threads[&tid].context;
        self.image_mut(tid).write32(context, context::EXIT, EXIT_SYSTEM_CALL);
    }
}

/// Gives the arguments of a call the program's values again; returns the call's result.
fn restore_arguments(tid: i32, before: &Registers) -> Option<i64> {
    let now = ptrace::registers(tid)?;
    let Registers { rdi, rsi, rdx, r10, r8, r9, .. } = *before;
    ptrace::set_registers(tid, &Registers { rdi, rsi, rdx, r10, r8, r9, ..now });
    Some(now.rax as i64)
}

/// The address of a time in which a call leaves what remains of it.
fn remains_at(registers: &Registers) -> Option<u64> {
    match registers.rax & 0xffff_ffff {
        number::SELECT | number::PSELECT => Some(registers.r8),
        number::PPOLL => Some(registers.rdx),
        _ => None,
    }
}

impl Waiting {
    /// The result that the program sees in place of a call's, if that is another one.
    fn changed_result(&self, result: i64) -> Option<i64> {
        let call = self.before.rax & 0xffff_ffff;
        match self.time {
            TimeLeft::Over if INTERRUPTED.contains(&result) => Some(timed_out(call)),
            // A word that changed before the call waited on has been changed by who woke it.
            TimeLeft::Overdue if call == number::FUTEX && result == -i64::from(libc::EAGAIN) => Some(0),
            _ => None,
        }
    }
}

/// The registers of a call that waits for ever in place of some time. `None` of sleeps, which
/// nobody ends, and of calls that have changed their arguments when they end.
fn for_ever(before: &Registers) -> Option<Registers> {
    const NEVER: u64 = u64::MAX;
    let made = Registers { orig_rax: u64::MAX, ..*before };
    Some(match before.rax & 0xffff_ffff {
        number::POLL => Registers { rdx: NEVER, ..made },
        number::EPOLL_WAIT | number::EPOLL_PWAIT => Registers { r10: NEVER, ..made },
        number::PPOLL | number::SIGTIMEDWAIT => Registers { rdx: 0, ..made },
        number::EPOLL_PWAIT2 | number::FUTEX => Registers { r10: 0, ..made },
        _ => return None,
    })
}

/// The result of a call whose time ran out.
fn timed_out(call: u64) -> i64 {
    match call {
        number::FUTEX => -i64::from(libc::ETIMEDOUT),
        number::SIGTIMEDWAIT => -i64::from(libc::EAGAIN),
        _ => 0,
    }
}

/// Whether the result of a call says that its time ran out.
fn ran_out(call: u64, result: i64) -> bool {
    match call & 0xffff_ffff {
        number::FUTEX => result == -i64::from(libc::ETIMEDOUT),
        number::SIGTIMEDWAIT => result == -i64::from(libc::EAGAIN),
        // Sleeps and waits for descriptors.
        _ => result == 0,
    }
}

/// The nanoseconds of the time at an address, whose second word counts units of `unit_ns`.
fn time_at(tid: i32, at: u64, unit_ns: u64) -> Option<u64> {
    let (seconds, rest) = words_at(tid, at)?;
    Some(seconds.saturating_mul(SECOND_NS).saturating_add(rest.saturating_mul(unit_ns)))
}

/// The two words at an address.
fn words_at(tid: i32, at: u64) -> Option<(u64, u64)> {
    let mut bytes = [0u8; 16];
    let got = at != 0 && memory::read_target(tid, at, &mut bytes) == bytes.len();
    let word = |half: &[u8]| u64::from_le_bytes(half.try_into().expect("eight bytes"));
    got.then(|| (word(&bytes[..8]), word(&bytes[8..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_say_whether_time_ran_out() {
        assert!(ran_out(number::POLL, 0) && !ran_out(number::POLL, 1));
        assert!(ran_out(number::FUTEX, -110) && !ran_out(number::FUTEX, 0));
        assert!(ran_out(number::NANOSLEEP, 0) && !ran_out(number::NANOSLEEP, -4));
        for call in [number::POLL, number::FUTEX, number::SIGTIMEDWAIT, number::EPOLL_WAIT] {
            assert!(ran_out(call, timed_out(call)));
        }
    }
}
