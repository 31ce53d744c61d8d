//! Ctrl-C while a program runs: the terminal sends it to the program too, so the host only notes it
//! and continues.
//!
//! | the program | result |
//! |---|---|
//! | handles Ctrl-C and ends by itself | it is measured to its end, and its status counts |
//! | is ended by Ctrl-C | it counts as interrupted |
//! | ignores Ctrl-C | the second Ctrl-C ends it, so that its user can leave |
//!
//! The signal handler itself ends the program, because the host may be about to sleep in a wait
//! that the signal has just missed.
//!
//! The host forwards a signal that was sent to it. The handler cannot know whether the sender meant
//! the whole process group, in which case the program gets its own copy: [`Echo`] drops the second
//! of the two. A signal that the host's caller ignores stays ignored, as it does in the program.
//! One of the few files with `unsafe`; the handler uses atomics, reads one file and makes one
//! `kill`, nothing else. **Leaves out** job control, which the kernel does for both processes, and
//! programs that block Ctrl-C.

use crate::outcome::Exit;
use crate::target::ptrace::{self, SignalInfo};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The process number of the program that runs; 0 if none runs.
static ROOT: AtomicI32 = AtomicI32::new(0);
/// The number of Ctrl-C that have arrived.
static SEEN: AtomicU64 = AtomicU64::new(0);
/// The number of Ctrl-C that had arrived when the program started.
static SEEN_BEFORE: AtomicU64 = AtomicU64::new(0);
/// Whether the second Ctrl-C has ended the program.
static ENDED_PROGRAM: AtomicBool = AtomicBool::new(false);
/// The number of requests to end that have arrived, by any of [`SIGNALS`].
static ENDS: AtomicU64 = AtomicU64::new(0);

const SIGNALS: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// The index of the field of ignored signals in `/proc/PID/stat`; the first field behind the name
/// has index 0.
const FIELD_IGNORED: usize = 30;

extern "C" fn note(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo_t to an SA_SIGINFO handler.
    let from_user = unsafe { (*info).si_code } <= 0;
    // The interrupted code may be about to read the error number, so the handler restores it.
    // SAFETY: the pointer leads to this thread's error number, which lives as long as the thread.
    let error = unsafe { *libc::__errno_location() };
    let mut is_second = false;
    if signal == libc::SIGINT {
        let seen = SEEN.fetch_add(1, Ordering::SeqCst) + 1;
        is_second = seen - SEEN_BEFORE.load(Ordering::SeqCst) > 1;
    }
    ENDS.fetch_add(1, Ordering::SeqCst);
    let root = ROOT.load(Ordering::SeqCst);
    let send = match root > 0 {
        true if is_second && ignores_interrupts(root) => {
            ENDED_PROGRAM.store(true, Ordering::SeqCst);
            libc::SIGKILL
        }
        true if from_user => signal,
        _ => 0,
    };
    // SAFETY: `kill` takes integers only, and the pointer leads to this thread's error number.
    unsafe {
        if send != 0 {
            libc::kill(root, send);
        }
        *libc::__errno_location() = error;
    }
}

/// Whether a process ignores Ctrl-C. A signal handler calls this, so it allocates nothing.
fn ignores_interrupts(pid: i32) -> bool {
    let mut path = [0u8; 32];
    if std::io::Write::write_fmt(&mut &mut path[..], format_args!("/proc/{pid}/stat\0")).is_err() {
        return false;
    }
    let mut text = [0u8; 2048];
    // SAFETY: the path ends with a NUL, the buffer has the passed size, and the closed descriptor
    // is the one that was just opened.
    let got = unsafe {
        let fd = libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
        let got = libc::read(fd, text.as_mut_ptr().cast(), text.len());
        libc::close(fd);
        usize::try_from(got).unwrap_or(0)
    };
    ignored(&text[..got]) >> (libc::SIGINT - 1) & 1 != 0
}

