//! The paper's collector: a timer in the program, and a signal handler that reads the counters and
//! records them.
//!
//! **What.** While the program is stopped behind its exec, it executes system calls for the host:
//! they open a file, set a handler and start a timer. Then it runs without a tracer. At each tick
//! one of its threads is interrupted. The thread executes about twenty instructions and four system
//! calls on its own stack, and appends a *tick* to the file: times, the group of kernel counters
//! that the program inherited, and the words that probes increment. **Why.** Profilers inside a
//! process work like this, and it disturbs the program more than a collector outside: system calls
//! are interrupted, stack and caches are used, a thread loses time. **Why this way.** A POSIX
//! timer, unlike the paper's `setitimer`, ends with the program's exec; a later signal would kill
//! the next program. The handler keeps everything on the stack, because two threads may execute it
//! at once. **Leaves out** children, which inherit no timer. Source: Mytkowicz et al. 2007, section
//! 3.1.

use super::mailbox::system_call;
use super::native::Held;
use crate::error::{Error, ErrorKind};
use crate::target::inject::{Injector, WantedMapping};
use crate::target::mappings;
use crate::target::memory;
use crate::target::ptrace;
use assembler::{Alu, Assembler, Gpr, Memory, Size};

/// The last real-time signal, which programs hardly use.
const SIGNAL: u64 = 64;
/// Possible addresses of the handler, which has a page of code and a page of data.
const AT: [u64; 4] = [0x5f00_0000, 0x4f00_0000, 0x2f00_0000, 0x1f00_0000];
const PAGE_BYTES: u64 = 4096;
/// Offset of the arguments of system calls in the page of data; two sums lie before them.
const ARGUMENTS: u64 = 64;
/// The lowest number for the handler's descriptors; a program's own seldom reach it.
const FD_MIN: u64 = 600;
/// Number of descriptors that are moved to high numbers.
const FDS_MOVED: u64 = 2;
/// Bytes of a tick before the group. Crate `measure` reads ticks with this layout.
const HEAD_BYTES: u32 = 64;
/// The most counters that a handler can record on its stack.
pub const WORDS_MAX: usize = 128;

const F_DUPFD_CLOEXEC: u64 = 1030;
const RLIMIT_NOFILE: u64 = 7;
const SA_SIGINFO: u64 = 4;
const SA_RESTORER: u64 = 0x0400_0000;
const SA_ONSTACK: u64 = 0x0800_0000;
const SA_RESTART: u64 = 0x1000_0000;
const CLOCK_MONOTONIC: u64 = 1;

/// The counters that a handler records, and the interval of its ticks.
#[derive(Clone, Copy, Debug)]
pub struct Ticks<'a> {
    /// Time between two ticks; at least 1.
    pub interval_ns: u64,
    /// A descriptor that the program has inherited: a group of counters. It gets a high number, and
    /// the program's children do not inherit it.
    pub group: i32,
    /// Bytes that a read of the group returns.
    pub group_bytes: u32,
    /// Numbers of the probes' counters to record, at most [`WORDS_MAX`].
    pub words: &'a [usize],
    /// A descriptor of this process: the file to which ticks are appended.
    pub output: i32,
}

impl Held {
    /// Starts the timer. The handler reads only the common block of counters, so all increments
    /// become locked ones of that block.
    ///
    /// # Errors
    /// When the program's memory or the system's limits leave no room.
    pub fn tick(&mut self, ticks: &Ticks<'_>) -> Result<(), Error> {
        if ticks.words.len() > WORDS_MAX {
            let count = ticks.words.len();
            let many =
                format!("{count} probes are more than the {WORDS_MAX} that a signal handler can record");
            return Err(Error::new(ErrorKind::System, many));
        }
        let words: Vec<u32> = ticks.words.iter().filter_map(|&word| self.address(word)).collect();
        let mapped = mappings::ranges(self.pid());
        let free =
            |&at: &u64| mapped.iter().all(|range| range.end <= at || range.start >= at + 2 * PAGE_BYTES);
        let at = AT.into_iter().find(free);
        let at = at.ok_or_else(|| {
            let why = "the program's address space below 2 GB has no room for a signal handler";
            Error::new(ErrorKind::System, why)
        })?;
        let mut timer = Timer { injector: Injector::new(self.pid())?, pid: self.pid(), at };
        let started = timer.start(ticks, &words);
        timer.injector.finish(None);
        self.count_together();
        started
    }
}

/// A timer that is being set up in the stopped program.
struct Timer {
    injector: Injector,
    pid: i32,
    at: u64,
}

