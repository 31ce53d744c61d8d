//! The host's collector: the program's end, a moment to wait for, and one read of everything per interval, from outside the program.
//!
//! No signal, timer or library enters the program. Edges lie on a grid; when the collector comes late, the record says how many edges it missed, and its true length. In time
//! ([`Pace::Time`]), waiting is one `ppoll` on the program's descriptor until the next edge: a timer's descriptor would cost a second call each time. In
//! events ([`Pace::Counted`]) the overflow of a counter wakes the collector. Its own time on a CPU and the time that its reads took are metrics of the trace, because a
//! reader must be able to subtract them. Totals are those of one last read after the program's end, so the deltas add up to them exactly.
//!
//! Threads are counted by the links of `/proc/PID/task`: one `fstat`, no text to parse.
//! Deliberately absent: starting the program.

mod deltas;
mod sampled;
pub mod signal;

use crate::counter::{Alarm, Counters};
use crate::trace::{End, Metric, Record, Source, Value};
use crate::Error;
use deltas::Deltas;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::thread::{current_timer_slack, set_current_timer_slack};
use rustix::time::{clock_gettime, ClockId, Timespec};
use std::num::NonZeroU64;
use std::time::Duration;

pub use sampled::Sampling;

/// Metrics that the collector adds about itself, behind those of its counters.
pub const OWN_METRICS: [&str; 2] = ["collector:cpu-ns", "collector:read-ns"];
/// By how much a wait may be late; the kernel's own habit is fifty times that.
const SLACK_NS: u64 = 1000;

/// When records are made.
#[derive(Debug)]
pub enum Pace {
    /// Every so often; at least a microsecond.
    Time(Duration),
    /// Whenever the first metric of the first set has come this much further. The alarm is that of its group.
    Counted(Alarm, u64),
}

/// Why collecting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The program did.
    Program,
    /// The caller said so.
    Stopped,
}

/// Reads sets of counters at a pace.
pub struct Collector<'a> {
    sets: Vec<Set<'a>>,
    pace: Pace,
    metrics: Vec<Metric>,
}

impl std::fmt::Debug for Collector<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collector").field("pace", &self.pace).field("metrics", &self.metrics).finish()
    }
}

/// Counters and what is known of them.
struct Set<'a> {
    counters: &'a mut dyn Counters,
    deltas: Deltas,
}

impl<'a> Collector<'a> {
    /// A collector of `sets` at `pace`.
    ///
    /// # Errors
    /// When the counters cannot be read even once.
    pub fn new(sets: Vec<&'a mut dyn Counters>, pace: Pace) -> Result<Collector<'a>, Error> {
        let mut metrics: Vec<Metric> = sets.iter().flat_map(|set| set.metrics().to_vec()).collect();
        metrics.extend(OWN_METRICS.map(|name| Metric::new(name, Source::Collector, "clock")));
        let sets = sets.into_iter().map(Set::new).collect::<Result<_, _>>()?;
        Ok(Collector { sets, pace, metrics })
    }

    /// The columns of its records.
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// Hands a record to `take` every interval, and one for the rest of the last, until process `pid` (a child of this one, not waited for yet) ends or `stop` says so.
    /// `stop` is asked at every tick and when a signal arrives.
    ///
    /// # Errors
    /// When the system refuses to wait or to look at the process, or `take` fails. A failed read is no error: its values are missing.
    pub fn run(
        &mut self,
        pid: u32,
        mut stop: impl FnMut() -> bool,
        mut take: impl FnMut(Record) -> Result<(), Error>,
    ) -> Result<(Ended, End), Error> {
        let watch = Watch::new(pid)?;
        let _slack = Slack::short();
        let mut clock = Clock::new();
        let mut grid = Grid::new(&self.pace);
        let mut sequence = 0;
        loop {
            let ended = match watch.wait(&self.pace, grid.left(clock.position()))? {
                Tick::Due | Tick::Signal if stop() => Some(Ended::Stopped),
                Tick::Ended => Some(Ended::Program),
                Tick::Signal => continue,
                Tick::Due => None,
            };
            let position = self.read(&mut clock);
            if ended.is_none() && position < grid.edge {
                continue;
            }
            let (start, dt, missed_ticks) = grid.step(position);
            let values = self.values(&mut clock);
            take(Record { sequence, start, dt, missed_ticks, threads: watch.threads(), values })?;
            sequence += 1;
            if let Some(ended) = ended {
                return Ok((ended, self.end(&clock, ended)));
            }
        }
    }

    /// Reads everything; where the run is.
    fn read(&mut self, clock: &mut Clock) -> u64 {
        let before = now_ns(ClockId::Monotonic);
        self.sets.iter_mut().for_each(Set::read);
        clock.unsaid_read_ns += now_ns(ClockId::Monotonic).saturating_sub(before);
        match self.pace {
            Pace::Time(_) => before.saturating_sub(clock.begin),
            Pace::Counted(..) => {
                let of_first =
                    |set: &Set<'_>| set.deltas.now.first()?.checked_sub(*set.deltas.first.first()?);
                self.sets.first().and_then(of_first).unwrap_or(0)
            }
        }
    }

    /// What was added since the record before.
    fn values(&mut self, clock: &mut Clock) -> Vec<Value> {
        let mut values = Vec::with_capacity(self.metrics.len());
        self.sets.iter_mut().for_each(|set| set.deltas.take(&mut values));
        values.extend(clock.own().map(Value::whole));
        values
    }

    fn end(&self, clock: &Clock, ended: Ended) -> End {
        let mut totals: Vec<Option<u64>> = self.sets.iter().flat_map(|set| set.deltas.totals()).collect();
        totals.extend(clock.totals().map(Some));
        End { totals, exit_status: None, interrupted: ended == Ended::Stopped }
    }
}

impl<'a> Set<'a> {
    fn new(counters: &'a mut dyn Counters) -> Result<Set<'a>, Error> {
        let mut first = vec![0; counters.metrics().len()];
        let times = counters.read(&mut first)?;
        Ok(Set { counters, deltas: Deltas::new(first, times) })
    }

    fn read(&mut self) {
        self.deltas.times = self.counters.read(&mut self.deltas.now).ok();
    }
}

/// When the run began, and what the collector has cost so far.
struct Clock {
    begin: u64,
    first_cpu_ns: u64,
    cpu_ns: u64,
    read_ns: u64,
    /// Of reads that no record has told yet.
    unsaid_read_ns: u64,
}

impl Clock {
    fn new() -> Clock {
        let (begin, cpu_ns) = (now_ns(ClockId::Monotonic), now_ns(ClockId::ThreadCPUTime));
        Clock { begin, first_cpu_ns: cpu_ns, cpu_ns, read_ns: 0, unsaid_read_ns: 0 }
    }

