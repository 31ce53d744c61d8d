//! Turns: the threads of the first process run one at a time.
//!
//! **The problem.** Threads that run at the same time meet at locks and queues in another order in
//! every run, and execute other code for it.
//!
//! **The idea.** One thread has the turn; the others are stopped or wait in the kernel. A turn ends
//! where the thread makes a system call that may wait, or ends. The next turn is given when all is
//! at rest: a call that will not wait is over, and whoever the last turn has woken has stopped.
//!
//! ```text
//!   turn of 1 ──▶ waits for a futex ─┐                    ┌─▶ turn of 3 …
//!   2, 3 stopped, ready              └▶ turn of 2 ─▶ ends ┘
//! ```
//!
//! Where turns have a length, a thread's ring gets a limit when its turn begins: the records that
//! this many instructions make, by what its last turn made. Behind the limit the thread stops, and
//! its running sum of instructions says whether the turn is over or how much is left. So no code is
//! emitted for it, and a turn is some instructions longer than asked for.
//!
//! The turn goes round by the threads' numbers. Threads whose time ran out come behind all others,
//! in the order of their deadlines on the shown clock. **Leaves out** threads that wait for others
//! by reading memory again and again without a system call: their turn ends by its length alone.

use super::state::{Turns, Waiting};
use crate::code::counter::tick_address;
use crate::host::ring::RingMessage;
use crate::host::state::Host;
use crate::image::number;
use crate::outcome::TurnStart;
use crate::target::ptrace::Registers;
use std::time::Duration;

/// Records of 1024 instructions of a thread that has not had a turn yet.
const DENSITY: u64 = 700;
/// The fewest records behind which a thread stops in its turn.
const PIECE_MIN: u64 = 32;
/// System calls that wake threads and do not wait; where turns have a length, the host must know
/// whether a turn has woken another thread.
const MAY_WAKE: [i64; 7] = [
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_close,
    libc::SYS_shutdown,
];

/// Between two looks at threads that are not at rest yet.
const LOOK: Duration = Duration::from_micros(20);

/// System calls that may wait for another thread or for the world outside.
const MAY_WAIT: [i64; 46] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_poll,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_select,
    libc::SYS_sched_yield,
    libc::SYS_pause,
    libc::SYS_nanosleep,
    libc::SYS_sendfile,
    libc::SYS_connect,
    libc::SYS_accept,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_wait4,
    libc::SYS_semop,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigsuspend,
    libc::SYS_futex,
    libc::SYS_io_getevents,
    libc::SYS_semtimedop,
    libc::SYS_clock_nanosleep,
    libc::SYS_epoll_wait,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_timedreceive,
    libc::SYS_waitid,
    libc::SYS_pselect6,
    libc::SYS_ppoll,
    libc::SYS_splice,
    libc::SYS_tee,
    libc::SYS_vmsplice,
    libc::SYS_epoll_pwait,
    libc::SYS_accept4,
    libc::SYS_recvmmsg,
    libc::SYS_sendmmsg,
    libc::SYS_io_uring_enter,
    libc::SYS_epoll_pwait2,
    libc::SYS_futex_waitv,
];

