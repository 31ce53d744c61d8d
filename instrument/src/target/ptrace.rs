//! The system calls by which the host controls the target, each wrapped once.
//!
//! The calls use `PTRACE_SEIZE`, which distinguishes kinds of stops, allows a thread to stay in a
//! group stop, and ends the target with the host (`PTRACE_O_EXITKILL`). The thread that has seized
//! the target must make all other calls too. One of the few files with `unsafe`. Source: ptrace(2),
//! Linux 5.10 and later.

use crate::error::{Error, ErrorKind};
use crate::target::inherited;
use std::ffi::CString;
use std::mem::size_of;
use std::os::raw::c_void;

pub(crate) use libc::user_regs_struct as Registers;

/// The details of a signal (`siginfo_t`), as bytes.
pub(crate) type SignalInfo = [u8; 128];

/// An event of a tracee, as `waitpid` reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The tracee has ended with this status.
    Exited(i32),
    /// This signal has ended the tracee.
    Signaled(i32),
    /// The tracee is about to receive this signal.
    Signal(i32),
    /// A ptrace event (`PTRACE_EVENT_*`) with the stop's signal.
    Event(i32, i32),
}

// Requests that the `libc` crate lacks.
const GETSIGMASK: u32 = 0x420a;
const SETSIGMASK: u32 = 0x420b;
const GET_RSEQ_CONFIGURATION: u32 = 0x420f;

fn request(kind: u32, tid: i32, address: usize, data: usize) -> i64 {
    // SAFETY: every caller passes integers, or a pointer to a live value of the size that the
    // request reads or writes.
    unsafe { libc::ptrace(kind, tid, address, data) }
}

/// The options that the engine needs.
const OPTIONS: i32 = libc::PTRACE_O_EXITKILL
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACESYSGOOD;

/// Attaches to a thread without stopping it, with all the options that the engine needs.
pub(crate) fn seize(tid: i32) -> Result<(), Error> {
    if request(libc::PTRACE_SEIZE, tid, 0, OPTIONS as usize) == 0 {
        return Ok(());
    }
    let why = std::io::Error::last_os_error();
    let remedy =
        "in a container allow it with --cap-add=SYS_PTRACE; elsewhere see /proc/sys/kernel/yama/ptrace_scope";
    Err(Error::new(
        ErrorKind::PtraceRefused,
        format!("the system refuses to trace the program (ptrace: {why}); {remedy}"),
    ))
}

/// Makes a tracee end with its tracer from now on, as tracees of [`seize`] do.
pub(crate) fn end_with_tracer(tid: i32) {
    let options = libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACESYSGOOD;
    request(libc::PTRACE_SETOPTIONS, tid, 0, options as usize);
}

