//! Credentials: the users, groups and capabilities of a process, as the kernel reports them.
//!
//! The host may have more rights than the program that it measures. Files that the host keeps for
//! later runs must come from a program with the host's rights, so the credentials of both are
//! compared. They are read from `/proc/PID/status`, which exists for any process and needs no
//! unsafe call. **Leaves out** seccomp, security modules and name spaces.

use crate::target::ptrace;

/// The system calls that change credentials. `prctl` is left out: the rights that it takes away
/// matter at the next exec only, where the credentials are compared again.
pub(crate) const CALLS: [u64; 12] = [
    libc::SYS_setuid as u64,
    libc::SYS_setgid as u64,
    libc::SYS_setreuid as u64,
    libc::SYS_setregid as u64,
    libc::SYS_setgroups as u64,
    libc::SYS_setresuid as u64,
    libc::SYS_setresgid as u64,
    libc::SYS_setfsuid as u64,
    libc::SYS_setfsgid as u64,
    libc::SYS_capset as u64,
    libc::SYS_unshare as u64,
    libc::SYS_setns as u64,
];

/// The credentials of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// Name and value of each line of the status that holds credentials.
    lines: Vec<(String, String)>,
}

impl Credentials {
    /// The credentials of process `pid`; `None` if the process is gone or its status lacks a line.
    pub(crate) fn of(pid: i32) -> Option<Credentials> {
        let status = std::fs::read(format!("/proc/{pid}/status")).ok()?;
        Credentials::parse(&String::from_utf8_lossy(&status))
    }

    /// The credentials of this process.
    pub(crate) fn own() -> Option<Credentials> {
        Credentials::of(ptrace::own_pid())
    }

    fn parse(status: &str) -> Option<Credentials> {
        const NAMES: [&str; 8] = ["Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
        let named = status.lines().filter_map(|line| line.split_once(':'));
        let lines: Vec<(String, String)> = named
            .filter(|(name, _)| NAMES.contains(name))
            .map(|(name, value)| (name.into(), value.trim().into()))
            .collect();
        // The kernel escapes the program's name in this file, so the name cannot imitate one of
        // these lines.
        (lines.len() == NAMES.len()).then_some(Credentials { lines })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str =
        "Name:\tsh\nUid:\t1\t2\t3\t4\nGid:\t5\t5\t5\t5\nGroups:\t5 6 \nCapInh:\t00\nCapPrm:\t01\n\
        CapEff:\t01\nCapBnd:\tff\nCapAmb:\t00\nThreads:\t1\n";

    #[test]
    fn each_line_of_credentials_distinguishes_processes_and_other_lines_do_not() {
        let one = Credentials::parse(STATUS).expect("whole");
        for (from, to) in [("\t4\n", "\t0\n"), ("5 6", "5"), ("CapEff:\t01", "CapEff:\t00")] {
            assert_ne!(Credentials::parse(&STATUS.replace(from, to)), Some(one.clone()), "{from}");
        }
        assert_eq!(Credentials::parse(&STATUS.replace("Threads:\t1", "Threads:\t2")), Some(one));
        assert_eq!(Credentials::parse(&STATUS.replace("CapAmb", "CapNew")), None);
    }

    #[test]
    fn a_process_that_is_gone_has_none() {
        assert!(Credentials::own().is_some(), "this process lives");
        assert_eq!(Credentials::of(i32::MAX), None);
    }
}
