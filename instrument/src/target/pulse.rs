//! A timer that interrupts the waits of the thread that started it.
//!
//! `waitpid` has no timeout, and the host must check the time regularly. The signal's default
//! action is to ignore it, so a late signal does no harm. One of the few files with `unsafe`; the
//! handler does nothing. **Leaves out** other users of the signal: its former disposition is
//! restored when the timer ends.

use std::time::Duration;

const SIGNAL: i32 = libc::SIGURG;

extern "C" fn interrupt(_signal: i32) {}

/// A timer that interrupts the waits of the thread that started it, until it is dropped.
pub(crate) struct Pulse {
    timer: libc::timer_t,
    former: libc::sigaction,
}

impl Pulse {
    /// Starts to interrupt the calling thread's waits; `None` if the system has no timers left.
    pub(crate) fn start(every: Duration) -> Option<Pulse> {
        // SAFETY: all zeroes are valid values of the three structures, the handler is
        // async-signal-safe, and the pointers lead to live values.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = SIGNAL;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = std::ptr::null_mut();
            if libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) != 0 {
                return None;
            }
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = interrupt as *const () as usize;
            let mut former: libc::sigaction = std::mem::zeroed();
            libc::sigaction(SIGNAL, &raw const action, &raw mut former);
            let period =
                libc::timespec { tv_sec: every.as_secs() as i64, tv_nsec: every.subsec_nanos().into() };
            let times = libc::itimerspec { it_interval: period, it_value: period };
            libc::timer_settime(timer, 0, &raw const times, std::ptr::null_mut());
            Some(Pulse { timer, former })
        }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        // SAFETY: `self` owns the timer, and nothing uses it after this; the disposition is the one
        // that `start` has read.
        unsafe {
            libc::timer_delete(self.timer);
            libc::sigaction(SIGNAL, &raw const self.former, std::ptr::null_mut());
        }
    }
}