impl Host<'_> {
    /// Begins turns, the first one of which `maker` has: it has just made a second thread.
    pub(crate) fn begin_turns(&mut self, maker: i32) {
        let process = self.threads[&maker].process;
        if !self.shown.takes_turns() || process != self.root || self.shown.turns.are_taken {
            return;
        }
        (self.shown.turns.are_taken, self.shown.turns.holder) = (true, Some(maker));
        self.shown.turns.last = self.threads[&maker].number;
        let image = self.threads[&maker].image;
        self.image_of(image).stop_before(&MAY_WAIT.map(|call| call as u64));
        if self.shown.quantum().is_some() {
            self.image_of(image).stop_before(&MAY_WAKE.map(|call| call as u64));
            self.turn_begins(maker);
        }
    }

    /// Ends turns: the process has executed another program, or has ended.
    pub(crate) fn end_turns(&mut self) {
        self.shown.turns = Turns::default();
    }

    /// If another thread has the turn, keeps this one stopped until it gets the turn; returns
    /// whether it does.
    pub(crate) fn waits_for_turn(&mut self, tid: i32) -> bool {
        let is_one = self.threads.get(&tid).is_some_and(|thread| thread.process == self.root);
        let turns = &mut self.shown.turns;
        if !turns.are_taken || !is_one || turns.holder == Some(tid) {
            return false;
        }
        if !turns.has_stopped(tid) {
            turns.ready.push(tid);
        }
        self.give_turn();
        true
    }

    /// Ends the turn of a thread that enters a system call which may wait.
    pub(super) fn turn_ends(&mut self, tid: i32) {
        if self.shown.turns.holder == Some(tid) {
            self.shown.turns.holder = None;
            self.give_turn();
        }
    }

    /// Notes that a thread's time ran out at a deadline; returns whether it waits for the turn.
    pub(super) fn is_late(&mut self, tid: i32, deadline: u64) -> bool {
        let takes = self.shown.turns.are_taken && self.threads[&tid].process == self.root;
        if takes {
            self.shown.turns.late.push((deadline, tid));
            self.give_turn();
        }
        takes
    }

    /// Forgets a thread that has ended, and gives its turn to another one.
    pub(crate) fn leaves_turns(&mut self, tid: i32) {
        if self.shown.turns.are_taken {
            self.shown.turns.gone(tid);
            self.shown.turns.forget_length(tid);
            self.give_turn();
        }
    }

    /// Gives the turn to the next thread, if nobody has it and all is at rest.
    pub(super) fn give_turn(&mut self) {
        if self.shown.turns.holder.is_some() || !self.rests() {
            return;
        }
        let Some((tid, deadline)) = self.next_in_turn() else { return self.ends_overdue() };
        if let Some(deadline) = deadline {
            self.shown.clock(self.root).reach(deadline);
        }
        self.shown.turns.gone(tid);
        self.shown.turns.holder = Some(tid);
        self.shown.turns.last = self.threads[&tid].number;
        if self.shown.quantum().is_some() {
            self.tell_turn(tid);
            self.turn_begins(tid);
        }
        self.go_on(tid);
    }

    /// Tells the observer that the next records are those of this thread's turn.
    fn tell_turn(&mut self, tid: i32) {
        let (image, thread) = (self.threads[&tid].image, self.threads[&tid].number);
        let start = match self.shown.turns.length.expired.remove(&tid) {
            true => TurnStart::GoesOn,
            false => TurnStart::Waited,
        };
        self.give(RingMessage::Turn { image, thread, start });
    }

    /// Measures the turn of a thread from here on.
    fn turn_begins(&mut self, tid: i32) {
        let Some(quantum) = self.shown.quantum() else { return };
        let began = self.instructions_of(tid);
        let length = &mut self.shown.turns.length;
        (length.began, length.records) = (began, 0);
        let density = length.density.get(&tid).copied().unwrap_or(DENSITY);
        self.limit_piece(tid, quantum, density);
    }

    /// Answers the end of a piece of `records` records: the turn is over, or goes on with another
    /// piece.
    pub(crate) fn piece_ends(&mut self, tid: i32, records: usize) {
        let Some(quantum) = self.shown.quantum() else { return };
        if self.shown.turns.holder != Some(tid) {
            return;
        }
        let now = self.instructions_of(tid);
        let turns = &mut self.shown.turns;
        let length = &mut turns.length;
        let done = now.wrapping_sub(length.began);
        length.records += records as u64;
        let density = (length.records << 10) / done.max(1);
        // A stop for the last few instructions would take longer than they do.
        if done < quantum - quantum / 8 {
            return self.limit_piece(tid, quantum - done, density);
        }
        length.density.insert(tid, density);
        length.expired.insert(tid);
        turns.holder = None;
        turns.ready.push(tid);
    }

    /// The instructions that a thread has executed, by its running sum.
    fn instructions_of(&mut self, tid: i32) -> u64 {
        let context = self.threads[&tid].context;
        self.image_mut(tid).read64(context, tick_address(0))
    }

    /// Makes the thread stop behind the records of this many instructions.
    fn limit_piece(&mut self, tid: i32, instructions: u64, density: u64) {
        let records = (instructions.saturating_mul(density) >> 10).max(PIECE_MIN);
        let context = self.threads[&tid].context;
        self.image_mut(tid).limit_records(context, records);
    }

    /// Whether all is at rest. Where turns have a length, threads in the kernel are looked at only
    /// if a system call may have woken one.
    fn rests(&mut self) -> bool {
        let calls = self.stats.system_calls;
        if self.shown.quantum().is_some() && self.shown.turns.length.rested_at == Some(calls) {
            return true;
        }
        let rests = self.is_at_rest();
        self.shown.turns.length.rested_at = rests.then_some(calls);
        rests
    }

    /// The thread that gets the turn, and the deadline at which its time ran out; `None` if it is
    /// one that has not stopped yet.
    fn next_in_turn(&self) -> Option<(i32, Option<u64>)> {
        let turns = &self.shown.turns;
        let number = |tid: i32| self.threads.get(&tid).map(|thread| thread.number);
        let ready = turns.ready.iter().filter_map(|&tid| Some((number(tid)?, tid)));
        // The first one behind the last turn's thread, or the first one of all.
        if let Some((_, tid)) = ready.min_by_key(|&(number, _)| (number <= turns.last, number)) {
            return Some((tid, None));
        }
        let late = turns.late.iter().filter_map(|&(at, tid)| Some((at, number(tid)?, tid))).min()?;
        // A deadline that comes sooner has not run out in the system's time yet.
        let waits = |(&tid, waiting): (&i32, &Waiting)| Some((waiting.deadline()?, number(tid)?));
        let sooner = self.shown.waiting.iter().filter_map(waits).min();
        let is_first = sooner.is_none_or(|sooner| (late.0, late.1) < sooner);
        is_first.then_some((late.2, Some(late.0)))
    }

    /// Waits until each thread in the kernel sleeps; returns false if one has stopped, which the
    /// host will hear of.
    fn is_at_rest(&self) -> bool {
        for &tid in self.shown.waiting.keys() {
            loop {
                match state(self.root, tid) {
                    Some('R' | 'D') => std::thread::sleep(LOOK),
                    Some('t') => return false,
                    _ => break,
                }
            }
        }
        true
    }
}

/// Whether a system call may wait, given its arguments.
pub(super) fn may_wait(registers: &Registers) -> bool {
    let call = registers.rax & 0xffff_ffff;
    match call {
        number::FUTEX => {
            let command = (registers.rsi & 0x7f) as i32;
            matches!(
                command,
                libc::FUTEX_WAIT
                    | libc::FUTEX_WAIT_BITSET
                    | libc::FUTEX_LOCK_PI
                    | libc::FUTEX_WAIT_REQUEUE_PI
            )
        }
        _ => MAY_WAIT.contains(&(call as i64)),
    }
}

/// The state of a task, as its status line begins.
fn state(process: i32, tid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/task/{tid}/stat")).ok()?;
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
}
