//! The host's collector reads all counters once per interval, from outside the program.
//!
//! No signal, timer or library enters the program. Records end at the edges of a grid; if the
//! collector is late, the record says how many edges it missed, and its true length. If the grid is
//! in time ([`Pace::Time`]), waiting is one `ppoll` on the program's descriptor until the next
//! edge; a timer's descriptor would need a second call each time. If it is in events
//! ([`Pace::Counted`]), the overflow of a counter wakes the collector. The collector's time on a
//! CPU and the time of its reads are metrics of the trace, because readers must be able to subtract
//! them. Totals come from one last read after the program's end, so the differences add up to them
//! exactly.
//!
//! The number of threads is the number of links of `/proc/PID/task`: one `fstat`, and no text to
//! parse. **Leaves out** starting the program.

mod clock;
mod deltas;
mod pace;
mod sampled;
pub mod signal;
mod watch;

pub use clock::OWN_METRICS;
pub use pace::{Ended, Pace};
pub use sampled::Sampling;

use crate::counter::Counters;
use crate::trace::{End, Metric, Record, Source, Value};
use crate::Error;
use clock::{now_ns, Clock};
use deltas::Deltas;
use pace::Grid;
use rustix::time::ClockId;
use std::time::Duration;
use watch::{Slack, Tick, Watch};

/// Reads sets of counters at a pace.
pub struct Collector<'a> {
    sets: Vec<Set<'a>>,
    pace: Pace,
    /// Nanoseconds after which a run ends.
    longest_ns: u64,
    metrics: Vec<Metric>,
}

impl std::fmt::Debug for Collector<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collector").field("pace", &self.pace).field("metrics", &self.metrics).finish()
    }
}

/// A set of counters, with its first and newest totals.
struct Set<'a> {
    counters: &'a mut dyn Counters,
    deltas: Deltas,
}

impl<'a> Collector<'a> {
    /// Creates a collector that reads `sets` at `pace`.
    ///
    /// # Errors
    /// When the counters cannot be read even once.
    pub fn new(sets: Vec<&'a mut dyn Counters>, pace: Pace) -> Result<Collector<'a>, Error> {
        let mut metrics: Vec<Metric> = sets.iter().flat_map(|set| set.metrics().to_vec()).collect();
        metrics.extend(OWN_METRICS.map(|name| Metric::new(name, Source::Collector, "clock")));
        let sets = sets.into_iter().map(Set::new).collect::<Result<_, _>>()?;
        Ok(Collector { sets, pace, longest_ns: u64::MAX, metrics })
    }

    /// Ends runs as if `stop` had returned true, after `longest`. The pace must be in time.
    #[must_use]
    pub fn for_time(self, longest: Duration) -> Collector<'a> {
        Collector { longest_ns: u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX), ..self }
    }

    /// The columns of its records.
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// Calls `take` with a record after every interval, and with one for the rest at the end, until
    /// process `pid` (a child of this process that has not been waited for, or one that is looked
    /// after by somebody else) ends or `stop` returns true. `stop` is called at every edge and when
    /// a signal arrives.
    ///
    /// # Errors
    /// If the system refuses to wait for or to inspect the process, or `take` fails. A failed read
    /// is no error: its values are missing.
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
            let position = clock.position();
            let left_ns = grid.left(position).min(self.longest_ns.saturating_sub(position));
            let ended = match watch.wait(&self.pace, left_ns)? {
                // A signal that does not stop the collector has only interrupted the wait.
                Tick::Due | Tick::Signal if stop() || clock.position() >= self.longest_ns => {
                    Some(Ended::Stopped)
                }
                Tick::Ended => Some(Ended::Program),
                Tick::Signal => continue,
                Tick::Due => None,
            };
            let position = self.read(&mut clock);
            // The wait may end a little early, for example when the alarm of a counter comes before
            // the count that is read. A record then would split the interval.
            if ended.is_none() && position < grid.edge {
                continue;
            }
            let (start, dt, missed_ticks) = grid.step(position);
            let values = self.values(&mut clock);
            take(Record { sequence, start, dt, missed_ticks, threads: watch.threads(), values })?;
            sequence += 1;
            // This record held the rest of the last interval, so the differences add up to the
            // totals.
            if let Some(ended) = ended {
                return Ok((ended, self.end(&clock, ended)));
            }
        }
    }

    /// Reads all counters; returns the current position in the interval's unit.
    fn read(&mut self, clock: &mut Clock) -> u64 {
        let before = now_ns(ClockId::Monotonic);
        self.sets.iter_mut().for_each(Set::read);
        clock.pending_read_ns += now_ns(ClockId::Monotonic).saturating_sub(before);
        match self.pace {
            Pace::Time(_) => before.saturating_sub(clock.begin),
            Pace::Counted(..) => {
                let of_first =
                    |set: &Set<'_>| set.deltas.now.first()?.checked_sub(*set.deltas.first.first()?);
                self.sets.first().and_then(of_first).unwrap_or(0)
            }
        }
    }

    /// The differences since the last record.
    fn values(&mut self, clock: &mut Clock) -> Vec<Value> {
        let mut values = Vec::with_capacity(self.metrics.len());
        self.sets.iter_mut().for_each(|set| set.deltas.take(&mut values));
        values.extend(clock.since_last_record().map(Value::whole));
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
