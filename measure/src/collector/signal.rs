//! Reads the ticks of the paper's collector: a signal handler in the program writes one at every
//! tick of its timer.
//!
//! The handler (it belongs to the engine, `instrument`) reads the group of counters and the words
//! that added code increments, and appends one *tick* to a file. This module turns ticks into
//! records. The handler's cost is a metric; the kernel's part of a signal (delivery and return) is
//! in no clock and shows in the program's counters only. Two threads may handle ticks at once and
//! write them in the wrong order: the older tick is then left out and counts as missed.
//!
//! | bytes of a tick | what |
//! |---|---|
//! | 16 | seconds and nanoseconds of the monotonic clock when the handler began |
//! | 16 | not used |
//! | 8 | ticks that the timer lost before this one |
//! | 8 | what `read` gave: the bytes of the next field |
//! | 16 | seconds and nanoseconds that earlier handlers took, each a sum |
//! | 8 · (4 + counters) | the group as `read` gives it |
//! | 8 · words | the words |
//!
//! Source: Mytkowicz et al. 2007, section 3.1 (`setitimer`, a handler that reads and writes).

use super::deltas::Deltas;
use crate::counter::{Group, Times};
use crate::trace::{End, Metric, Record, Source, Value};

/// Name of the metric that this collector adds: nanoseconds in earlier handlers.
pub const OWN_METRIC: &str = "collector:handler-ns";
/// Bytes before the group.
pub const HEAD_BYTES: usize = 64;

/// Makes records of ticks.
#[derive(Debug)]
pub struct Ticks {
    group: Deltas,
    words: Deltas,
    handler: Deltas,
    begin_ns: u64,
    last_ns: u64,
    sequence: u64,
    left_out: u32,
}

/// Running totals, read together.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Totals of the group.
    pub group: Vec<u64>,
    /// Times in which the group was enabled and counted.
    pub times: Times,
    /// Totals of the words.
    pub words: Vec<u64>,
}

impl Ticks {
    /// Creates a reader for a program that begins to run at `begin_ns` of the monotonic clock, with
    /// these totals.
    pub fn new(begin_ns: u64, first: Totals) -> Ticks {
        Ticks {
            group: Deltas::new(first.group, first.times),
            words: Deltas::new(first.words, Times::default()),
            handler: Deltas::new(vec![0], Times::default()),
            begin_ns,
            last_ns: begin_ns,
            sequence: 0,
            left_out: 0,
        }
    }

    /// The column that this collector adds behind the others.
    pub fn own_metric() -> Metric {
        Metric::new(OWN_METRIC, Source::Collector, "signal")
    }

    /// Bytes of a tick.
    pub fn bytes(&self) -> usize {
        HEAD_BYTES + Group::bytes(self.group.first.len()) + 8 * self.words.first.len()
    }