impl Timer {
    fn start(&mut self, ticks: &Ticks<'_>, words: &[u32]) -> Result<(), Error> {
        let (read, write) = (libc::PROT_READ, libc::PROT_WRITE);
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let flags = private | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
        let (address, bytes, protection) = (self.at, 2 * PAGE_BYTES, read | write);
        self.injector.map(WantedMapping { address, bytes, protection, flags, fd: u64::MAX, offset: 0 })?;
        // The program opens the host's file through the host's descriptor in `/proc`.
        let path = format!("/proc/{}/fd/{}\0", ptrace::own_pid(), ticks.output);
        let path = self.argument(path.as_bytes());
        let flags = (libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC) as u64;
        const AT_FDCWD: u64 = -100i64 as u64;
        let output =
            self.call("open the file of ticks", libc::SYS_openat, [AT_FDCWD, path, flags, 0, 0, 0])?;
        let output = self.out_of_the_way(output);
        let group = self.out_of_the_way(ticks.group as u64);
        // The code is complete before its page becomes executable.
        let code = handler(&HandlerInputs {
            sums: (self.at + PAGE_BYTES) as u32,
            group: group as u32,
            group_bytes: ticks.group_bytes,
            output: output as u32,
            words,
        });
        let back = self.at + code.len() as u64;
        memory::write_target(self.pid, self.at, &[code, restorer()].concat());
        let executable = (read | libc::PROT_EXEC) as u64;
        self.call("protect a handler", libc::SYS_mprotect, [self.at, PAGE_BYTES, executable, 0, 0, 0])?;
        let flags = SA_SIGINFO | SA_RESTORER | SA_ONSTACK | SA_RESTART;
        let action = self.argument(&words_of(&[self.at, flags, back, 0]));
        self.call("set a signal handler", libc::SYS_rt_sigaction, [SIGNAL, action, 0, 8, 0, 0])?;
        // A `struct sigevent` has a value, the signal, SIGEV_SIGNAL and padding. The kernel writes
        // the timer's number behind it.
        let event = self.argument(&words_of(&[0, SIGNAL, 0, 0, 0, 0, 0, 0, 0]));
        let number = event + 64;
        self.call("make a timer", libc::SYS_timer_create, [CLOCK_MONOTONIC, event, number, 0, 0, 0])?;
        let mut id = [0; 4];
        memory::read_target(self.pid, number, &mut id);
        let (seconds, nanoseconds) = (ticks.interval_ns / 1_000_000_000, ticks.interval_ns % 1_000_000_000);
        let times = self.argument(&words_of(&[seconds, nanoseconds, seconds, nanoseconds]));
        let id = u64::from(u32::from_ne_bytes(id));
        self.call("start a timer", libc::SYS_timer_settime, [id, 0, times, 0, 0, 0]).map(drop)
    }

    /// Writes bytes into the page of data, where a system call can read them.
    fn argument(&self, bytes: &[u8]) -> u64 {
        let at = self.at + PAGE_BYTES + ARGUMENTS;
        memory::write_target(self.pid, at, bytes);
        at
    }

    /// Makes a system call in the program; `what` describes it in the error.
    fn call(&mut self, what: &str, number: i64, arguments: [u64; 6]) -> Result<u64, Error> {
        let got = self.injector.call(number, arguments);
        u64::try_from(got).map_err(|_| {
            let why = std::io::Error::from_raw_os_error(-got as i32);
            Error::new(ErrorKind::System, format!("the program cannot {what} ({why})"))
        })
    }

    /// Moves a descriptor to a high number, near the limit if that is low, and closes it on exec.
    fn out_of_the_way(&mut self, fd: u64) -> u64 {
        let lowest = FD_MIN.min(self.descriptors_max().saturating_sub(FDS_MOVED));
        let high = self.injector.call(libc::SYS_fcntl, [fd, F_DUPFD_CLOEXEC, lowest, 0, 0, 0]);
        match u64::try_from(high) {
            Ok(high) => {
                self.injector.call(libc::SYS_close, [fd, 0, 0, 0, 0, 0]);
                high
            }
            Err(_) => fd,
        }
    }

    /// The limit of the program's descriptors.
    fn descriptors_max(&mut self) -> u64 {
        let at = self.argument(&[0; 16]);
        let mut soft = [0; 8];
        let got = self.injector.call(libc::SYS_getrlimit, [RLIMIT_NOFILE, at, 0, 0, 0, 0]);
        memory::read_target(self.pid, at, &mut soft);
        if got == 0 {
            u64::from_ne_bytes(soft)
        } else {
            FD_MIN
        }
    }
}

fn words_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// The constants in the handler's code.
struct HandlerInputs<'a> {
    /// Address of two words: the seconds and nanoseconds that handlers have taken.
    sums: u32,
    group: u32,
    group_bytes: u32,
    output: u32,
    words: &'a [u32],
}

/// Numbers of system calls.
const READ: u64 = 0;
const WRITE: u64 = 1;
const SIGRETURN: u64 = 15;
const CLOCK_GETTIME: u64 = 228;

/// Offset in a tick of the time when the handler began.
const BEFORE: i32 = 0;
/// Offset in a tick of the time when the handler ended.
const AFTER: i32 = 16;
/// Offset in a tick of the timer's overruns.
const OVERRUNS: i32 = 32;
/// Offset in a tick of the result of `read`.
const READ_BYTES: i32 = 40;
/// Offset in a tick of both sums.
const SUMS: i32 = 48;
/// Offset of a timer's overruns in `siginfo_t`.
const SI_OVERRUN: i32 = 20;

