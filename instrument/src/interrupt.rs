//! Ctrl-C while a program runs: the terminal sends it to the program too, so the host only notes it and stays.
//!
//! A signal that somebody sent to the host alone is passed on. The handler cannot know whether the sender meant the whole process
//! group, in which case the program gets its own copy: [`Echo`] drops the second of the two.
//! One of the few files with `unsafe`; the handler touches atomics and makes one `kill`, nothing else. Leaves out: job control, which the kernel does for both processes alike.

use crate::ptrace::{self, SignalInfo};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

static ROOT: AtomicI32 = AtomicI32::new(0);
static SEEN: AtomicU64 = AtomicU64::new(0);
static LAST_S: AtomicU64 = AtomicU64::new(0);
/// Requests to end that came after the program's end, or were meant for more than the program.
static ENDS: AtomicU64 = AtomicU64::new(0);

const SIGNALS: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// A program that ends this long after the interrupt ended because of it.
const CONSEQUENCE: Duration = Duration::from_secs(10);

extern "C" fn note(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo_t to an SA_SIGINFO handler.
    let from_user = unsafe { (*info).si_code } <= 0;
    if signal == libc::SIGINT {
        SEEN.fetch_add(1, Ordering::SeqCst);
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: async-signal-safe, writes to a local.
        unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut now) };
        LAST_S.store(now.tv_sec as u64, Ordering::SeqCst);
    }
    ENDS.fetch_add(1, Ordering::SeqCst);
    let root = ROOT.load(Ordering::SeqCst);
    if from_user && root > 0 {
        // SAFETY: integers only.
        unsafe { libc::kill(root, signal) };
    }
}

/// While it lives, interrupts are noted; then the former dispositions return.
pub(crate) struct Guard {
    former: Vec<libc::sigaction>,
    seen_before: u64,
    ends_before: u64,
    /// Requests to end that were answered.
    answered: u64,
}

/// The program has ended: its number may soon be another's.
pub(crate) fn root_ended() {
    ROOT.store(0, Ordering::SeqCst);
}

impl Guard {
    pub(crate) fn new(root: i32) -> Guard {
        ROOT.store(root, Ordering::SeqCst);
        let seen_before = SEEN.load(Ordering::SeqCst);
        let ends_before = ENDS.load(Ordering::SeqCst);
        let mut former = Vec::new();
        for signal in SIGNALS {
            // SAFETY: zeroes are a valid sigaction; the handler above is async-signal-safe.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = note as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO;
                let mut old: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, &action, &mut old);
                if signal == libc::SIGHUP && old.sa_sigaction == libc::SIG_IGN {
                    libc::sigaction(signal, &old, std::ptr::null_mut());
                }
                former.push(old);
            }
        }
        Guard { former, seen_before, ends_before, answered: 0 }
    }

    /// What to send to the processes that have outlived the program, if somebody wants an end: first `SIGTERM`, which they may answer, then
    /// `SIGKILL`.
    pub(crate) fn end_of_children(&mut self) -> Option<i32> {
        let asked = ENDS.load(Ordering::SeqCst) - self.ends_before;
        let is_new = asked > self.answered;
        let first = self.answered == 0;
        self.answered = asked;
        is_new.then_some(if first { libc::SIGTERM } else { libc::SIGKILL })
    }

    /// Whether Ctrl-C came shortly before now.
    pub(crate) fn interrupted(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let last = Duration::from_secs(LAST_S.load(Ordering::SeqCst));
        SEEN.load(Ordering::SeqCst) > self.seen_before && now.saturating_sub(last) < CONSEQUENCE
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        ROOT.store(0, Ordering::SeqCst);
        for (signal, old) in SIGNALS.iter().zip(&self.former) {
            // SAFETY: puts back what `new` found.
            unsafe { libc::sigaction(*signal, old, std::ptr::null_mut()) };
        }
    }
}

/// Two copies of one signal to a process group reach the program within this time, on a busy machine too.
const TOGETHER: Duration = Duration::from_secs(1);
const SI_USER: i32 = 0;

/// Tells a signal that the host passed on from the copy that the sender addressed to the program as well.
#[derive(Default)]
pub(crate) struct Echo {
    last: Option<(i32, bool, Instant)>,
}

impl Echo {
    /// Whether the program has just had this signal by the other way.
    pub(crate) fn repeats(&mut self, signal: i32, info: &SignalInfo) -> bool {
        let word = |at: usize| i32::from_le_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
        if !SIGNALS.contains(&signal) || word(8) != SI_USER {
            return false;
        }
        let passed_on = word(16) == ptrace::own_pid();
        self.arrives(signal, passed_on, Instant::now())
    }

    fn arrives(&mut self, signal: i32, passed_on: bool, now: Instant) -> bool {
        let other_way = |&(last, way, at): &(i32, bool, Instant)| {
            last == signal && way != passed_on && now.duration_since(at) < TOGETHER
        };
        let repeats = self.last.as_ref().is_some_and(other_way);
        self.last = (!repeats).then_some((signal, passed_on, now));
        repeats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_signal_counts_once_whichever_copy_comes_first() {
        let start = Instant::now();
        let mut echo = Echo::default();
        assert!(!echo.arrives(libc::SIGINT, false, start));
        assert!(echo.arrives(libc::SIGINT, true, start));
        assert!(!echo.arrives(libc::SIGINT, true, start));
        assert!(!echo.arrives(libc::SIGINT, true, start), "two that were passed on are two");
        assert!(!echo.arrives(libc::SIGTERM, false, start), "another signal");
        assert!(!echo.arrives(libc::SIGTERM, true, start + 2 * TOGETHER), "too late to be a copy");
    }
}