/// Attaches to a running thread without stopping it. The thread runs on alone if its tracer ends.
pub(crate) fn seize_alone(tid: i32) -> Result<(), std::io::Error> {
    let options = libc::PTRACE_O_TRACESYSGOOD as usize;
    match request(libc::PTRACE_SEIZE, tid, 0, options) {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Gives a stopped tracee all the options that the engine needs.
pub(crate) fn set_options(tid: i32) {
    request(libc::PTRACE_SETOPTIONS, tid, 0, OPTIONS as usize);
}

/// Address, bytes and signature of the area for restartable sequences that the stopped `tid` has
/// registered; `None` if it has none, or if the kernel cannot say (before Linux 5.13).
pub(crate) fn restartable_area(tid: i32) -> Option<(u64, u32, u32)> {
    // The kernel's `struct ptrace_rseq_configuration`: address, bytes, signature, flags, padding.
    let mut words = [0u64; 3];
    let into = words.as_mut_ptr() as usize;
    let got = request(GET_RSEQ_CONFIGURATION, tid, std::mem::size_of_val(&words), into);
    (got > 0 && words[0] != 0).then_some((words[0], words[1] as u32, (words[1] >> 32) as u32))
}

/// Attaches to a thread that is about to execute another program. The thread runs on alone if its
/// tracer ends.
pub(crate) fn seize_until_exec(tid: i32) -> bool {
    let options = libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_TRACESYSGOOD;
    request(libc::PTRACE_SEIZE, tid, 0, options as usize) == 0
}

/// Stops a seized thread.
pub(crate) fn interrupt(tid: i32) {
    request(libc::PTRACE_INTERRUPT, tid, 0, 0);
}

/// Lets `tid` run to the next beginning or end of a system call, and delivers `signal` (0: none).
pub(crate) fn to_system_call(tid: i32, signal: i32) {
    request(libc::PTRACE_SYSCALL, tid, 0, signal as usize);
}

/// Lets `tid` run on, and delivers `signal` (0: none).
pub(crate) fn resume(tid: i32, signal: i32) {
    request(libc::PTRACE_CONT, tid, 0, signal as usize);
}

/// Lets `tid` stay in a group stop, in which it can still be continued.
pub(crate) fn listen(tid: i32) {
    request(libc::PTRACE_LISTEN, tid, 0, 0);
}

/// Detaches from `tid`, and delivers `signal` (0: none).
pub(crate) fn detach(tid: i32, signal: i32) {
    request(libc::PTRACE_DETACH, tid, 0, signal as usize);
}

/// Steps `tid` over one instruction, or delivers `signal`; returns false if the tracee is gone.
pub(crate) fn step(tid: i32, signal: i32) -> bool {
    request(libc::PTRACE_SINGLESTEP, tid, 0, signal as usize) == 0
}

/// Brings `tid`, which stands at the end of a system call, to a stop from which the kernel still
/// repeats a call that the thread's registers name.
pub(crate) fn stop_in_kernel(tid: i32) {
    interrupt(tid);
    resume(tid, 0);
    while let Some((_, Wait::Signal(_))) = wait_for(tid) {
        interrupt(tid);
        resume(tid, 0);
    }
}

/// The general registers of `tid`; `None` if the tracee is gone.
pub(crate) fn registers(tid: i32) -> Option<Registers> {
    // SAFETY: the type is plain old data, and all zeroes are a valid value of it.
    let mut registers: Registers = unsafe { std::mem::zeroed() };
    (request(libc::PTRACE_GETREGS, tid, 0, std::ptr::from_mut(&mut registers) as usize) == 0)
        .then_some(registers)
}

/// Sets the general registers of `tid`.
pub(crate) fn set_registers(tid: i32, registers: &Registers) {
    request(libc::PTRACE_SETREGS, tid, 0, std::ptr::from_ref(registers) as usize);
}

/// A set of registers of `tid`, at most `bytes_max` bytes, or the number of the error.
pub(crate) fn register_set(tid: i32, kind: u64, bytes_max: usize) -> Result<Vec<u8>, i32> {
    let mut set = vec![0u8; bytes_max];
    let mut vector = libc::iovec { iov_base: set.as_mut_ptr().cast(), iov_len: set.len() };
    let vector = &raw mut vector;
    if request(libc::PTRACE_GETREGSET, tid, kind as usize, vector as usize) != 0 {
        return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO));
    }
    // SAFETY: the vector is live, and the kernel has stored the number of written bytes in it.
    set.truncate(unsafe { (*vector).iov_len });
    Ok(set)
}

/// Sets a set of registers of `tid` to what [`register_set`] gave.
pub(crate) fn set_register_set(tid: i32, kind: u64, set: &[u8]) {
    let mut vector = libc::iovec { iov_base: set.as_ptr().cast_mut().cast(), iov_len: set.len() };
    request(libc::PTRACE_SETREGSET, tid, kind as usize, &raw mut vector as usize);
}

/// The details of the signal that stopped `tid`.
pub(crate) fn signal_info(tid: i32) -> SignalInfo {
    let mut info = [0u8; 128];
    request(libc::PTRACE_GETSIGINFO, tid, 0, info.as_mut_ptr() as usize);
    info
}

/// Sets the details of the signal that is about to be delivered to `tid`.
pub(crate) fn set_signal_info(tid: i32, info: &SignalInfo) {
    request(libc::PTRACE_SETSIGINFO, tid, 0, info.as_ptr() as usize);
}

/// The signals that the stopped `tid` blocks. If it is in a call with a temporary mask (such as
/// `sigsuspend`), these are the signals that it blocks after the call.
pub(crate) fn signal_mask(tid: i32) -> u64 {
    let mut mask = 0u64;
    request(GETSIGMASK, tid, size_of::<u64>(), std::ptr::from_mut(&mut mask) as usize);
    mask
}

/// Sets the signals that the stopped `tid` blocks.
pub(crate) fn set_signal_mask(tid: i32, mask: u64) {
    request(SETSIGMASK, tid, size_of::<u64>(), std::ptr::from_ref(&mask) as usize);
}

