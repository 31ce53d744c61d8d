//! Makes records from samples that the kernel takes in the program's threads ([`Samples`]), while
//! the collector sleeps.
//!
//! A record ends with the first sample behind an edge of the grid and holds the sum of all samples
//! since the last record. While no thread runs no record is made; the next one is long and says how
//! many edges it missed. The first record counts from the opening of the counters. The last record
//! adds the events behind the threads' last samples, so all records add up to the totals. **Leaves
//! out** counters of added code, which no sample reads.

use super::clock::{now_ns, Clock, OWN_METRICS};
use super::deltas::Deltas;
use super::pace::{Ended, Grid, Pace};
use super::watch::{Slack, Tick, Watch};
use crate::counter::{Counted, Counters, Sample, Samples, Sums, Times};
use crate::trace::{End, Metric, Record, Source, Value};
use crate::Error;
use rustix::time::ClockId;
use std::time::Duration;

/// Time between two readings of the rings. It is shorter if a ring would otherwise get more
/// intervals than it holds.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The number of intervals that fit in a ring.
const INTERVALS_MAX: u32 = 256;

/// Makes records of samples.
#[derive(Debug)]
pub struct Sampling<'a> {
    samples: &'a mut Samples,
    metrics: Vec<Metric>,
    interval: Duration,
}

/// The state of a run.
struct SamplingState {
    clock: Clock,
    grid: Grid,
    sums: Sums,
    deltas: Deltas,
    sequence: u64,
}

impl<'a> Sampling<'a> {
    /// Creates a maker of records from samples that are taken every `interval`.
    pub fn new(samples: &'a mut Samples, interval: Duration) -> Sampling<'a> {
        let mut metrics = samples.metrics().to_vec();
        metrics.extend(OWN_METRICS.map(|name| Metric::new(name, Source::Collector, "clock")));
        Sampling { samples, metrics, interval }
    }

    /// The columns of its records.
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// Calls `take` with records until process `pid` (a child of this process that has not been
    /// waited for) ends or `stop` returns true. `stop` is called at every reading and when a signal
    /// arrives.
    ///
    /// # Errors
    /// If the system refuses to wait, to inspect the process or to read the totals, or `take`
    /// fails.
    pub fn run(
        &mut self,
        pid: u32,
        mut stop: impl FnMut() -> bool,
        mut take: impl FnMut(Record) -> Result<(), Error>,
    ) -> Result<(Ended, End), Error> {
        let watch = Watch::new(pid)?;
        let _slack = Slack::short();
        let pace = Pace::Time(self.interval);
        let look_ns = LOOK_EVERY.min(self.interval * INTERVALS_MAX).as_nanos() as u64;
        // Counted from the opening of the counters: a thread's samples count from its own
        // beginning, which may be before this moment.
        let first = Counted { times: Times::default(), totals: vec![0; self.samples.metrics().len()] };
        let mut run = SamplingState {
            clock: Clock::new(),
            grid: Grid::new(&pace),
            deltas: Deltas::new(first.totals.clone(), first.times),
            sums: Sums::new(first),
            sequence: 0,
        };
        let mut waiting = Vec::new();
        loop {
            let ended = match watch.wait(&pace, look_ns)? {
                Tick::Due | Tick::Signal if stop() => Some(Ended::Stopped),
                Tick::Ended => Some(Ended::Program),
                Tick::Signal => continue,
                Tick::Due => None,
            };
            // Rings are read one after the other, so samples later than the first reading may still
            // be in another ring.
            let before = now_ns(ClockId::Monotonic);
            let horizon = ended.map_or(before, |_| u64::MAX);
            self.samples.drain(&mut waiting);
            run.clock.pending_read_ns += now_ns(ClockId::Monotonic).saturating_sub(before);
            waiting.sort_by_key(|sample: &Sample| sample.time_ns);
            let known = waiting.partition_point(|sample| sample.time_ns <= horizon);
            let threads = watch.threads();
            for sample in waiting.drain(..known) {
                run.sample(&sample, threads).map_or(Ok(()), &mut take)?;
            }
            if let Some(ended) = ended {
                let last = self.totals()?;
                let (record, end) = run.finish(last, threads, ended);
                return take(record).map(|()| (ended, end));
            }
        }
    }

    fn totals(&mut self) -> Result<Counted, Error> {
        let mut totals = vec![0; self.samples.metrics().len()];
        let times = self.samples.read(&mut totals)?;
        Ok(Counted { times, totals })
    }
}

impl SamplingState {
    /// The record that ends with `sample`, if that lies behind an edge.
    fn sample(&mut self, sample: &Sample, threads: u32) -> Option<Record> {
        self.sums.add(sample);
        let position = sample.time_ns.saturating_sub(self.clock.begin);
        if sample.counted.is_none() || position < self.grid.edge {
            return None;
        }
        self.deltas.now.clone_from(&self.sums.all.totals);
        self.deltas.times = Some(self.sums.all.times);
        Some(self.record(position, threads))
    }

    fn record(&mut self, position: u64, threads: u32) -> Record {
        let (start, dt, missed_ticks) = self.grid.step(position);
        let mut values = Vec::new();
        self.deltas.take(&mut values);
        values.extend(self.clock.since_last_record().map(Value::whole));
        self.sequence += 1;
        Record { sequence: self.sequence - 1, start, dt, missed_ticks, threads, values }
    }

    /// The last record, with all events behind the last samples, and the end of the trace.
    fn finish(mut self, last: Counted, threads: u32, ended: Ended) -> (Record, End) {
        let position = self.clock.position();
        let Times { enabled_ns, running_ns } = last.times;
        (self.deltas.now, self.deltas.times) = (last.totals, Some(Times { enabled_ns, running_ns }));
        let record = self.record(position, threads);
        let mut totals = self.deltas.totals();
        totals.extend(self.clock.totals().map(Some));
        (record, End { totals, exit_status: None, interrupted: ended == Ended::Stopped })
    }
}
