//! The system calls of the slow twin: start a program that stops at its first instruction, step it,
//! read its state.
//!
//! Each function is a safe wrapper of one ptrace request or one CPUID leaf, and none depends on
//! instructions. This is the only file of the twin with `unsafe`. It shares no code with the
//! engine's own ptrace layer, so that a mistake there shows as a difference. Threads and forked
//! children are not followed. Source: ptrace(2), Linux 6.18 as measured.

use crate::outcome::Command;
use libc::{c_int, c_void, pid_t, user_regs_struct};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::ExitStatus;

/// `NT_X86_XSTATE` of elf.h: the register set that holds an XSAVE image.
const NT_X86_XSTATE: usize = 0x202;

/// The most bytes of an XSAVE image; the largest at present, with AMX, has 11,008.
const IMAGE_BYTES_MAX: usize = 32 * 1024;

/// A program that is stopped between two instructions.
pub(super) struct Tracee {
    pid: pid_t,
    memory: File,
}

/// The reason of a stop, or how the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitStatus {
    /// The program exited with this status.
    Exited(i32),
    /// This signal ended the program.
    Killed(i32),
    /// The program is about to receive this signal (`SIGTRAP` for a completed step).
    Signal(i32),
    /// The program has just executed another program.
    Exec,
}

impl Tracee {
    /// Starts `command` with address randomisation off and returns it stopped before its first
    /// instruction.
    pub(super) fn launch(command: &Command) -> io::Result<Tracee> {
        let mut child = std::process::Command::new(&command.program);
        child.args(&command.arguments);
        // SAFETY: between fork and exec the closure makes two system calls and touches no memory of
        // the parent.
        unsafe { child.pre_exec(prepare_child) };
        let pid = child.spawn()?.id() as pid_t;
        wait(pid)?;
        let tracee = Tracee { pid, memory: open_memory(pid)? };
        let options = libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACEEXEC;
        tracee.request(libc::PTRACE_SETOPTIONS, 0, options as usize)?;
        Ok(tracee)
    }

    /// The general registers.
    pub(super) fn registers(&self) -> io::Result<user_regs_struct> {
        // SAFETY: an all-zero user_regs_struct is a valid value; the structure is plain integers.
        let mut registers: user_regs_struct = unsafe { std::mem::zeroed() };
        self.request(libc::PTRACE_GETREGS, 0, &raw mut registers as usize)?;
        Ok(registers)
    }

    /// Replaces the general registers.
    pub(super) fn set_registers(&self, registers: &user_regs_struct) -> io::Result<()> {
        self.request(libc::PTRACE_SETREGS, 0, &raw const *registers as usize)
    }

    /// The XSAVE image (standard format) of all other registers.
    pub(super) fn extended(&self) -> io::Result<Vec<u8>> {
        let mut image = vec![0u8; IMAGE_BYTES_MAX];
        let mut window = libc::iovec { iov_base: image.as_mut_ptr().cast::<c_void>(), iov_len: image.len() };
        self.request(libc::PTRACE_GETREGSET, NT_X86_XSTATE, &raw mut window as usize)?;
        image.truncate(window.iov_len);
        Ok(image)
    }

    /// Reads the program's memory; returns the number of bytes that could be read.
    pub(super) fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        self.memory.read_at(buffer, address).unwrap_or(0)
    }

    /// Writes the program's memory.
    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.memory.write_all_at(bytes, address)
    }

    /// Delivers `signal` (0 for none) and lets the program run for at most one instruction.
    pub(super) fn step(&mut self, signal: i32) -> io::Result<WaitStatus> {
        self.request(libc::PTRACE_SINGLESTEP, 0, signal as usize)?;
        let stop = wait(self.pid)?;
        if stop == WaitStatus::Exec {
            self.memory = open_memory(self.pid)?;
        }
        Ok(stop)
    }

    /// `si_code` of the signal that stopped the program; `None` if the stop has another reason.
    pub(super) fn signal_code(&self) -> Option<i32> {
        // SAFETY: an all-zero siginfo_t is a valid value; the structure is plain integers.
        let mut information: libc::siginfo_t = unsafe { std::mem::zeroed() };
        self.request(libc::PTRACE_GETSIGINFO, 0, &raw mut information as usize).ok()?;
        Some(information.si_code)
    }

    /// Makes a ptrace request. `data` is an integer, or the address of a live structure of the type
    /// that `request` needs.
    fn request(&self, request: libc::c_uint, address: usize, data: usize) -> io::Result<()> {
        // SAFETY: every caller passes, as `data`, a number or a pointer to a local of the request's
        // own type that outlives the call.
        let result = unsafe { libc::ptrace(request, self.pid, address, data) };
        if result == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        // SAFETY: `kill` and `waitpid` take numbers and a live integer. `pid` is a child that was
        // not waited for, or, after its end, no child, which is an error without effect.
        unsafe {
            let mut status: c_int = 0;
            if libc::waitpid(self.pid, &raw mut status, libc::WNOHANG | libc::__WALL) == 0 {
                libc::kill(self.pid, libc::SIGKILL);
                libc::waitpid(self.pid, &raw mut status, libc::__WALL);
            }
        }
    }
}

/// Prepares the child: switches off address randomisation, and makes the parent its tracer.
fn prepare_child() -> io::Result<()> {
    // SAFETY: both calls take numbers only.
    unsafe {
        if libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) == -1 {
            return Err(io::Error::last_os_error());
        }
        if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn open_memory(pid: pid_t) -> io::Result<File> {
    File::options().read(true).write(true).open(format!("/proc/{pid}/mem"))
}

/// Waits for the next stop or the end.
fn wait(pid: pid_t) -> io::Result<WaitStatus> {
    let mut status: c_int = 0;
    loop {
        // SAFETY: `status` is a live c_int.
        if unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) } != -1 {
            return Ok(wait_status(status));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn wait_status(status: c_int) -> WaitStatus {
    let exit = ExitStatus::from_raw(status);
    if let Some(code) = exit.code() {
        WaitStatus::Exited(code)
    } else if let Some(signal) = exit.signal() {
        WaitStatus::Killed(signal)
    } else if status >> 16 == libc::PTRACE_EVENT_EXEC {
        WaitStatus::Exec
    } else {
        WaitStatus::Signal((status >> 8) & 0xff)
    }
}

/// A sub-leaf of CPUID leaf 0xD: size and offset of an XSAVE component, and its flags.
#[allow(unused_unsafe, reason = "CPUID is a safe function from some version of Rust on")]
pub(super) fn xsave_leaf(component: u32) -> (u32, u32, u32) {
    // SAFETY: every x86-64 processor has CPUID.
    let leaf = unsafe { std::arch::x86_64::__cpuid_count(0xd, component) };
    (leaf.eax, leaf.ebx, leaf.ecx)
}