    fn position(&self) -> u64 {
        now_ns(ClockId::Monotonic).saturating_sub(self.begin)
    }

    /// The collector's time on a CPU, and in reads, since the record before.
    fn own(&mut self) -> [u64; 2] {
        let cpu = now_ns(ClockId::ThreadCPUTime);
        let cpu_ns = cpu.saturating_sub(self.cpu_ns);
        self.cpu_ns = cpu;
        let read_ns = std::mem::take(&mut self.unsaid_read_ns);
        self.read_ns += read_ns;
        [cpu_ns, read_ns]
    }

    /// The same, of the whole run, as of the last record.
    fn totals(&self) -> [u64; 2] {
        [self.cpu_ns - self.first_cpu_ns, self.read_ns]
    }
}

fn now_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Edges, at multiples of the interval.
struct Grid {
    length: u64,
    edge: u64,
    last: u64,
}

impl Grid {
    fn new(pace: &Pace) -> Grid {
        let length = match pace {
            Pace::Time(interval) => u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(1000),
            Pace::Counted(_, length) => (*length).max(1),
        };
        Grid { length, edge: length, last: 0 }
    }

    fn left(&self, position: u64) -> u64 {
        self.edge.saturating_sub(position)
    }

    /// The interval that ends at `position`: its start, its length, and the edges that it ran over beyond its own.
    fn step(&mut self, position: u64) -> (u64, u64, u32) {
        let (start, dt) = (self.last, position.saturating_sub(self.last));
        let missed = position.saturating_sub(self.edge) / self.length;
        if position >= self.edge {
            self.edge = self.edge.saturating_add((missed + 1).saturating_mul(self.length));
        }
        self.last = start + dt;
        (start, dt, u32::try_from(missed).unwrap_or(u32::MAX))
    }
}

/// What the collector waits for.
enum Tick {
    Due,
    Ended,
    Signal,
}

/// The process.
struct Watch {
    process: OwnedFd,
    tasks: Option<OwnedFd>,
}

impl Watch {
    fn new(pid: u32) -> Result<Watch, Error> {
        let number = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
        let number = number.ok_or_else(|| Error::io("watch the program", Errno::SRCH))?;
        let process = rustix::process::pidfd_open(number, rustix::process::PidfdFlags::empty())
            .map_err(|error| Error::io("watch the program", error))?;
        let tasks = std::fs::File::open(format!("/proc/{pid}/task")).ok().map(OwnedFd::from);
        Ok(Watch { process, tasks })
    }

    /// Waits; `left_ns` until the edge, where it is one in time.
    fn wait(&self, pace: &Pace, left_ns: u64) -> Result<Tick, Error> {
        let left =
            Timespec { tv_sec: (left_ns / 1_000_000_000) as i64, tv_nsec: (left_ns % 1_000_000_000) as i64 };
        let on = |descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN);
        let process = on(self.process.as_fd());
        let (mut one, mut two);
        let (ready, limit): (&mut [PollFd<'_>], _) = match pace {
            Pace::Time(_) => {
                one = [process];
                (&mut one, Some(&left))
            }
            Pace::Counted(alarm, _) => {
                two = [process, on(alarm.as_fd())];
                (&mut two, None)
            }
        };
        match poll(ready, limit) {
            Err(Errno::INTR) => return Ok(Tick::Signal),
            other => other.map_err(|error| Error::io("wait for the program", error))?,
        };
        if !ready[0].revents().is_empty() {
            return Ok(Tick::Ended);
        }
        if let Pace::Counted(alarm, _) = pace {
            alarm.clear();
        }
        Ok(Tick::Due)
    }

    /// Threads of the process; 0 when it has ended.
    fn threads(&self) -> u32 {
        let links =
            self.tasks.as_ref().and_then(|tasks| rustix::fs::fstat(tasks).ok()).map(|about| about.st_nlink);
        links.and_then(|links| u32::try_from(links).ok()).unwrap_or(0).saturating_sub(2)
    }
}

/// This thread's waits end when they should, while this lives.
struct Slack(Option<NonZeroU64>);

impl Slack {
    fn short() -> Slack {
        let before = current_timer_slack().ok().and_then(NonZeroU64::new);
        // Without it records are somewhat longer, and say so.
        let _ = set_current_timer_slack(NonZeroU64::new(SLACK_NS));
        Slack(before)
    }
}

impl Drop for Slack {
    fn drop(&mut self) {
        let _ = set_current_timer_slack(self.0);
    }
}
