//! System calls in the name of a stopped process: how memory gets into it without any code of ours in it.
//!
//! A thread that stands at an instruction boundary is pointed at the vdso's `syscall` instruction, steps over it, and gets its registers back. Signals that arrive meanwhile are sent again.
//! **Leaves out** what is mapped where: whoever injects knows.

use crate::error::{Error, ErrorKind};
use crate::image::{auxiliary, system_call_in};
use crate::memory;
use crate::ptrace::{self, Registers, Wait};

const SYSINFO_EHDR: u64 = 33;

/// A thread that makes system calls for the host.
pub(crate) struct Injector {
    tid: i32,
    gadget: u64,
    before: Registers,
    missed: Vec<i32>,
}

/// A mapping that is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapping {
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
        let vdso = auxiliary(pid).get(&SYSINFO_EHDR).copied().unwrap_or(0);
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
        Ok(Injector { tid, gadget, before, missed: Vec::new() })
    }

    /// Below what the thread has on its stack.
    pub(crate) fn scratch(&self) -> u64 {
        (self.before.rsp - 4096) & !15
    }

    /// One system call; its result.
    pub(crate) fn call(&mut self, number: i64, a: [u64; 6]) -> i64 {
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

    fn stop(&self) -> Option<Wait> {
        loop {
            match ptrace::wait(self.tid) {
                Ok(None) => {}
                got => return got.ok().flatten().map(|(_, what)| what),
            }
        }
    }

    /// Opens one of our own descriptors there; at `at` a path fits for a while.
    pub(crate) fn open(&mut self, fd: i32, at: u64) -> Result<u64, Error> {
        const AT_FDCWD: u64 = -100i64 as u64;
        let path = format!("/proc/{}/fd/{fd}\0", ptrace::own_pid());
        let mut old = vec![0u8; path.len()];
        memory::read_target(self.tid, at, &mut old);
        memory::write_target(self.tid, at, path.as_bytes());
        let opened = self.call(libc::SYS_openat, [AT_FDCWD, at, libc::O_RDWR as u64, 0, 0, 0]);
        memory::write_target(self.tid, at, &old);
        u64::try_from(opened).map_err(|_| {
            let why = std::io::Error::from_raw_os_error(-opened as i32);
            Error::new(ErrorKind::System, format!("the program cannot open the shared memory ({why})"))
        })
    }

    /// Maps memory at exactly the address.
    pub(crate) fn map(&mut self, m: Mapping) -> Result<(), Error> {
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

    /// Everything as it was, but for the base of `gs` if one is given.
    pub(crate) fn finish(self, gs_base: Option<u64>) {
        let gs_base = gs_base.unwrap_or(self.before.gs_base);
        ptrace::set_registers(self.tid, &Registers { orig_rax: u64::MAX, gs_base, ..self.before });
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