/// The message of the last ptrace event.
pub(crate) fn event_message(tid: i32) -> u64 {
    let mut message = 0u64;
    request(libc::PTRACE_GETEVENTMSG, tid, 0, std::ptr::from_mut(&mut message) as usize);
    message
}

/// Waits for an event of `tid` (-1: of any tracee of this thread). `None` if a signal interrupted
/// the wait, `Err` if no tracee is left.
pub(crate) fn wait(tid: i32) -> Result<Option<(i32, Wait)>, ()> {
    wait_with(tid, 0)
}

fn wait_with(tid: i32, flags: i32) -> Result<Option<(i32, Wait)>, ()> {
    let mut status = 0;
    // SAFETY: `status` is a live integer.
    let got = unsafe { libc::waitpid(tid, &mut status, libc::__WALL | libc::__WNOTHREAD | flags) };
    if got == 0 {
        return Ok(None);
    }
    if got < 0 {
        let interrupted = std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR);
        return if interrupted { Ok(None) } else { Err(()) };
    }
    let what = if libc::WIFEXITED(status) {
        Wait::Exited(libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        Wait::Signaled(libc::WTERMSIG(status))
    } else if status >> 16 != 0 {
        Wait::Event(status >> 16, libc::WSTOPSIG(status))
    } else {
        Wait::Signal(libc::WSTOPSIG(status))
    };
    Ok(Some((got, what)))
}

/// An event of any tracee of this thread that has one. `None` if there is none now, `Err` if no
/// tracee is left.
pub(crate) fn poll() -> Result<Option<(i32, Wait)>, ()> {
    wait_with(-1, libc::WNOHANG)
}

/// Waits for an event of `tid`, and continues after interruptions; `None` if no tracee is left.
pub(crate) fn wait_for(tid: i32) -> Option<(i32, Wait)> {
    loop {
        match wait(tid) {
            Ok(None) => {}
            got => return got.ok().flatten(),
        }
    }
}

/// A handle of a process, which never refers to another process, even if the number is used again.
pub(crate) struct Handle(i32);

impl Handle {
    /// Opens a handle of a process that was not waited for yet; `None` if the system has no such
    /// handles.
    pub(crate) fn open(pid: i32) -> Option<Handle> {
        // SAFETY: the call takes integers only.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as i32;
        (fd >= 0).then_some(Handle(fd))
    }

    /// Sends a signal, if the process has not ended.
    pub(crate) fn kill(&self, signal: i32) {
        let no_details = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: `self` owns the descriptor, and the kernel accepts a null pointer for the
        // details.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.0, signal, no_details, 0) };
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: `self` owns the descriptor, and nothing uses it after this.
        unsafe { libc::close(self.0) };
    }
}

/// Sends a signal to one thread of a process.
pub(crate) fn kill_thread(pid: i32, tid: i32, signal: i32) {
    // SAFETY: the call takes integers only.
    unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, signal) };
}

/// Sleeps until a child has ended, but does not take its status; stops do not count. Returns at
/// once if the system has no handles of processes.
pub(crate) fn until_ended(pid: i32) {
    // SAFETY: the call takes integers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as i32;
    if fd < 0 {
        return;
    }
    let mut ready = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: `poll` gets one live element, and this function owns the descriptor that it closes.
    unsafe {
        while libc::poll(&raw mut ready, 1, -1) < 0
            && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
        {}
        libc::close(fd);
    }
}

/// Sends a signal to a process.
pub(crate) fn kill(pid: i32, signal: i32) {
    // SAFETY: the call takes integers only.
    unsafe { libc::kill(pid, signal) };
}

/// The numbers of a task in each PID namespace, from that of `/proc` to the task's own.
pub(crate) fn numbers(tid: i32) -> Vec<i32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let own = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    own.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// This process's number.
pub(crate) fn own_pid() -> i32 {
    // SAFETY: the call takes no arguments.
    unsafe { libc::getpid() }
}

/// The calling thread's number.
pub(crate) fn own_tid() -> i32 {
    // SAFETY: the call takes no arguments.
    unsafe { libc::gettid() }
}

/// The outcome of [`spawn`].
pub(crate) enum Spawn {
    /// The child is seized and runs towards its exec. `fixed_addresses` says whether the child's
    /// addresses are as requested.
    Started { pid: i32, fixed_addresses: bool },
    /// `execv` failed with this error number.
    ExecFailed(i32),
}

