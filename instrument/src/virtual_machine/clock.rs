//! Time as a program sees it in a run that repeats.
//!
//! Each reading of a clock moves it on by a microsecond, and each sleep by its length. Nothing else
//! does. The rule is exact, because readings and sleeps are the program's own, in its own order;
//! and it costs nothing beside the stop. Time by counted instructions would need the sum of all
//! counters at each reading, which takes up to milliseconds in a large program. **Leaves out** how
//! long the program computes: a program that measures itself sees how often it looked.

/// Nanoseconds that pass with each reading.
const READING_NS: u64 = 1_000;
/// Seconds from 1970 to the beginning of every run: the first of January 2030.
const EPOCH_S: u64 = 1_893_456_000;
/// Seconds that the machine has been up when a run begins.
const UPTIME_S: u64 = 100_000;
/// International atomic time is ahead of the others by this.
const ATOMIC_AHEAD_S: u64 = 37;
const NS: u64 = 1_000_000_000;

/// The clock of a process. A forked child begins with a copy of its parent's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// Nanoseconds since the run began.
    elapsed_ns: u64,
}

/// A time: whole seconds and nanoseconds.
pub(crate) type Time = (u64, u64);

impl Clock {
    /// Reads a clock by its number in `clock_gettime`; `None` if there is no such clock.
    pub(crate) fn read(&mut self, number: i32) -> Option<Time> {
        let start_s = start_s(number)?;
        let now = self.elapsed();
        Some((start_s + now / NS, now % NS))
    }

    /// Nanoseconds since the run began, which this reading moves on.
    pub(crate) fn elapsed(&mut self) -> u64 {
        self.elapsed_ns += READING_NS;
        self.elapsed_ns
    }

    /// Nanoseconds since the run began, without a reading.
    pub(crate) fn now(&self) -> u64 {
        self.elapsed_ns
    }

    /// Lets time pass until a deadline, if that lies ahead.
    pub(crate) fn reach(&mut self, deadline_ns: u64) {
        self.elapsed_ns = self.elapsed_ns.max(deadline_ns);
    }

    /// Nanoseconds from now until a time of a clock, without reading it.
    pub(crate) fn until(&self, number: i32, (seconds, nanoseconds): Time) -> Option<u64> {
        let since = seconds.saturating_sub(start_s(number)?).saturating_mul(NS).saturating_add(nanoseconds);
        Some(since.saturating_sub(self.elapsed_ns))
    }
}

/// Seconds that a clock shows when a run begins.
fn start_s(number: i32) -> Option<u64> {
    match number {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_REALTIME_ALARM => Some(EPOCH_S),
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_BOOTTIME
        | libc::CLOCK_BOOTTIME_ALARM => Some(UPTIME_S),
        libc::CLOCK_TAI => Some(EPOCH_S + ATOMIC_AHEAD_S),
        // Processor time, of the caller or of the task whose number the clock's number holds.
        libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => Some(0),
        number if number < 0 => Some(0),
        _ => None,
    }
}

/// Seconds from 1970 to the beginning of every run.
pub(crate) fn begin_s() -> u64 {
    EPOCH_S
}

/// Seconds that the machine has been up, as `sysinfo` tells them.
pub(crate) fn uptime_s() -> u64 {
    UPTIME_S
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_by_readings_and_sleeps() {
        let mut clock = Clock::default();
        assert_eq!(clock.read(libc::CLOCK_MONOTONIC), Some((100_000, 1_000)));
        assert_eq!(clock.read(libc::CLOCK_REALTIME), Some((1_893_456_000, 2_000)));
        clock.reach(clock.now() + 3 * NS);
        clock.reach(0);
        assert_eq!(clock.read(libc::CLOCK_PROCESS_CPUTIME_ID), Some((3, 3_000)));
        assert_eq!(clock.read(99), None);
        assert_eq!(clock.until(libc::CLOCK_MONOTONIC, (100_004, 3_000)), Some(NS));
        assert_eq!(clock.until(libc::CLOCK_MONOTONIC, (5, 0)), Some(0));
    }
}