/// The code that returns from a handler.
fn restorer() -> Vec<u8> {
    let mut code = Assembler::default();
    system_call(&mut code, SIGRETURN);
    code.into_bytes()
}

fn on_stack(bytes: i32) -> Memory {
    Memory::at(Gpr::RSP).plus(bytes)
}

/// The code of a handler that may run in several threads at once. It saves no registers, because
/// the kernel restores them.
fn handler(shape: &HandlerInputs<'_>) -> Vec<u8> {
    let bytes = HEAD_BYTES + shape.group_bytes + 8 * shape.words.len() as u32;
    let mut code = Assembler::default();
    code.alu_immediate(Alu::Sub, Size::Qword, Gpr::RSP, bytes as i32);
    code.mov_from(Size::Dword, Gpr::RAX, Memory::at(Gpr::RSI).plus(SI_OVERRUN));
    code.mov(Size::Qword, on_stack(OVERRUNS), Gpr::RAX);
    // Collect the tick on the stack: time, the group's counts, the words. One write appends it.
    clock(&mut code, BEFORE);
    code.mov_immediate(Gpr::RDI, shape.group.into());
    code.lea(Size::Qword, Gpr::RSI, on_stack(HEAD_BYTES as i32));
    code.mov_immediate(Gpr::RDX, shape.group_bytes.into());
    system_call(&mut code, READ);
    code.mov(Size::Qword, on_stack(READ_BYTES), Gpr::RAX);
    copy_words(&mut code, shape);
    code.mov_immediate(Gpr::RDI, shape.output.into());
    code.mov(Size::Qword, Gpr::RSI, Gpr::RSP);
    code.mov_immediate(Gpr::RDX, bytes.into());
    system_call(&mut code, WRITE);
    clock(&mut code, AFTER);
    // Add the handler's own time to the sums. The additions are atomic, because another thread may
    // execute the handler at the same time.
    for word in [0, 8] {
        code.mov_from(Size::Qword, Gpr::RAX, on_stack(AFTER + word));
        code.alu_from(Alu::Sub, Size::Qword, Gpr::RAX, on_stack(BEFORE + word));
        code.lock();
        code.alu(Alu::Add, Size::Qword, Memory::absolute(shape.sums as i32 + word), Gpr::RAX);
    }
    code.alu_immediate(Alu::Add, Size::Qword, Gpr::RSP, bytes as i32);
    code.ret();
    code.into_bytes()
}

/// Emits copies of both sums, and of the words behind the group's counts.
fn copy_words(code: &mut Assembler, shape: &HandlerInputs<'_>) {
    let first = (HEAD_BYTES + shape.group_bytes) as i32;
    let sums = [(shape.sums, SUMS), (shape.sums + 8, SUMS + 8)];
    let words = shape.words.iter().zip(0..).map(|(&word, index)| (word, first + 8 * index));
    for (from, to) in sums.into_iter().chain(words) {
        code.mov_from(Size::Qword, Gpr::RAX, Memory::absolute(from as i32));
        code.mov(Size::Qword, on_stack(to), Gpr::RAX);
    }
}

/// Emits `clock_gettime(CLOCK_MONOTONIC, rsp + to)`.
fn clock(code: &mut Assembler, to: i32) {
    code.mov_immediate(Gpr::RDI, CLOCK_MONOTONIC);
    code.lea(Size::Qword, Gpr::RSI, on_stack(to));
    system_call(code, CLOCK_GETTIME);
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Code, Decoder, DecoderOptions, Mnemonic};

    #[test]
    fn the_handler_is_whole_and_leaves_the_stack_as_it_was() {
        let words = [0x5000_1000, 0x5000_1008];
        let shape =
            HandlerInputs { sums: 0x5f00_1000, group: 600, group_bytes: 48, output: 601, words: &words };
        let code = [handler(&shape), restorer()].concat();
        let all: Vec<_> = Decoder::with_ip(64, &code, 0, DecoderOptions::NONE).iter().collect();
        assert!(all.iter().all(|instruction| !instruction.is_invalid()));
        let count =
            |mnemonic: Mnemonic| all.iter().filter(|instruction| instruction.mnemonic() == mnemonic).count();
        assert_eq!((count(Mnemonic::Syscall), count(Mnemonic::Ret)), (5, 1));
        assert_eq!((all[0].code(), all[0].immediate(1)), (Code::Sub_rm64_imm32, 64 + 48 + 16));
        let back = all.iter().find(|instruction| instruction.code() == Code::Add_rm64_imm32).unwrap();
        assert_eq!(back.immediate(1), all[0].immediate(1));
        assert_eq!(all.iter().filter(|instruction| instruction.has_lock_prefix()).count(), 2);
    }
}
