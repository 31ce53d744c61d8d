//! Identifies the thread that made a request, by the memory that its process has mapped.
//!
//! A request contains the numbers of its process and thread. The program may forge them, and in a
//! PID namespace they differ from the host's numbers for the same thread. So these numbers only
//! choose among the processes of the run. A process belongs to the run if it has the run's memory
//! file mapped at the mailbox's address: the host maps it there behind an exec, only `fork` passes
//! the mapping on, and the kernel chooses no such address by itself. Unlike parentage, this also
//! recognises a daemon whose parents are gone. **Leaves out** whether the thread really waits for
//! an answer, which `follow` checks once the thread has stopped.

use crate::target::memory::Shared;
use crate::target::ptrace;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

/// A thread of the run, by its numbers in the host's `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallingThread {
    pub(super) pid: i32,
    pub(super) tid: i32,
}

/// The mapping by which processes of the run are recognised: the run's memory file at the mailbox's
/// address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemoryMark {
    /// The beginning of the mapping's line in `/proc/PID/maps`.
    start: String,
    /// The fields behind the permissions in that line.
    file: String,
}

impl MemoryMark {
    /// The mark of processes that have `shared` mapped at `mailbox`, from the file's beginning.
    pub(super) fn new(shared: &Shared, mailbox: u64) -> MemoryMark {
        let descriptor = shared.files()[0].as_raw_fd();
        let file = fs::metadata(format!("/proc/self/fd/{descriptor}"));
        let (device, inode) = file.map_or((0, 0), |file| (file.dev(), file.ino()));
        let (major, minor) = (libc::major(device), libc::minor(device));
        MemoryMark {
            start: format!("{mailbox:08x}-"),
            file: format!("00000000 {major:02x}:{minor:02x} {inode}"),
        }
    }

    /// Whether the process belongs to the run.
    pub(super) fn is_on(&self, pid: i32) -> bool {
        let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
        maps.split(|byte| *byte == b'\n').any(|line| self.names(&String::from_utf8_lossy(line)))
    }

    /// Whether a line of `/proc/PID/maps` describes the mapping.
    fn names(&self, line: &str) -> bool {
        let Some(rest) = line.strip_prefix(&self.start) else { return false };
        let mut fields = rest.split_ascii_whitespace().skip(2);
        let found: Vec<&str> = fields.by_ref().take(3).collect();
        found.join(" ") == self.file
    }

    /// The thread of the run that calls itself `tid`, in a process that calls itself `pid`.
    pub(super) fn find(&self, pid: i32, tid: i32) -> Option<CallingThread> {
        let own = CallingThread { pid, tid };
        if is_called(own, pid, tid) && self.is_on(pid) {
            return Some(own);
        }
        // The process may be in another PID namespace, so search by the innermost numbers.
        let processes = fs::read_dir("/proc").ok()?.flatten();
        let processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut threads = processes
            .filter(|&process: &i32| ptrace::numbers(process).last() == Some(&pid))
            .filter_map(|process| Some(CallingThread { pid: process, tid: thread_called(process, tid)? }));
        threads.find(|caller| self.is_on(caller.pid))
    }
}

/// Whether a thread calls itself `tid`, and its process `pid`.
fn is_called(caller: CallingThread, pid: i32, tid: i32) -> bool {
    tasks(caller.pid).contains(&caller.tid)
        && ptrace::numbers(caller.pid).last() == Some(&pid)
        && ptrace::numbers(caller.tid).last() == Some(&tid)
}

/// The thread of a process that calls itself `tid`.
fn thread_called(process: i32, tid: i32) -> Option<i32> {
    tasks(process).into_iter().find(|&task| ptrace::numbers(task).last() == Some(&tid))
}

fn tasks(process: i32) -> Vec<i32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    tasks.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_the_runs_only_with_its_file_at_its_address() {
        let mark = MemoryMark { start: "50000000-".into(), file: "00000000 00:01 77".into() };
        let line =
            "50000000-50003000 rw-s 00000000 00:01 77                         /memfd:lightfoot (deleted)";
        assert!(mark.names(line));
        for (from, to) in
            [("50000000-", "50001000-"), (" 77 ", " 78 "), ("00000000 00", "00001000 00"), ("00:01", "00:02")]
        {
            assert!(!mark.names(&line.replacen(from, to, 1)), "{to}");
        }
    }

    #[test]
    fn this_process_is_no_process_of_a_run() {
        let shared = Shared::new(4096).unwrap();
        let (pid, mark) = (ptrace::own_pid(), MemoryMark::new(&shared, 0x5000_0000));
        assert!(!mark.is_on(pid));
        assert_eq!(mark.find(pid, pid), None);
        assert!(is_called(CallingThread { pid, tid: pid }, pid, pid));
        assert!(!is_called(CallingThread { pid, tid: pid }, pid, 1));
    }
}