    /// The record that ends with `tick`; `None` if the tick is late, or has a time later than
    /// `read_ns`, when it was read.
    ///
    /// # Panics
    /// When there are not [`bytes`](Ticks::bytes) of it.
    pub fn record(&mut self, tick: &[u8], read_ns: u64) -> Option<Record> {
        let word = |index: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&tick[8 * index..8 * index + 8]);
            u64::from_ne_bytes(bytes)
        };
        // Seconds and nanoseconds, of the clock and of earlier handlers.
        let ns = |index: usize| word(index).wrapping_mul(1_000_000_000).wrapping_add(word(index + 1));
        let now = ns(0);
        let group_bytes = Group::bytes(self.group.first.len());
        let read = &tick[HEAD_BYTES..HEAD_BYTES + group_bytes];
        let mut totals = vec![0; self.group.first.len()];
        let times = (word(5) == group_bytes as u64).then(|| Group::parse(read, &mut totals)).flatten();
        let words: Vec<u64> =
            (0..self.words.first.len()).map(|index| word((HEAD_BYTES + group_bytes) / 8 + index)).collect();
        // Totals only grow: a tick with smaller ones was written behind a later tick.
        let backwards = times.is_some() && self.group.goes_back(&totals);
        if now < self.last_ns || now > read_ns || backwards || self.words.goes_back(&words) {
            self.left_out += 1;
            return None;
        }
        let handler = ns(6).max(self.handler.now[0]);
        let missed =
            u32::try_from(word(4)).unwrap_or(u32::MAX).saturating_add(std::mem::take(&mut self.left_out));
        Some(self.step(
            now,
            missed,
            Totals { group: totals, times: times.unwrap_or_default(), words },
            times,
            handler,
        ))
    }

    /// The last record and the end of the trace, for a program that has ended at `now_ns`.
    pub fn finish(mut self, now_ns: u64, last: Totals) -> (Record, End) {
        let (times, handler) = (Some(last.times), self.handler.now[0]);
        let missed = self.left_out;
        let record = self.step(now_ns.max(self.last_ns), missed, last, times, handler);
        let sets = [&self.group, &self.words, &self.handler];
        let totals = sets.into_iter().flat_map(Deltas::totals).collect();
        (record, End { totals, exit_status: None, interrupted: false })
    }

    fn step(
        &mut self,
        now: u64,
        missed_ticks: u32,
        totals: Totals,
        times: Option<Times>,
        handler: u64,
    ) -> Record {
        let mut values: Vec<Value> = Vec::new();
        (self.group.now, self.group.times) = (totals.group, times);
        (self.words.now, self.handler.now) = (totals.words, vec![handler]);
        for set in [&mut self.group, &mut self.words, &mut self.handler] {
            set.take(&mut values);
        }
        let (sequence, start, dt) = (self.sequence, self.last_ns - self.begin_ns, now - self.last_ns);
        (self.sequence, self.last_ns) = (sequence + 1, now);
        Record { sequence, start, dt, missed_ticks, threads: 0, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: u64 = 2_000_000_000;

    /// A tick of two counters and one word.
    fn tick(seconds: u64, ns: u64, overrun: u64, handler_ns: u64, counters: [u64; 2], word: u64) -> Vec<u8> {
        let all = [seconds, ns, 0, 0, overrun, 48, 0, handler_ns, 3, 9, 9, counters[0], counters[1], 0, word];
        all.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn ticks_become_records_that_add_up() {
        let first = Totals { group: vec![5, 0], times: Times::default(), words: vec![0] };
        let mut ticks = Ticks::new(1_000_000_000, first);
        let one = tick(1, 500, 0, 0, [7, 1], 3);
        assert_eq!(ticks.bytes(), one.len());
        let record = ticks.record(&one, LATER).unwrap();
        assert_eq!((record.start, record.dt, record.missed_ticks), (0, 500, 0));
        let deltas =
            |record: &Record| record.values.iter().map(|value| value.delta.unwrap()).collect::<Vec<_>>();
        assert_eq!(deltas(&record), [2, 1, 3, 0]);
        assert!(ticks.record(&tick(1, 400, 0, 0, [6, 1], 3), LATER).is_none(), "written behind a later one");
        assert!(ticks.record(&tick(9, 0, 0, 0, [9, 1], 8), LATER).is_none(), "written before it was");
        let record = ticks.record(&tick(1, 900, 2, 70, [9, 1], 8), LATER).unwrap();
        assert_eq!((record.sequence, record.start, record.dt, record.missed_ticks), (1, 500, 400, 4));
        assert_eq!(deltas(&record), [2, 0, 5, 70]);
        let last =
            Totals { group: vec![10, 4], times: Times { enabled_ns: 9, running_ns: 9 }, words: vec![9] };
        let (record, end) = ticks.finish(1_000_001_000, last);
        assert_eq!((record.start, record.dt), (900, 100));
        assert_eq!(end.totals, [Some(5), Some(4), Some(9), Some(70)]);
    }

    #[test]
    fn a_failed_read_is_missing() {
        let first = Totals { group: vec![0, 0], times: Times::default(), words: vec![0] };
        let mut ticks = Ticks::new(0, first);
        let mut failed = tick(0, 10, 0, 0, [0, 0], 1);
        failed[40..48].copy_from_slice(&(-4_i64).to_ne_bytes());
        let deltas: Vec<_> =
            ticks.record(&failed, LATER).unwrap().values.iter().map(|value| value.delta).collect();
        assert_eq!(deltas, [None, None, Some(1), Some(0)]);
    }
}
