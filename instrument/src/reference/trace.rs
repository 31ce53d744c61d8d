//! The system calls of the slow twin: launch a program stopped at its first instruction, step it,
//! look at it.
//!
//! Everything here is one ptrace request or one CPUID leaf in a safe coat; nothing here knows what
//! an instruction is. This is the only file of the twin that holds `unsafe`. It shares no code with
//! the engine's own ptrace layer on purpose: a mistake there must not be able to hide here. Threads
//! and forked children are not followed. Source: ptrace(2), Linux 6.18 as measured.

use crate::outcome::Command;
use libc::{c_int, c_void, pid_t, user_regs_struct};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::ExitStatus;

/// `NT_X86_XSTATE` of elf.h: the register set that holds an XSAVE image.
const NT_X86_XSTATE: usize = 0x202;

/// Larger than any XSAVE image of today (with AMX: 11,008 bytes).
const IMAGE_BYTES_MAX: usize = 32 * 1024;

/// A program that stands still between two instructions.
pub(super) struct Tracee {
    pid: pid_t,
    memory: File,
}

/// Why it stands still, or that it never will again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitStatus {
    /// Left with this status.
    Exited(i32),
    /// Ended by this signal.
    Killed(i32),
    /// About to receive this signal (`SIGTRAP` for a completed step).
    Signal(i32),
    /// Has just become another program.
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

    /// General registers.
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

    /// Reads the program's memory; fewer bytes than asked for when a mapping ends, none where there
    /// is no memory.
    pub(super) fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        self.memory.read_at(buffer, address).unwrap_or(0)
    }

    /// Writes the program's memory.
    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.memory.write_all_at(bytes, address)
    }

    /// Lets the program receive `signal` (0 for none) and run until something stops it, one
    /// instruction later at most.
    pub(super) fn step(&mut self, signal: i32) -> io::Result<WaitStatus> {
        self.request(libc::PTRACE_SINGLESTEP, 0, signal as usize)?;
        let stop = wait(self.pid)?;
        if stop == WaitStatus::Exec {
            self.memory = open_memory(self.pid)?;
        }
        Ok(stop)
    }

    /// `si_code` of the signal that stopped the program, `None` at a stop that is not a signal's.
    pub(super) fn signal_code(&self) -> Option<i32> {
        // SAFETY: an all-zero siginfo_t is a valid value; the structure is plain integers.
        let mut information: libc::siginfo_t = unsafe { std::mem::zeroed() };
        self.request(libc::PTRACE_GETSIGINFO, 0, &raw mut information as usize).ok()?;
        Some(information.si_code)
    }

    /// One ptrace request; `data` is an integer or the address of a live structure of the kind that
    /// `request` wants.
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
        // SAFETY: kill and waitpid take numbers; `pid` is our unreaped child, or (after its end) no
        // child of ours, which is an error that we ignore.
        unsafe {
            let mut status: c_int = 0;
            if libc::waitpid(self.pid, &raw mut status, libc::WNOHANG | libc::__WALL) == 0 {
                libc::kill(self.pid, libc::SIGKILL);
                libc::waitpid(self.pid, &raw mut status, libc::__WALL);
            }
        }
    }
}

/// Runs in the child: no address randomisation, traced by its parent.
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

/// One sub-leaf of CPUID leaf 0xD: size and offset of an XSAVE component, and its flags.
#[allow(unused_unsafe, reason = "CPUID is a safe function from some version of Rust on")]
pub(super) fn xsave_leaf(component: u32) -> (u32, u32, u32) {
    // SAFETY: every x86-64 processor has CPUID.
    let leaf = unsafe { std::arch::x86_64::__cpuid_count(0xd, component) };
    (leaf.eax, leaf.ebx, leaf.ecx)
}
