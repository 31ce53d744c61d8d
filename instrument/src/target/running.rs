//! What `/proc` says about a process that runs already: whether it can be measured, and if not, why
//! and what helps.

use super::memory;
use super::ptrace;
use crate::error::{Error, ErrorKind};
use crate::target::layout::{context, CONTEXTS_MAX};
use std::collections::HashMap;
use std::fs;
use std::io::Read;

/// Where the system says who may trace whom.
const PTRACE_SCOPE: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// The fields of `/proc/PID/status`.
struct Status(HashMap<String, String>);

impl Status {
    fn of(pid: i32) -> Option<Status> {
        let text = fs::read(format!("/proc/{pid}/status")).ok()?;
        let text = String::from_utf8_lossy(&text);
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        Some(Status(fields.map(|(name, value)| (name.into(), value.trim().into())).collect()))
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// The first number of a field; 0 if the field is missing.
    fn number(&self, name: &str) -> i32 {
        self.text(name).split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
    }

    fn state(&self) -> char {
        self.text("State").chars().next().unwrap_or('?')
    }
}

/// The tasks of a process.
pub(super) fn tasks(pid: i32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut tids: Vec<i32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    tids.sort_unstable();
    tids
}

/// Whether a task that cannot be traced runs no code of the program: it has ended, or it works for
/// the kernel (`io_uring`).
pub(super) fn is_no_thread(pid: i32, tid: i32) -> bool {
    let folder = format!("/proc/{pid}/task/{tid}");
    let Ok(stat) = fs::read_to_string(format!("{folder}/stat")) else { return true };
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    let name = fs::read_to_string(format!("{folder}/comm")).unwrap_or_default();
    matches!(state, Some('Z' | 'X')) || name.starts_with("iou-")
}

/// Refuses a process that cannot be measured, as far as `/proc` says it.
pub(super) fn check(pid: i32) -> Result<(), Error> {
    let status = Status::of(pid).filter(|_| pid > 0).ok_or_else(|| {
        let why = format!("no process has the number {pid}; 'pgrep NAME' prints the numbers of a program");
        Error::new(ErrorKind::NotFound, why)
    })?;
    let leader = status.number("Tgid");
    let own = Status::of(ptrace::own_pid());
    let of_own = |field| own.as_ref().map_or(0, |own| own.number(field));
    let tracer = status.number("TracerPid");
    let why = match status.state() {
        _ if leader != pid => format!("it is a thread of process {leader}: give --pid {leader}"),
        _ if pid == ptrace::own_pid() => "it is lightfoot itself: give the number of another process".into(),
        _ if pid == of_own("PPid") => {
            "it has started lightfoot and waits for it: measure it from another terminal".into()
        }
        _ if pid == of_own("TracerPid") => "it traces lightfoot: measure it from another terminal".into(),
        'Z' | 'X' => "it has ended, and only its status is left for its parent".into(),
        _ if status.text("VmSize").is_empty() => {
            "it is a thread of the kernel, which no tool can trace".into()
        }
        _ if tracer != 0 => {
            format!("process {tracer} ({}) traces it already: end that first", name_of(tracer))
        }
        'T' | 't' => return Err(is_stopped(pid)),
        _ => return check_program(pid, &status, of_own("Seccomp_filters")),
    };
    Err(refused(pid, &why))
}

/// Refuses a program that lightfoot cannot enter.
fn check_program(pid: i32, status: &Status, own_filters: i32) -> Result<(), Error> {
    let needed = context::BYTES * CONTEXTS_MAX as u64;
    let why = if is_32_bit(pid) {
        "it is a 32-bit program, and lightfoot measures 64-bit ones".to_string()
    } else if status.number("Seccomp") == 1 || status.number("Seccomp_filters") > own_filters {
        "it filters its system calls (seccomp), and lightfoot has to make some in its name".into()
    } else if status.text("x86_Thread_features").contains("shstk") {
        "it has a shadow stack, which lightfoot does not support: start it with \
         GLIBC_TUNABLES=glibc.cpu.x86_shstk=off"
            .into()
    } else if status.number("VmLck") > 0 && locks_all(pid) {
        "it locks all its memory (mlockall), and lightfoot's would be locked with it".into()
    } else if let Some(limit) = address_space_limit(pid).filter(|&limit| limit < needed) {
        format!(
            "measuring reserves {} GB of its address space, and its limit ('ulimit -v') allows {} KB: \
             'prlimit --as=unlimited --pid {pid}' raises it",
            (needed >> 30) + 1,
            limit >> 10
        )
    } else {
        return Ok(());
    };
    Err(refused(pid, &why))
}

/// Whether the process of a task has a handler for a signal.
pub(super) fn has_handler(tid: i32, signal: i32) -> bool {
    let caught = Status::of(tid).and_then(|status| u64::from_str_radix(status.text("SigCgt"), 16).ok());
    caught.is_some_and(|caught| caught >> (signal - 1) & 1 != 0)
}

/// The signals for which a process has a handler, or which it ignores, up to signal `last`.
pub(crate) fn signals_with_actions(pid: i32, last: i32) -> Vec<i32> {
    let Some(status) = Status::of(pid) else { return Vec::new() };
    let mask = |name| u64::from_str_radix(status.text(name), 16).unwrap_or(0);
    let any = mask("SigCgt") | mask("SigIgn");
    (1..=last).filter(|signal| any >> (signal - 1) & 1 != 0).collect()
}

fn refused(pid: i32, why: &str) -> Error {
    let name = name_of(pid);
    let named = if name.is_empty() { String::new() } else { format!(" ({name})") };
    Error::new(ErrorKind::Unsupported, format!("cannot measure process {pid}{named}: {why}"))
}

/// The name of a process.
fn name_of(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

fn is_32_bit(pid: i32) -> bool {
    let mut head = [0u8; 5];
    let file = fs::File::open(format!("/proc/{pid}/exe"));
    file.is_ok_and(|mut file| file.read_exact(&mut head).is_ok()) && head.starts_with(b"\x7fELF\x01")
}

/// Whether the stack is locked, as `mlockall` does. `mlock` locks ranges that a program names.
fn locks_all(pid: i32) -> bool {
    let text = fs::read(format!("/proc/{pid}/smaps")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut of_stack = text.lines().skip_while(|line| !line.ends_with("[stack]"));
    let flags = of_stack.find_map(|line| line.strip_prefix("VmFlags:"));
    flags.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "lo"))
}

/// The most bytes of address space that the process may have; `None` if there is no limit.
fn address_space_limit(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The error for a process that job control has stopped.
pub(super) fn is_stopped(pid: i32) -> Error {
    refused(pid, &format!("it is stopped (Ctrl-Z, SIGSTOP): let it run on with 'kill -CONT {pid}'"))
}

/// The error for a task that did not stop.
pub(super) fn does_not_stop(pid: i32, tid: i32) -> Error {
    let why = format!(
        "its thread {tid} did not stop within ten seconds, because it waits in the kernel where no signal \
         reaches it: try again later"
    );
    refused(pid, &why)
}

/// The error for a process that the system does not let this one trace.
pub(super) fn refusal(pid: i32, tid: i32, error: std::io::Error) -> Error {
    if error.raw_os_error() == Some(libc::ESRCH) {
        return Error::new(
            ErrorKind::NotFound,
            format!("process {pid} ended before lightfoot could enter it"),
        );
    }
    let uid = |pid| Status::of(pid).map(|status| status.number("Uid"));
    let (theirs, own) = (uid(tid), uid(ptrace::own_pid()));
    let scope = fs::read_to_string(PTRACE_SCOPE).ok().and_then(|text| text.trim().parse::<u32>().ok());
    let why = match scope {
        _ if theirs != own && own != Some(0) => {
            format!("it belongs to user {}: measure it as that user, or as root", theirs.unwrap_or(0))
        }
        Some(1 | 2) if own != Some(0) => format!(
            "{PTRACE_SCOPE} is {}: 'sysctl kernel.yama.ptrace_scope=0' as root allows it, or run lightfoot as root",
            scope.unwrap_or(1)
        ),
        Some(3) => format!("{PTRACE_SCOPE} is 3, which forbids tracing until the system starts anew"),
        _ => format!(
            "the system refuses to trace it (ptrace: {error}): it may have forbidden it (prctl PR_SET_DUMPABLE), or this \
             is a container without --cap-add=SYS_PTRACE"
        ),
    };
    Error::new(ErrorKind::PtraceRefused, refused(pid, &why).to_string())
}

/// Memory of a stopped task that calls made in its name may overwrite: [`SCRATCH_BYTES`] bytes of
/// its stack, whose contents the caller restores. `None` if its stack cannot be written.
///
/// [`SCRATCH_BYTES`]: super::handover::SCRATCH_BYTES
pub(crate) fn scratch(tid: i32, stack: u64) -> Option<u64> {
    const BELOW_STACK: u64 = 512;
    let is_writable = |at: &u64| {
        let mut bytes = [0u8; super::handover::SCRATCH_BYTES];
        memory::read_target(tid, *at, &mut bytes) == bytes.len()
            && memory::write_target(tid, *at, &bytes) == bytes.len()
    };
    [stack.wrapping_sub(BELOW_STACK) & !15, stack & !15].into_iter().find(is_writable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(pid: i32) -> String {
        check(pid).expect_err("refused").to_string()
    }

    #[test]
    fn processes_that_cannot_be_measured_are_refused_in_a_sentence() {
        assert!(why(i32::MAX).starts_with("no process has the number 2147483647;"));
        assert!(why(-1).starts_with("no process has the number -1;"));
        assert!(
            why(ptrace::own_pid()).ends_with("it is lightfoot itself: give the number of another process")
        );
        let thread = tasks(ptrace::own_pid()).into_iter().find(|&tid| tid != ptrace::own_pid());
        let own = ptrace::own_pid();
        assert!(why(thread.expect("a test has a thread of its own")).ends_with(&format!("give --pid {own}")));
    }

    #[test]
    fn limits_and_locks_of_this_process_are_read() {
        assert_eq!(address_space_limit(ptrace::own_pid()), memory::address_space_limit());
        assert!(!is_32_bit(ptrace::own_pid()) && !locks_all(ptrace::own_pid()));
        assert_eq!(address_space_limit(i32::MAX), None);
    }
}
