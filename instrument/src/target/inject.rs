//! System calls that a stopped process executes for the host, so that the host can map memory into
//! the process without injecting code.
//!
//! ```text
//!   save registers ──▶ rip = a `syscall` of the vdso, ──▶ one step ──▶ result ──▶ restore
//!                      arguments in registers                          in rax     registers
//! ```
//!
//! The thread must stand at an instruction boundary. Signals that arrive in the meantime are sent
//! again at the end. **Leaves out** the choice of addresses, which is the caller's, and the
//! transfer of descriptors (`handover`).

use crate::error::{Error, ErrorKind};
use crate::target::auxiliary::{system_call_in, Auxiliary};
use crate::target::ptrace;
use crate::target::ptrace::{Registers, Wait};

/// The bit of SIGTRAP in masks.
const TRAP: u64 = 1 << (libc::SIGTRAP - 1);

/// A thread that makes system calls for the host.
pub(crate) struct Injector {
    pub(crate) tid: i32,
    /// Address of a `syscall` instruction in the process.
    gadget: u64,
    /// The thread's registers before the calls.
    before: Registers,
    /// Signals that arrived during the calls.
    missed: Vec<i32>,
    /// Whether the thread blocks SIGTRAP. Then a step would unblock it and reset its action.
    blocks_trap: bool,
}

/// The arguments of an `mmap` at a fixed address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedMapping {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) protection: i32,
    pub(crate) flags: i32,
    /// A descriptor of the process; all bits set for none.
    pub(crate) fd: u64,
    pub(crate) offset: u64,
}

impl Injector {
    /// An injector for the first thread of a process that stands behind its exec.
    pub(crate) fn new(pid: i32) -> Result<Injector, Error> {
        let vdso = Auxiliary::of(pid).vdso();
        let gadget = system_call_in(pid, vdso);
        let gadget = gadget.ok_or_else(|| {
            Error::system(
                "cannot read the program's vdso (the system refuses process_vm_readv, or was booted with vdso=0)",
            )
        })?;
        Injector::at(pid, gadget)
    }

    /// An injector for thread `tid`; its process has a `syscall` instruction at `gadget`.
    pub(crate) fn at(tid: i32, gadget: u64) -> Result<Injector, Error> {
        let before = ptrace::registers(tid)
            .ok_or_else(|| Error::system("the program is gone before its registers could be read"))?;
        let blocks_trap = ptrace::signal_mask(tid) & TRAP != 0;
        Ok(Injector { tid, gadget, before, missed: Vec::new(), blocks_trap })
    }

    /// Makes all calls without steps from now on.
    pub(crate) fn without_steps(&mut self) {
        self.blocks_trap = true;
    }

    /// The thread that makes the calls.
    pub(crate) fn tid(&self) -> i32 {
        self.tid
    }

    /// An address below the thread's stack pointer where arguments can be written.
    pub(crate) fn scratch(&self) -> u64 {
        (self.before.rsp - 4096) & !15
    }

    /// Makes one system call; returns its result.
    pub(crate) fn call(&mut self, number: i64, arguments: [u64; 6]) -> i64 {
        if self.blocks_trap {
            return self.call_without_steps(number, arguments);
        }
        let mut registers = self.before;
        (registers.rip, registers.rax, registers.orig_rax) = (self.gadget, number as u64, u64::MAX);
        (registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9) =
            (arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
        ptrace::set_registers(self.tid, &registers);
        while ptrace::step(self.tid, 0) {
            match self.stop() {
                Some(Wait::Signal(libc::SIGTRAP)) => break,
                Some(Wait::Signal(signal)) => self.missed.push(signal),
                // In a group stop only the group's other tasks stop.
                Some(Wait::Event(..)) => {}
                _ => return -1,
            }
        }
        ptrace::registers(self.tid).map_or(-1, |registers| registers.rax as i64)
    }

    /// Makes one system call with stops at its beginning and end; returns its result. These stops
    /// are no signals, so they do not change SIGTRAP, but they take twice as long.
    pub(crate) fn call_without_steps(&mut self, number: i64, arguments: [u64; 6]) -> i64 {
        const SYSTEM_CALL: i32 = libc::SIGTRAP | 0x80;
        let mut registers = self.before;
        (registers.rip, registers.rax, registers.orig_rax) = (self.gadget, number as u64, u64::MAX);
        (registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9) =
            (arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
        ptrace::set_registers(self.tid, &registers);
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
        ptrace::registers(self.tid).map_or(-1, |registers| registers.rax as i64)
    }

    /// Waits for the thread's next stop.
    fn stop(&self) -> Option<Wait> {
        loop {
            match ptrace::wait(self.tid) {
                Ok(None) => {}
                got => return got.ok().flatten().map(|(_, what)| what),
            }
        }
    }

    /// Keeps a large mapping of the engine out of core dumps.
    pub(crate) fn keep_out_of_core(&mut self, address: u64, bytes: u64) {
        const MADV_DONTDUMP: u64 = 16;
        // If the system refuses this, core dumps are only larger.
        self.call(libc::SYS_madvise, [address, bytes, MADV_DONTDUMP, 0, 0, 0]);
    }

    /// Maps memory at exactly the mapping's address.
    pub(crate) fn map(&mut self, mapping: WantedMapping) -> Result<(), Error> {
        let arguments = [
            mapping.address,
            mapping.bytes,
            mapping.protection as u64,
            mapping.flags as u64,
            mapping.fd,
            mapping.offset,
        ];
        let got = self.call(libc::SYS_mmap, arguments);
        if got as u64 == mapping.address {
            return Ok(());
        }
        Err(unmapped(mapping.bytes, -got as i32))
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

/// The error for a failed `mmap` in the program.
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
