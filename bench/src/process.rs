//! Processes that are copies of this one, one for each benchmark.
//!
//! The standard library starts programs and does not copy processes, so three functions of the C
//! library are declared here.

use std::io::{Error, Write};

extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

/// Runs `job` in a copy of this process, and returns the status that the copy ended with, as
/// `waitpid` gives it.
///
/// # Errors
/// When the system refuses a process, or forgets it.
pub(crate) fn run_copied(job: impl FnOnce() -> i32) -> Result<i32, Error> {
    // What was written and not yet put out would be put out twice.
    std::io::stdout().flush()?;
    // SAFETY: no other thread holds a lock that the copy would wait for: `main`'s thread waits for
    // this one to end, the runner starts no third one, and what a benchmark starts, it starts in
    // its own copy.
    let pid = unsafe { fork() };
    match pid {
        -1 => Err(Error::last_os_error()),
        0 => {
            let status = job();
            // A benchmark whose output cannot be written was counted all the same.
            let _ = std::io::stdout().flush();
            // SAFETY: it ends the copy, whose memory nobody else sees.
            unsafe { _exit(status) }
        }
        _ => wait(pid),
    }
}

fn wait(pid: i32) -> Result<i32, Error> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is an integer of this function's, to which the call writes.
        let ended = unsafe { waitpid(pid, &mut status, 0) };
        let error = Error::last_os_error();
        match ended {
            -1 if error.kind() == std::io::ErrorKind::Interrupted => {}
            -1 => return Err(error),
            _ => return Ok(status),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::process::Command;

    /// Set where a test runs alone.
    const ALONE: &str = "LIGHTFOOT_BENCH_TEST_ALONE";

    /// Runs the test `name` in a process of its own, unless this is that process, for which it
    /// returns true. A copy of a process in which other tests run may wait for ever for a lock that
    /// one of them held.
    pub(crate) fn is_alone(name: &str) -> bool {
        if std::env::var_os(ALONE).is_some() {
            return true;
        }
        let own = std::env::current_exe().unwrap();
        let mut command = Command::new(own);
        let ran = command.args(["--exact", name, "--test-threads=1"]).env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && said.contains("1 passed"), "{said}");
        false
    }

    #[test]
    fn a_copy_ends_by_itself() {
        if !is_alone("process::tests::a_copy_ends_by_itself") {
            return;
        }
        let mut here = 1;
        assert_eq!(run_copied(|| 3).unwrap(), 3 << 8);
        let status = run_copied(|| {
            here += 1;
            here
        });
        assert_eq!((status.unwrap(), here), (2 << 8, 1));
    }
}