/// The bits of the first signals that a process ignores, from the text of its `/proc/PID/stat`.
fn ignored(stat: &[u8]) -> u64 {
    let name_end = stat.iter().rposition(|&byte| byte == b')').map_or(0, |at| at + 2);
    let field = stat.get(name_end..).and_then(|rest| rest.split(|&byte| byte == b' ').nth(FIELD_IGNORED));
    let digits = field.unwrap_or_default().iter().filter(|byte| byte.is_ascii_digit());
    digits.fold(0u64, |sum, digit| sum.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
}

/// The number of Ctrl-C that have arrived while programs ran. A caller that runs several programs
/// in turn should stop when this grows, even if a program ignored the signal.
pub fn interrupts() -> u64 {
    SEEN.load(Ordering::SeqCst)
}

/// Notes Ctrl-C and other requests to end while a process is measured that is not this one's; the
/// former dispositions return when it is dropped.
pub struct EndRequests(Guard);

impl EndRequests {
    /// Begins to note.
    pub fn noted() -> EndRequests {
        EndRequests(Guard::that_notes())
    }

    /// Whether one has arrived.
    pub fn arrived(&self) -> bool {
        self.0.asks_for_end()
    }
}

/// Handles signals to the host while a program runs, and restores the former dispositions when it
/// is dropped.
pub(crate) struct Guard {
    former: Vec<(i32, libc::sigaction)>,
    /// The number of requests to end before the program started.
    ends_before: u64,
    /// The number of requests to end that were answered; `None` until the program has ended.
    answered: Option<u64>,
    /// Whether processes that outlived the program were ended.
    ended_others: bool,
}

/// Forgets the number of the program, which has ended: the kernel may give it to another process.
pub(crate) fn root_ended() {
    ROOT.store(0, Ordering::SeqCst);
}

impl Guard {
    /// A guard that only notes signals: the program ran before, and does not end with the host.
    pub(crate) fn that_notes() -> Guard {
        Guard::new(0)
    }

    pub(crate) fn new(root: i32) -> Guard {
        SEEN_BEFORE.store(SEEN.load(Ordering::SeqCst), Ordering::SeqCst);
        ENDED_PROGRAM.store(false, Ordering::SeqCst);
        ROOT.store(root, Ordering::SeqCst);
        let ends_before = ENDS.load(Ordering::SeqCst);
        let mut former = Vec::new();
        for signal in SIGNALS {
            // SAFETY: all zeroes are a valid `sigaction`, and `note` is async-signal-safe.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = note as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO;
                let mut old: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, &action, &mut old);
                if old.sa_sigaction == libc::SIG_IGN {
                    libc::sigaction(signal, &old, std::ptr::null_mut());
                }
                former.push((signal, old));
            }
        }
        former.extend(keep_ends_of_children());
        Guard { former, ends_before, answered: None, ended_others: false }
    }

    /// Whether the user has requested an end since this guard began.
    pub(crate) fn asks_for_end(&self) -> bool {
        ENDS.load(Ordering::SeqCst) > self.ends_before
    }

    /// The signal for the processes that have outlived the program, if the user has requested an
    /// end since the last call: first `SIGTERM`, which they may handle, then `SIGKILL`. Requests
    /// before the program's end count only if a signal ended the program.
    pub(crate) fn end_of_children(&mut self, root: Exit) -> Option<i32> {
        let asked = ENDS.load(Ordering::SeqCst);
        let answered = match (self.answered, root) {
            (Some(answered), _) => answered,
            (None, Exit::Code(_) | Exit::RunsOn) => asked,
            (None, Exit::Signal(_)) => self.ends_before,
        };
        self.answered = Some(asked);
        let signal = if self.ended_others { libc::SIGKILL } else { libc::SIGTERM };
        let is_new = asked > answered;
        self.ended_others |= is_new;
        is_new.then_some(signal)
    }

    /// Whether Ctrl-C ended the program, which ended as `root` says, or processes that outlived it.
    pub(crate) fn interrupted(&self, root: Exit) -> bool {
        let came = SEEN.load(Ordering::SeqCst) > SEEN_BEFORE.load(Ordering::SeqCst);
        let ended = root == Exit::Signal(libc::SIGINT) || ENDED_PROGRAM.load(Ordering::SeqCst);
        came && (ended || self.ended_others)
    }
}

/// Restores the default action for ends of children, if the caller ignores them: otherwise the host
/// could not wait for the program's end. Returns the former disposition if it was changed.
fn keep_ends_of_children() -> Option<(i32, libc::sigaction)> {
    // SAFETY: all zeroes are a valid `sigaction` with the default action.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGCHLD, std::ptr::null(), &mut old);
        let is_ignored = old.sa_sigaction == libc::SIG_IGN || old.sa_flags & libc::SA_NOCLDWAIT != 0;
        is_ignored.then(|| {
            libc::sigaction(libc::SIGCHLD, &default, std::ptr::null_mut());
            (libc::SIGCHLD, old)
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        ROOT.store(0, Ordering::SeqCst);
        for (signal, old) in &self.former {
            // SAFETY: `old` is the disposition that `new` has read.
            unsafe { libc::sigaction(*signal, old, std::ptr::null_mut()) };
        }
    }
}

/// Two copies of one signal to a process group reach the program within this time, even on a busy
/// machine.
const TOGETHER: Duration = Duration::from_secs(1);
const SI_USER: i32 = 0;

/// Recognises a signal that reaches the program twice: directly, and forwarded by the host.
#[derive(Default)]
pub(crate) struct Echo {
    /// The last signal, whether the host forwarded it, and when it came.
    last: Option<(i32, bool, Instant)>,
}

impl Echo {
    /// Whether the program has just received the other copy of this signal.
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

    #[test]
    fn what_is_ignored_is_a_field_behind_a_name_with_anything_in_it() {
        let fields = |ignored: u64| format!("7 (a) (b c) S{} {ignored} 9 17", " 1".repeat(FIELD_IGNORED - 1));
        assert_eq!(ignored(fields(4098).as_bytes()), 4098);
        assert_eq!(ignored(b""), 0);
        assert_eq!(ignored(b"7 (a) S 1 2"), 0);
        let own = std::fs::read("/proc/self/stat").unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let said = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
        assert_eq!(ignored(&own), u64::from_str_radix(said, 16).unwrap() & 0x7fff_ffff);
    }
}
