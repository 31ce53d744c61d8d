//! System calls in the name of a stopped process, by which memory is mapped into it without any
//! injected code.
//!
//! A thread that stands at an instruction boundary is pointed at the vdso's `syscall` instruction,
//! steps over it, and gets its registers back. Signals that arrive meanwhile are sent again.
//! **Leaves out** the choice of addresses, which is the caller's, and the transfer of descriptors
//! (`handover`).

use crate::error::{Error, ErrorKind};
use crate::target::auxiliary::{system_call_in, Auxiliary};
use crate::target::ptrace;
use crate::target::ptrace::{Registers, Wait};

/// SIGTRAP in masks.
const TRAP: u64 = 1 << (libc::SIGTRAP - 1);

/// A thread that makes system calls for the host.
pub(crate) struct Injector {
    pub(crate) tid: i32,
    gadget: u64,
    before: Registers,
    missed: Vec<i32>,
    /// Whether the thread blocks SIGTRAP: a step would unblock it by force and reset its action.
    blocks_trap: bool,
}

/// A mapping that is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedMapping {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) protection: i32,
    pub(crate) flags: i32,
    /// A descriptor of the process; all ones: none.
    pub(crate) fd: u64,
    pub(crate) offset: u64,
}

impl Injector {
    /// Of a process that stands behind its exec.
    pub(crate) fn new(pid: i32) -> Result<Injector, Error> {
        let vdso = Auxiliary::of(pid).vdso();
        let gadget = system_call_in(pid, vdso);
        let gadget = gadget.ok_or_else(|| {
            Error::system(
                "cannot read the program's vdso (process_vm_readv refused, or boot parameter vdso=0)",
            )
        })?;
        Injector::at(pid, gadget)
    }

    /// Of a thread whose process has a `syscall` instruction at `gadget`.
    pub(crate) fn at(tid: i32, gadget: u64) -> Result<Injector, Error> {
        let before = ptrace::registers(tid).ok_or_else(|| Error::system("the program vanished"))?;
        let blocks_trap = ptrace::signal_mask(tid) & TRAP != 0;
        Ok(Injector { tid, gadget, before, missed: Vec::new(), blocks_trap })
    }

    /// The thread that makes the calls.
    pub(crate) fn tid(&self) -> i32 {
        self.tid
    }

    /// An address below the thread's stack contents, free for arguments.
    pub(crate) fn scratch(&self) -> u64 {
        (self.before.rsp - 4096) & !15
    }

    /// One system call; its result.
    pub(crate) fn call(&mut self, number: i64, a: [u64; 6]) -> i64 {
        if self.blocks_trap {
            return self.call_without_steps(number, a);
        }
        let mut r = self.before;
        (r.rip, r.rax, r.orig_rax) = (self.gadget, number as u64, u64::MAX);
        (r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9) = (a[0], a[1], a[2], a[3], a[4], a[5]);
        ptrace::set_registers(self.tid, &r);
        while ptrace::step(self.tid, 0) {
            match self.stop() {
                Some(Wait::Signal(libc::SIGTRAP)) => break,
                Some(Wait::Signal(signal)) => self.missed.push(signal),
                // A group stop: the group's other tasks stop.
                Some(Wait::Event(..)) => {}
                _ => return -1,
            }
        }
        ptrace::registers(self.tid).map_or(-1, |r| r.rax as i64)
    }

    /// One system call whose stops are no signals. They leave SIGTRAP as it is, and take twice as
    /// long.
    pub(crate) fn call_without_steps(&mut self, number: i64, a: [u64; 6]) -> i64 {
        const SYSTEM_CALL: i32 = libc::SIGTRAP | 0x80;
        let mut r = self.before;
        (r.rip, r.rax, r.orig_rax) = (self.gadget, number as u64, u64::MAX);
        (r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9) = (a[0], a[1], a[2], a[3], a[4], a[5]);
        ptrace::set_registers(self.tid, &r);
        let mut ends = 0;
        while ends < 2 {
            ptrace::to_system_call(self.tid, 0);
            match self.stop() {
                Some(Wait::Signal(SYSTEM_CALL)) => ends += 1,
                Some(Wait::Signal(signal)) => self.missed.push(signal),
                Some(Wait::Event(..)) => {}
                _ => return -1,
            }
        }
        ptrace::registers(self.tid).map_or(-1, |r| r.rax as i64)
    }

    fn stop(&self) -> Option<Wait> {
        loop {
            match ptrace::wait(self.tid) {
                Ok(None) => {}
                got => return got.ok().flatten().map(|(_, what)| what),
            }
        }
    }

    /// Keeps a mapping of the engine, which is large, out of core dumps.
    pub(crate) fn keep_out_of_core(&mut self, address: u64, bytes: u64) {
        const MADV_DONTDUMP: u64 = 16;
        // Where the system refuses, core dumps are larger.
        self.call(libc::SYS_madvise, [address, bytes, MADV_DONTDUMP, 0, 0, 0]);
    }

    /// Maps memory at exactly the address.
    pub(crate) fn map(&mut self, m: WantedMapping) -> Result<(), Error> {
        let arguments = [m.address, m.bytes, m.protection as u64, m.flags as u64, m.fd, m.offset];
        let got = self.call(libc::SYS_mmap, arguments);
        if got as u64 == m.address {
            return Ok(());
        }
        Err(unmapped(m.bytes, -got as i32))
    }

    /// Closes a descriptor of the process.
    pub(crate) fn close(&mut self, fd: u64) {
        self.call(libc::SYS_close, [fd, 0, 0, 0, 0, 0]);
    }

    /// Restores the thread's registers, except the base of `gs` if a new one is given.
    pub(crate) fn finish(self, gs_base: Option<u64>) {
        let gs_base = gs_base.unwrap_or(self.before.gs_base);
        let after = Registers { orig_rax: u64::MAX, gs_base, ..self.before };
        self.leave(&after);
    }

    /// Restores all registers exactly, so that the kernel still restarts a system call that a
    /// signal has interrupted.
    pub(crate) fn finish_exactly(self) {
        let after = self.before;
        self.leave(&after);
    }

    fn leave(self, after: &Registers) {
        ptrace::set_registers(self.tid, after);
        self.missed.into_iter().for_each(|signal| ptrace::kill(self.tid, signal));
    }
}

/// The sentence for an `mmap` in the program's name that failed.
fn unmapped(bytes: u64, error: i32) -> Error {
    let remedy = match error {
        libc::EPERM | libc::EACCES => "a seccomp profile or a security module forbids it: run without it",
        libc::ENOMEM => "raise the limit of 'ulimit -v'",
        _ => "lightfoot needs address space of its own in the program",
    };
    let why = std::io::Error::from_raw_os_error(error);
    Error::new(
        ErrorKind::System,
        format!("mmap of {bytes} bytes into the program is refused ({why}): {remedy}"),
    )
}
