//! The collector's clock: the time since the run began, and the time that collecting has taken.

use rustix::time::{clock_gettime, ClockId};

/// Names of the metrics that the collector adds about itself, behind those of its counters.
pub const OWN_METRICS: [&str; 2] = ["collector:cpu-ns", "collector:read-ns"];
/// The time when the run began, and the collector's cost so far.
pub(super) struct Clock {
    pub(super) begin: u64,
    first_cpu_ns: u64,
    cpu_ns: u64,
    read_ns: u64,
    /// Nanoseconds spent in reads since the last record.
    pub(super) pending_read_ns: u64,
}

impl Clock {
    pub(super) fn new() -> Clock {
        let (begin, cpu_ns) = (now_ns(ClockId::Monotonic), now_ns(ClockId::ThreadCPUTime));
        Clock { begin, first_cpu_ns: cpu_ns, cpu_ns, read_ns: 0, pending_read_ns: 0 }
    }

    pub(super) fn position(&self) -> u64 {
        now_ns(ClockId::Monotonic).saturating_sub(self.begin)
    }

    /// Nanoseconds that the collector spent on a CPU, and in reads, since the last record.
    pub(super) fn since_last_record(&mut self) -> [u64; 2] {
        let cpu = now_ns(ClockId::ThreadCPUTime);
        let cpu_ns = cpu.saturating_sub(self.cpu_ns);
        self.cpu_ns = cpu;
        let read_ns = std::mem::take(&mut self.pending_read_ns);
        self.read_ns += read_ns;
        [cpu_ns, read_ns]
    }

    /// Nanoseconds that the collector spent on a CPU, and in reads, from the start to the last
    /// record.
    pub(super) fn totals(&self) -> [u64; 2] {
        [self.cpu_ns - self.first_cpu_ns, self.read_ns]
    }
}

pub(super) fn now_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
