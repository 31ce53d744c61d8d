//! System calls that read clocks, random bytes or facts about the machine.

use super::open::Open;
use crate::host::state::Host;
use crate::image::number;
use crate::target::memory;
use crate::target::ptrace::Registers;
use crate::virtual_machine::files;

/// Bytes of `struct rusage` and of `struct tms`.
const USAGE_BYTES: usize = 144;
const TIMES_BYTES: usize = 32;
/// Nanoseconds of a tick of `times`.
const TICK_NS: u64 = 10_000_000;
/// The most bytes that the kernel gives at once.
const RANDOM_MAX: u64 = (32 << 20) - 1;
/// The most bytes that are written into the program at once.
const PIECE_BYTES: usize = 64 << 10;
const SECOND_NS: u64 = 1_000_000_000;
/// Bytes of the mask of processors that the program gets.
const MASK_BYTES: u64 = 8;

impl Host<'_> {
    /// The result of a system call that the shown machine answers; `None` if the kernel answers it.
    pub(crate) fn shown_result(&mut self, tid: i32, registers: &Registers) -> Option<i64> {
        if !self.shown.is_declared() {
            return None;
        }
        match registers.rax & 0xffff_ffff {
            number::GET_AFFINITY => self.shown_affinity(tid, registers),
            number::GETCPU => Some(self.shown_processor(tid, registers)),
            _ if !self.shown.repeats() => None,
            number::CLOCK_GETTIME => {
                let process = self.threads[&tid].process;
                let (seconds, nanoseconds) = self.shown.clock(process).read(registers.rdi as i32)?;
                Some(write_words(tid, registers.rsi, &[seconds, nanoseconds]))
            }
            // Every clock counts nanoseconds.
            number::CLOCK_GETRES => {
                let process = self.threads[&tid].process;
                self.shown.clock(process).until(registers.rdi as i32, (0, 0))?;
                Some(write_unless_null(tid, registers.rsi, &[0, 1]))
            }
            number::GETTIMEOFDAY => {
                let (seconds, nanoseconds) = self.wall_time(tid);
                let zone = write_unless_null(tid, registers.rsi, &[0]);
                let time = write_unless_null(tid, registers.rdi, &[seconds, nanoseconds / 1000]);
                Some(zone.min(time))
            }
            number::TIME => {
                let (seconds, _) = self.wall_time(tid);
                let written = write_unless_null(tid, registers.rdi, &[seconds]);
                Some(if written == 0 { seconds as i64 } else { written })
            }
            number::TIMES => {
                let elapsed = self.elapsed(tid);
                let mut times = [0u64; TIMES_BYTES / 8];
                times[0] = elapsed / TICK_NS;
                let written = write_unless_null(tid, registers.rdi, &times);
                Some(if written == 0 { times[0] as i64 } else { written })
            }
            number::GETRUSAGE => {
                let elapsed = self.elapsed(tid);
                let mut usage = [0u64; USAGE_BYTES / 8];
                (usage[0], usage[1]) = (elapsed / SECOND_NS, elapsed % SECOND_NS / 1000);
                Some(write_words(tid, registers.rsi, &usage))
            }
            number::SYSINFO => Some(write_bytes(tid, registers.rdi, &files::system_information())),
            number::READ | number::PREAD if self.is_random(tid, registers.rdi) => {
                Some(self.random_bytes(tid, registers.rsi, registers.rdx))
            }
            number::READV if self.is_random(tid, registers.rdi) => self.random_vector(tid, registers),
            number::ALARM | number::SETITIMER | number::TIMER_SETTIME | number::TIMERFD_SETTIME => {
                self.shown.leave_open(Open::Timer);
                None
            }
            number::CONNECT | number::BIND => {
                self.notes_network(tid, registers.rsi);
                None
            }
            call @ (number::GETPID | number::GETTID | number::GETPPID) => self.shown_number(tid, call),
            number::GETRANDOM => Some(self.random_bytes(tid, registers.rdi, registers.rsi)),
            _ => None,
        }
    }

    fn wall_time(&mut self, tid: i32) -> (u64, u64) {
        let process = self.threads[&tid].process;
        self.shown.clock(process).read(libc::CLOCK_REALTIME).unwrap_or_default()
    }

    fn elapsed(&mut self, tid: i32) -> u64 {
        let process = self.threads[&tid].process;
        self.shown.clock(process).elapsed()
    }

    /// Fills memory of the program with random bytes; returns how many, or an error.
    pub(crate) fn random_bytes(&mut self, tid: i32, to: u64, bytes: u64) -> i64 {
        let wanted = bytes.min(RANDOM_MAX) as usize;
        let mut piece = vec![0u8; wanted.min(PIECE_BYTES)];
        let mut done = 0;
        while done < wanted {
            let length = (wanted - done).min(PIECE_BYTES);
            self.shown.generator(tid).fill(&mut piece[..length]);
            if memory::write_target(tid, to + done as u64, &piece[..length]) != length {
                return if done > 0 { done as i64 } else { -i64::from(libc::EFAULT) };
            }
            done += length;
        }
        done as i64
    }

    /// Whether a descriptor is a file of random bytes.
    fn is_random(&self, tid: i32, descriptor: u64) -> bool {
        let path = std::fs::read_link(format!("/proc/{tid}/fd/{}", descriptor as i32));
        path.is_ok_and(|path| is_random_file(path.as_os_str().as_encoded_bytes()))
    }

    /// Fills the first buffer of a vector; the program reads on for the others.
    fn random_vector(&mut self, tid: i32, registers: &Registers) -> Option<i64> {
        let mut first = [0u8; 16];
        let got = memory::read_target(tid, registers.rsi, &mut first) == first.len();
        if !got || registers.rdx == 0 {
            return None;
        }
        let word = |half: &[u8]| u64::from_le_bytes(half.try_into().expect("eight bytes"));
        Some(self.random_bytes(tid, word(&first[..8]), word(&first[8..])))
    }

    /// Notes that the program uses the network, if the address at `at` is one of it.
    fn notes_network(&mut self, tid: i32, at: u64) {
        const LOCAL: u16 = libc::AF_UNIX as u16;
        const KERNEL: u16 = libc::AF_NETLINK as u16;
        let mut family = [0u8; 2];
        let got = memory::read_target(tid, at, &mut family);
        if got == family.len() && ![LOCAL, KERNEL].contains(&u16::from_le_bytes(family)) {
            self.shown.leave_open(Open::Socket);
        }
    }

    /// Answers `sched_getaffinity` of a thread of the run: the first processor alone.
    fn shown_affinity(&self, tid: i32, registers: &Registers) -> Option<i64> {
        let task = self.real_number(registers.rdi).unwrap_or(registers.rdi) as i32;
        let own = task == 0 || self.threads.contains_key(&task);
        if !own || registers.rsi < MASK_BYTES || !registers.rsi.is_multiple_of(8) {
            return None;
        }
        let written = write_words(tid, registers.rdx, &[1]);
        Some(if written == 0 { MASK_BYTES as i64 } else { written })
    }

    /// Answers `getcpu`: the first processor of the first node.
    fn shown_processor(&self, tid: i32, registers: &Registers) -> i64 {
        let mut result = 0;
        for to in [registers.rdi, registers.rsi].into_iter().filter(|&to| to != 0) {
            result = write_bytes(tid, to, &[0; 4]).min(result);
        }
        result
    }
}

/// Whether a path is that of a file of random bytes.
pub(super) fn is_random_file(path: &[u8]) -> bool {
    matches!(path, b"/dev/urandom" | b"/dev/random")
}

/// Writes into the program; returns 0 or the error.
fn write_bytes(tid: i32, to: u64, bytes: &[u8]) -> i64 {
    if memory::write_target(tid, to, bytes) == bytes.len() {
        0
    } else {
        -i64::from(libc::EFAULT)
    }
}

fn write_words(tid: i32, to: u64, words: &[u64]) -> i64 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    write_bytes(tid, to, &bytes)
}

fn write_unless_null(tid: i32, to: u64, words: &[u64]) -> i64 {
    if to == 0 {
        0
    } else {
        write_words(tid, to, words)
    }
}