/// What a program does not inherit at its start.
#[derive(Debug, Default)]
pub(crate) struct Birth {
    /// Whether the kernel may randomise addresses.
    pub(crate) randomise: bool,
    /// The environment; `None` for this process's.
    pub(crate) environment: Option<Vec<CString>>,
    /// The limit of the stack; `None` for this process's.
    pub(crate) stack_bytes: Option<u64>,
}

/// Pointers to strings, with a null at the end.
fn pointers_of(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Starts the program at `path`. The program inherits the state that this process has inherited.
///
/// ```text
///   host    fork ─────────────▶ seize ──▶ one byte ───────────────────▶ read the answer
///                  │                        │                              ▲
///   child          └▶ wait for the byte ◀───┘ ──▶ personality ──▶ exec ────┘
/// ```
///
/// The answer is one byte if the exec succeeds, and the number of the error follows if it fails.
/// Between fork and exec the child makes system calls only, so the host may have threads.
pub(crate) fn spawn(path: &CString, argv: &[CString], birth: &Birth) -> Result<Spawn, Error> {
    let pointers = pointers_of(argv);
    let environment = birth.environment.as_deref().map(pointers_of);
    let randomise = birth.randomise;
    let (mut go, mut told) = ([0i32; 2], [0i32; 2]);
    // SAFETY: both arrays have room for the two descriptors that `pipe2` stores.
    let refused = unsafe {
        libc::pipe2(go.as_mut_ptr(), libc::O_CLOEXEC) != 0
            || libc::pipe2(told.as_mut_ptr(), libc::O_CLOEXEC) != 0
    };
    if refused {
        return Err(Error::system("cannot make a pipe"));
    }
    // SAFETY: the child makes only async-signal-safe calls, on memory that was prepared before.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(Error::system("cannot fork"));
    }
    if pid == 0 {
        // SAFETY: system calls on integers and on memory that was prepared before the fork.
        unsafe {
            libc::close(go[1]);
            let mut byte = 0u8;
            // Without this byte, the host has ended or could not seize the child. Then the child
            // must not run the program.
            if libc::read(go[0], std::ptr::from_mut(&mut byte).cast(), 1) != 1 {
                libc::_exit(127);
            }
            const ADDR_NO_RANDOMIZE: libc::c_ulong = 0x0040000;
            let old = libc::personality(0xffff_ffff);
            let fixed =
                randomise || old >= 0 && libc::personality(old as libc::c_ulong | ADDR_NO_RANDOMIZE) >= 0;
            libc::write(told[1], [u8::from(fixed)].as_ptr().cast(), 1);
            inherited::hand_down();
            // The kernel places mappings below the room that the stack may grow into.
            if let Some(limit) = birth.stack_bytes {
                let mut limits: libc::rlimit = std::mem::zeroed();
                libc::getrlimit(libc::RLIMIT_STACK, &mut limits);
                limits.rlim_cur = limits.rlim_max.min(limit);
                libc::setrlimit(libc::RLIMIT_STACK, &limits);
            }
            match &environment {
                Some(environment) => libc::execve(path.as_ptr(), pointers.as_ptr(), environment.as_ptr()),
                None => libc::execv(path.as_ptr(), pointers.as_ptr()),
            };
            let error = *libc::__errno_location();
            libc::write(told[1], std::ptr::from_ref(&error).cast(), 4);
            libc::_exit(127);
        }
    }
    let seized = seize(pid);
    let mut answer = [0u8; 8];
    let mut got = 0usize;
    // SAFETY: this function owns the descriptors, and `answer` has room for the bytes that are
    // read.
    unsafe {
        if seized.is_ok() {
            libc::write(go[1], [1u8].as_ptr().cast(), 1);
        } else {
            libc::kill(pid, libc::SIGKILL);
        }
        for fd in [go[0], go[1], told[1]] {
            libc::close(fd);
        }
        // The loop ends after the error number, or at the successful exec, which closes the other
        // end of the pipe. The exec event stops the tracee only after that.
        while got < 8 {
            let count = libc::read(told[0], answer.as_mut_ptr().add(got).cast::<c_void>(), 8 - got);
            if count <= 0 {
                break;
            }
            got += count as usize;
        }
        libc::close(told[0]);
    }
    if let Err(error) = seized {
        let _ = wait(pid);
        return Err(error);
    }
    if got >= 5 {
        let _ = wait(pid);
        return Ok(Spawn::ExecFailed(i32::from_le_bytes([answer[1], answer[2], answer[3], answer[4]])));
    }
    Ok(Spawn::Started { pid, fixed_addresses: answer[0] == 1 })
}
